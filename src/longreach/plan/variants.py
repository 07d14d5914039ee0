"""A mix of prompts on one instance with YaRN for all, or on two: short prompts without YaRN, long ones with it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, isfinite
from typing import Any

from longreach.engine.release import Release
from longreach.errors import UnknownModelError, UsageError
from longreach.forecast.speed import forecast_speed
from longreach.hardware.spec import Machine
from longreach.model.spec import ModelSpec
from longreach.plan.alternatives import is_served
from longreach.plan.build import assemble, plan_instances
from longreach.plan.count import Case, Decision
from longreach.plan.decide import decide
from longreach.plan.extra import read_extra, with_dtype
from longreach.plan.goal import Goal, NamedGoal
from longreach.plan.instance import PlannedInstance
from longreach.plan.mix import mean_tokens, share_of
from longreach.plan.request_time import USUAL_OUTPUT_TOKENS, speed_request, time_request
from longreach.plan.values import ClassFigures, Plan, PromptClass, Variant, VariantName
from longreach.rules.finding import Finding
from longreach.sizing.kv_cache import concurrency_at

_SECONDS_AN_HOUR = 3600
_ALL_SPLITS = 4  # GPUs up to which every split is counted

_Strain = tuple[int, int, float]


@dataclass(frozen=True, slots=True)
class MixRequest:
    """What is to be served. Lengths, batch sizes and memory of the goal hold for every instance; parallel sizes for one alone."""

    model: ModelSpec
    machine: Machine
    release: Release
    goal: Goal
    classes: tuple[PromptClass, ...]

    @property
    def answer_tokens(self) -> int:
        """Room for the answer behind every prompt."""
        return self.goal.mean_output_tokens or USUAL_OUTPUT_TOKENS

    @property
    def native_tokens(self) -> int:
        """The longest request, prompt and answer, that needs no YaRN."""
        return self.model.max_position_embeddings

    def needs_yarn(self, prompt: PromptClass) -> bool:
        """Prompt and answer together go beyond the model's own positions."""
        return prompt.prompt_tokens + self.answer_tokens > self.native_tokens

    @property
    def short(self) -> tuple[PromptClass, ...]:
        """Classes that need no YaRN."""
        return tuple(prompt for prompt in self.classes if not self.needs_yarn(prompt))

    @property
    def long(self) -> tuple[PromptClass, ...]:
        """Classes that do."""
        return tuple(prompt for prompt in self.classes if self.needs_yarn(prompt))


@dataclass(frozen=True, slots=True)
class PlannedVariant:
    """A variant before it is chosen or not, with the whole plan that it is."""

    variant: Variant
    plan: Plan
    planned: tuple[PlannedInstance, ...]

    @property
    def fits(self) -> bool:
        """It starts, and as many requests run at once as are wanted."""
        return self.plan.verdict == "fits" and not self._has("concurrency_not_met")

    @property
    def fits_surely(self) -> bool:
        """By memory that is there, whatever activations take."""
        return self.fits and not self._has("memory_cannot_tell")

    @property
    def grade(self) -> tuple[bool, bool]:
        """Less is better."""
        return not self.fits, not self.fits_surely

    @property
    def obstacle(self) -> str:
        """What stands in the way, "do not fit: ..."; empty where it surely fits."""
        if self.fits_surely:
            return ""
        what = next((finding.what for finding in self.plan.findings if self._is_grave(finding)), "memory is not known")
        return f"{'may not fit' if self.fits else 'would not fit'}: {what}"

    def _has(self, cause: str) -> bool:
        return any(finding.cause == cause for finding in self.plan.findings)

    def _is_grave(self, finding: Finding) -> bool:
        return finding.severity == "error" or finding.cause in ("concurrency_not_met", "memory_cannot_tell")


def plan_one(asked: MixRequest) -> PlannedVariant:
    """One instance for every prompt, with YaRN where the longest needs it."""
    goal = _goal_for(asked, asked.classes)
    return _planned(asked, "one", [NamedGoal("main", goal)], [asked.classes])


def plan_two(asked: MixRequest) -> PlannedVariant | str:
    """The GPUs split so that the busier instance is least busy; a sentence where there is no such variant."""
    if not asked.long:
        return f"no prompt of the mix needs YaRN: all stay within the model's {asked.native_tokens:,} positions"
    if not asked.short:
        return "every prompt of the mix needs YaRN: an instance without it would have nothing to do"
    if asked.machine.num_gpus < 2:
        return "two instances need two GPUs or more"
    long = replace(_free_goal(asked, asked.long), **_half_tiers(asked.goal, "long"))
    best, strain = _best_shared(asked, _short_goals(asked)[0], long)
    if strain[0]:
        best = min((best, strain), _best_shared(asked, _short_goals(asked)[1], long), key=lambda found: found[1])[0]
    rest = asked.machine.num_gpus - best.num_short
    named = [NamedGoal("short", best.short, best.num_short), NamedGoal("long", best.long, rest)]
    return _planned(asked, "two", named, [asked.short, asked.long])


@dataclass(frozen=True, slots=True)
class _Shared:
    """The GPUs divided among two goals."""

    short: Goal
    long: Goal
    num_short: int


def _best_shared(asked: MixRequest, short: Goal, long: Goal) -> tuple[_Shared, _Strain]:
    shared = [_Shared(short, long, count) for count in _shares(asked.machine.num_gpus)]
    return min(((item, _strain(asked, item)) for item in shared), key=lambda found: found[1])


def _strain(asked: MixRequest, shared: _Shared) -> _Strain:
    """Less is better: goals that are not served, then doubtful ones, then seconds of the busier instance per request."""
    rest = asked.machine.num_gpus - shared.num_short
    parts = ((shared.short, asked.short, shared.num_short), (shared.long, asked.long, rest))
    try:
        decisions = [(_decide(asked, goal, count), classes) for goal, classes, count in parts]
    except (UsageError, UnknownModelError):
        return len(parts) + 1, 0, inf
    unserved = sum(not is_served(decision) for decision, _ in decisions)
    unsure = sum(not decision.fit.is_sure for decision, _ in decisions)
    return unserved, unsure, max(_busy_s(asked, decision, classes) for decision, classes in decisions)


def _decide(asked: MixRequest, goal: Goal, num_gpus: int) -> Decision:
    extra = read_extra(goal.extra_args, asked.release)
    model = with_dtype(asked.model, extra, asked.machine.gpu)
    return decide(Case(model, asked.machine, asked.release, goal, num_gpus, extra))


def _busy_s(asked: MixRequest, decision: Decision, classes: Sequence[PromptClass]) -> float:
    """Seconds that one request of the whole mix costs this instance, on average; nothing cached."""
    longest = speed_request(asked.model, asked.machine, asked.goal, decision.settled, decision.fit)
    seconds = 0.0
    for prompt in classes:
        time = time_request(replace(longest, prompt_tokens=prompt.prompt_tokens), asked.answer_tokens)
        seconds += prompt.share * (inf if time is None else time.total_s)
    return seconds / decision.settled.split.dp_size


def _goal_for(asked: MixRequest, classes: tuple[PromptClass, ...]) -> Goal:
    """The goal for these prompts alone: their longest, their mean, their part of the requests at once."""
    goal = asked.goal
    longest = max(prompt.prompt_tokens for prompt in classes) + asked.answer_tokens
    share = share_of(classes)
    return replace(
        goal,
        max_model_len=max(goal.max_model_len or 0, longest) if asked.classes[-1] in classes else longest,
        mean_input_tokens=mean_tokens(classes),
        prompt_shares=tuple((prompt.share / share, prompt.prompt_tokens) for prompt in classes),
        concurrency=None if goal.concurrency is None else ceil(round(goal.concurrency * share, 6)),
    )


def _free_goal(asked: MixRequest, classes: tuple[PromptClass, ...]) -> Goal:
    """The same with sizes that are chosen anew: those given were for the whole machine."""
    return replace(_goal_for(asked, classes), tp_size=None, pp_size=None, dp_size=None, dcp_size=None)


def _short_goals(asked: MixRequest) -> tuple[Goal, Goal]:
    """As long as needs no YaRN, so that a router may send all such prompts there; else as long as the mix needs."""
    needed = replace(_free_goal(asked, asked.short), yarn="none", **_half_tiers(asked.goal, "short"))
    return replace(needed, max_model_len=asked.native_tokens), needed


def _half_tiers(goal: Goal, name: str) -> dict[str, Any]:
    """Each instance gets half of the CPU tier and a folder of its own."""
    tiers: dict[str, Any] = {}
    if goal.cpu_tier_bytes is not None:
        tiers["cpu_tier_bytes"] = goal.cpu_tier_bytes // 2
    if goal.disk_tier_path is not None:
        tiers["disk_tier_path"] = f"{goal.disk_tier_path.rstrip('/')}/{name}"
    return tiers


def _shares(num_gpus: int) -> list[int]:
    """GPUs for the short prompts: every split of a few, powers of two and what they leave of more."""
    if num_gpus <= _ALL_SPLITS:
        return list(range(1, num_gpus))
    powers = [2**power for power in range(num_gpus.bit_length()) if 2**power < num_gpus]
    return sorted({*powers, *(num_gpus - power for power in powers)})


def _planned(
    asked: MixRequest, name: VariantName, goals: Sequence[NamedGoal], classes: Sequence[tuple[PromptClass, ...]]
) -> PlannedVariant:
    planned = plan_instances(asked.model, asked.machine, asked.release, goals)
    plan = assemble(asked.model, asked.machine, asked.release, planned, with_alternatives=False)
    pairs = list(zip(planned, classes, strict=True))
    busy_s = max(_busy_s(asked, instance.decision, own) for instance, own in pairs)
    variant = Variant(
        name=name,
        verdict=plan.verdict,
        chosen=False,
        why="",
        instances=plan.instances,
        classes=tuple(_figures(asked, instance, prompt) for instance, own in pairs for prompt in own),
        requests_per_hour=_SECONDS_AN_HOUR / busy_s if plan.verdict == "fits" and isfinite(busy_s) else None,
    )
    return PlannedVariant(variant, plan, planned)


def _figures(asked: MixRequest, instance: PlannedInstance, prompt: PromptClass) -> ClassFigures:
    decision = instance.decision
    longest = speed_request(asked.model, asked.machine, asked.goal, decision.settled, decision.fit)
    speed = forecast_speed(replace(longest, prompt_tokens=prompt.prompt_tokens))
    request, capacity = decision.fit.request, decision.fit.capacity
    at_once = None
    if request is not None and capacity is not None and capacity.serves:
        tokens = min(prompt.prompt_tokens + asked.answer_tokens, request.max_model_len)
        at_once = concurrency_at(request, tokens) * decision.settled.split.dp_size
    return ClassFigures(
        share=prompt.share,
        prompt_tokens=prompt.prompt_tokens,
        instance=instance.plan.name,
        yarn_factor=decision.rope.factor,
        concurrency=at_once,
        ttft_cold_s=speed.ttft_cold_s,
        decode_tokens_per_s=speed.decode_tokens_per_s,
    )
