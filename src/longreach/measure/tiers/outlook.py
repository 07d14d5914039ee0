"""What a comparison will cost before it is started: starts, time, bytes on disk. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from longreach.measure.tiers.values import TierSet, WorkloadSizing
from longreach.measure.workload.outlines import Outline
from longreach.measure.workload.values import Workload
from longreach.plan.values import InstancePlan, PlannedModel
from longreach.units import format_tokens

_SPARE = 1.2  # of the free space a run may come to need, since the bytes of a token are the least


@dataclass(frozen=True, slots=True)
class Outlook:
    """`run_s`: how long the requests of one run take when nothing is ever hit, least and most. None: `why_no_time` says why."""

    num_starts: int
    run_s: tuple[float, float] | None
    disk_bytes_per_start: int | None  # at least; None: no disk tier, or unknown
    why_no_time: str = ""

    @property
    def disk_bytes_wanted(self) -> int | None:
        """Free space to ask for."""
        return None if self.disk_bytes_per_start is None else round(_SPARE * self.disk_bytes_per_start)


@dataclass(frozen=True, slots=True)
class GivenSize:
    """A trace or a workload file. `span_s` is from the first arrival to the last; None: it is not sent at times of its own."""

    source: str
    num_requests: int
    prompt_tokens: int
    output_tokens: int
    span_s: float | None


def size_given(given: Outline | Workload, *, keeps_times: bool) -> GivenSize:
    """What is sent in each run; without `keeps_times` as fast as answers come."""
    requests = given.requests
    arrivals = [one.arrival_s for one in requests if keeps_times and one.arrival_s is not None]
    return GivenSize(
        source=given.source,
        num_requests=len(requests),
        prompt_tokens=sum(one.prompt_tokens for one in requests),
        output_tokens=sum(one.output_tokens for one in requests),
        span_s=max(arrivals) - min(arrivals) if arrivals else None,
    )


def foresee(
    instance: InstancePlan,
    model: PlannedModel,
    variants: Sequence[TierSet],
    sizing: WorkloadSizing | None,
    repeats: int,
) -> Outlook:
    """From the plan's forecast of a cold prompt, and from what a token takes in the CPU tier. Of a workload that was given
    (`sizing` None) only the starts are known.
    """
    num_starts = len(variants) * repeats
    if sizing is None:
        return Outlook(
            num_starts, None, None, "the prompts of a workload that is given differ in length, and in what they share"
        )
    per_token = bytes_per_token(instance, model)
    has_disk = any("disk" in variant.tiers for variant in variants)
    written = round(sizing.distinct_tokens * per_token) if has_disk and per_token is not None else None
    run_s = _run_s(instance, sizing)
    return Outlook(num_starts, run_s, written, "" if run_s else _why_no_time(instance, sizing))


def bytes_per_token(instance: InstancePlan, model: PlannedModel) -> float | None:
    """What one prompt token takes in an offload tier, at least: states of recurrent layers come on top."""
    cpu = next((tier for tier in instance.tiers if tier.name == "cpu"), None)
    if cpu is not None and cpu.capacity_tokens and cpu.capacity_bytes:
        return cpu.capacity_bytes / cpu.capacity_tokens
    return model.kv_bytes_per_token


def _why_no_time(instance: InstancePlan, sizing: WorkloadSizing) -> str:
    reason = next((speed.ttft_cold_s.reason for speed in instance.speed if speed.ttft_cold_s.high is None), "")
    if reason or not instance.speed:
        return f"the plan forecasts no speed{': ' if reason else ''}{reason}"
    longest = max(speed.prompt_tokens for speed in instance.speed)
    length = format_tokens(sizing.prompt_tokens)
    return f"the plan forecasts prompts of at most {format_tokens(longest)} tokens, and these have {length}"


def _run_s(instance: InstancePlan, sizing: WorkloadSizing) -> tuple[float, float] | None:
    """By the forecast of the nearest prompt that is no shorter: time grows at least with the length, at most with its square."""
    longer = [speed for speed in instance.speed if speed.prompt_tokens >= sizing.prompt_tokens]
    if not longer:
        return None
    nearest = min(longer, key=lambda speed: speed.prompt_tokens)
    ratio, cold = sizing.prompt_tokens / nearest.prompt_tokens, nearest.ttft_cold_s
    if cold.low is None or cold.high is None:
        return None
    return sizing.num_requests * cold.low * ratio**2, sizing.num_requests * cold.high * ratio
