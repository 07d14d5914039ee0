"""The target of `bench`, and what its plan says of prompts, where there is one."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from longreach.cli.targets import choose_instance, is_address
from longreach.errors import ServerError, UsageError


@dataclass(frozen=True, slots=True)
class DefaultLength:
    """How long prompts are when nobody says; `note` tells why."""

    tokens: int
    note: str


class Place:
    """What is measured."""

    def __init__(self, target: str, values: dict[str, Any]) -> None:
        from longreach.measure.bench.settings import BenchTarget

        names = ("tokenizer", "api_key_env", "model")
        given = {name: values[name] for name in names if values[name] is not None}
        self._instance: Any = None
        self._plan_name = target
        if is_address(target):
            if values["instance"]:
                why, fix = f"'{target}' is a URL", "name a plan file, or leave it out"
                raise UsageError("--instance goes with a plan", why, fix)
            self.target = BenchTarget(target, **given)
            return
        from longreach.cli.from_plan import verify_target
        from longreach.cli.plan_file import read_plan

        plan = read_plan(Path(target))
        self._instance = choose_instance(plan, values["instance"])
        self.target = replace(verify_target(plan, self._instance, self._instance.max_model_len), **given)

    @property
    def longest_request(self) -> int | None:
        """Prompt and answer, by the plan."""
        return None if self._instance is None else self._instance.max_model_len

    def default_length(self, output_tokens: int) -> DefaultLength | None:
        """The plan's mean prompt, which it gives figures for beside the longest. A plan whose mean is its longest leaves no
        room for an answer: half of it then.
        """
        if self._instance is None or not self._instance.speed:
            return None
        longest, room = self._instance.max_model_len, max(1, self._instance.max_model_len - output_tokens)
        mean = min(speed.prompt_tokens for speed in self._instance.speed)
        if mean >= longest:
            tokens, why = (
                min(longest // 2, room),
                f"half the plan's longest request, {longest:,}, which is its mean too",
            )
        elif mean > room:
            tokens, why = room, f"the plan's mean is {mean:,}, and the answer takes {output_tokens:,} of {longest:,}"
        else:
            tokens, why = mean, "the plan's mean"
        return DefaultLength(tokens, f"no --input-tokens: {tokens:,}, {why}")

    def expected_speed(self, prompt_tokens: int) -> Any:
        """The plan's forecast for prompts of this length; None where it does not reach."""
        if self._instance is None:
            return None
        from longreach.cli.from_plan import expected_speed

        return expected_speed(self._instance, prompt_tokens)

    def with_cure(self, error: ServerError) -> ServerError:
        """The error; of a server that is not there with the command that starts it."""
        if self._instance is None or error.cause != "unreachable":
            return error
        return ServerError(error.what, error.why, f"longreach up {self._plan_name}", error.cause)
