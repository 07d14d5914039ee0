"""`longreach verify`: prove a running instance with one long prompt, cold and warm."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from longreach.cli.cancelling import cancelling_on_signals
from longreach.cli.live_line import LiveLine
from longreach.cli.params import FILE, TOKENS, FiniteRange, echo_json, json_object, json_option, stdout_paint
from longreach.cli.targets import choose_instance, is_address
from longreach.errors import UsageError
from longreach.units import format_duration


@click.command(short_help="Prove a server: one prompt of exact length, cold and warm.")
@click.argument("target", metavar="PLAN|URL")
@click.option("--instance", help="Which instance of the plan. Default: its longest.")
@click.option("--model", help="Name of the served model, for a URL that serves several.")
@click.option(
    "--length", type=TOKENS, metavar="TOKENS", help="Prompt length at the server. Default: the planned longest."
)
@click.option("--output-tokens", type=click.IntRange(min=1), default=64, show_default=True, help="Tokens to generate.")
@click.option("--prompt-file", type=FILE, help="Send this text as it is instead of generated text.")
@click.option("--sampling", metavar="JSON", help='Fields of the request body: \'{"temperature": 0.6, "top_p": 0.95}\'.')
@click.option("--tokenizer", metavar="PATH|ID", help="Folder, tokenizer.json or hub id. Default: the plan's model.")
@click.option("--api", type=click.Choice(["chat", "completions"]), default="chat", show_default=True)
@click.option("--api-key-env", metavar="NAME", help="Environment variable that holds the API key.")
@click.option("--no-needles", is_flag=True, help="Do not hide facts in the prompt and ask for them.")
@click.option("--seed", default="longreach", show_default=True, help="The generated text depends on it alone.")
@click.option(
    "--first-token-timeout", type=FiniteRange(min=1), metavar="SECONDS", help="Longest wait for the first token."
)
@click.option("--stall-timeout", type=FiniteRange(min=1), metavar="SECONDS", help="Longest gap after the first token.")
@json_option
def verify(target: str, *, as_json: bool, **values: Any) -> int:
    """Send one prompt of exact length, cold and then warm, and check what comes back against the plan.

    Reports prompt tokens as the server counted them, time to first token, inter-token latency, cached tokens by source and
    acceptance; each promise is judged pass, fail or cannot tell, with its evidence. Exit code 1 when one fails.
    """
    from longreach.report.verify_text import render_verify

    settings = _settings(values)
    report = run_verify(_target(target, values, settings), settings)
    if as_json:
        echo_json(asdict(report))
    else:
        click.echo(render_verify(report, stdout_paint()))
    if report.interrupted:
        return 130
    return 1 if report.num_failed else 0


def run_verify(target: Any, settings: Any) -> Any:
    """Run it with progress on stderr; Ctrl-C, `kill` and a closed terminal give the partial report."""
    from longreach.measure import event_loop
    from longreach.measure.verify import verify as measure_verify

    async def run() -> Any:
        with cancelling_on_signals():
            return await measure_verify(target, settings, progress)

    progress = _Progress()
    try:
        return event_loop.run(run())
    finally:
        progress.close()


def _target(target: str, values: dict[str, Any], settings: Any) -> Any:
    from longreach.measure.target import VerifyTarget

    given = {"tokenizer": values["tokenizer"], "api_key_env": values["api_key_env"], "model": values["model"]}
    given = {key: value for key, value in given.items() if value is not None}
    if is_address(target):
        if values["instance"]:
            raise UsageError("--instance goes with a plan", f"'{target}' is a URL", "name a plan file, or leave it out")
        return VerifyTarget(target, **given)
    from longreach.cli.from_plan import verify_target
    from longreach.cli.plan_file import read_plan

    plan = read_plan(Path(target))
    instance = choose_instance(plan, values["instance"])
    prompt_tokens = settings.prompt_tokens or instance.max_model_len - settings.output_tokens
    return replace(verify_target(plan, instance, prompt_tokens), **given)


def _settings(values: dict[str, Any]) -> Any:
    from longreach.measure.client import Timeouts
    from longreach.measure.target import VerifySettings

    given = {"first_token_s": values["first_token_timeout"], "stall_s": values["stall_timeout"]}
    timeouts = Timeouts(**{key: value for key, value in given.items() if value is not None})
    return VerifySettings(
        prompt_tokens=values["length"],
        output_tokens=values["output_tokens"],
        extra_body=_sampling(values["sampling"]),
        prompt_file=values["prompt_file"],
        needles_off_reason="--no-needles" if values["no_needles"] else None,
        api=values["api"],
        seed=values["seed"],
        timeouts=timeouts,
    )


def _sampling(text: str | None) -> dict[str, object]:
    return {} if text is None else json_object(text, "--sampling", '{"temperature": 0.6}')


class _Progress:
    """Progress on stderr: a live line on a terminal, one line a step elsewhere."""

    def __init__(self) -> None:
        self._line = LiveLine()
        self._line.start()

    def __call__(self, event: Any) -> None:
        name = f"{event.phase} {event.detail}".strip()
        estimate = f" of up to {format_duration(event.estimate_s)}" if event.estimate_s else ""
        if event.state != "finished":
            self._line.update(f"{name}: {format_duration(event.elapsed_s)}{estimate}")
        if event.state == "finished":
            self._line.say(f"{name}: done in {format_duration(event.elapsed_s)}")
        elif not self._line.is_live and event.state == "started":
            self._line.say(
                f"{name}: started{f', expected up to {format_duration(event.estimate_s)}' if event.estimate_s else ''}"
            )

    def close(self) -> None:
        self._line.close()
