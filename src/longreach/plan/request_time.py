"""What the usual request takes: the figure by which splits and drafts are compared. Pure."""

from dataclasses import dataclass

from longreach.forecast.decode import decode_rate
from longreach.forecast.prefill import ttft_cold
from longreach.forecast.values import Span, SpeedRequest
from longreach.hardware.spec import Machine
from longreach.model.spec import ModelSpec
from longreach.plan.capacity import Fit
from longreach.plan.goal import Goal
from longreach.plan.settle import Settled
from longreach.units import ceil_div

USUAL_OUTPUT_TOKENS = 1024
"""Assumed where the goal does not say."""


@dataclass(frozen=True, slots=True)
class RequestTime:
    """Middle of the forecast ranges. `ttft_s` is of one cold prompt; the wanted requests of one engine prefill in turn and
    decode together.
    """

    ttft_s: float
    decode_tokens_per_s: float
    total_s: float


def speed_request(model: ModelSpec, machine: Machine, goal: Goal, settled: Settled, fit: Fit) -> SpeedRequest:
    """A prompt of max_model_len on this instance."""
    speculative, split = settled.speculative, settled.split
    return SpeedRequest(
        model=model,
        machine=machine,
        prompt_tokens=settled.max_model_len,
        tp_size=split.tp_size,
        pp_size=split.pp_size,
        max_num_batched_tokens=settled.max_num_batched_tokens,
        kv_cache_dtype=fit.kv_cache_dtype,
        block_size=fit.capacity.block_size if fit.capacity else 16,
        num_speculative_tokens=speculative.num_speculative_tokens if speculative else 0,
        use_draft_layers=speculative is not None and speculative.method == "mtp",
        cpu_tier=goal.cpu_tier_bytes is not None,
        disk_tier=goal.disk_tier_path is not None,
    )


def time_request(request: SpeedRequest, output_tokens: int | None, num_prompts: int = 1) -> RequestTime | None:
    """`num_prompts` prompts that arrive together, each with its answer; None where a rate is not known."""
    ttft, rate = middle(ttft_cold(request)), middle(decode_rate(request))
    if ttft is None or not rate:
        return None
    return RequestTime(ttft, rate, num_prompts * ttft + (output_tokens or USUAL_OUTPUT_TOKENS) / rate)


def time_wanted(request: SpeedRequest, goal: Goal, dp_size: int) -> RequestTime | None:
    """The requests that are wanted at once, shared among the replicas."""
    return time_request(request, goal.mean_output_tokens, ceil_div(goal.concurrency or 1, dp_size))


def middle(span: Span) -> float | None:
    """The middle of the expected range."""
    return None if span.low is None or span.high is None else (span.low + span.high) / 2
