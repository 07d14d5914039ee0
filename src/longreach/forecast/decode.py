"""Decode: tokens per second of one request, bound by the bytes that every step must read.

    bound     (1 + draft tokens) / ((weights + cache of the context) per GPU / memory bandwidth)
    expected  accepted tokens / (bytes / (bandwidth x share) + all-reduce latency + step overhead + drafting)
Stages of a pipeline take turns, so only tensor parallelism divides the bytes.
"""

from dataclasses import dataclass

from longreach.forecast.setting import Setting, Unknown, resolve
from longreach.forecast.traffic import attended_bytes_per_gpu, head_bytes, state_bytes_per_gpu
from longreach.forecast.values import Span, SpeedRequest

_BANDWIDTH_SHARE = (0.60, 0.90)  # of nominal: STREAM-like copies reach 0.80 to 0.95, decode kernels less
_STEP_OVERHEAD_S = (0.0005, 0.004)  # scheduling, sampling and launches beside the kernels
_LATENCY_SPREAD = (0.8, 3.0)  # of the link class's latency a call
_MTP_ACCEPTANCE, _LOOKUP_ACCEPTANCE = (0.5, 0.8), (0.0, 0.8)  # of each draft token, given the one before it


@dataclass(frozen=True, slots=True)
class StepTime:
    """One decode step: what it cannot be under, and the expected range. Expected is None over an unknown link."""

    lower_bound_s: float
    expected_s: tuple[float, float] | None


def decode_rate(request: SpeedRequest) -> Span:
    """Tokens per second after a context of `prompt_tokens`, one request alone on the instance."""
    setting = resolve(request)
    if isinstance(setting, Unknown):
        return setting.span()
    step = step_time(setting)
    upper = (1 + request.num_speculative_tokens) / step.lower_bound_s
    if step.expected_s is None:
        return Span(None, None, upper_bound=upper, certainty="bound", reason="the link between the GPUs is unknown")
    fast, slow = step.expected_s
    draft_fast, draft_slow = _drafting_s(setting)
    acceptance = _MTP_ACCEPTANCE if request.use_draft_layers else _LOOKUP_ACCEPTANCE
    few, many = (accepted_tokens(rate, request.num_speculative_tokens) for rate in acceptance)
    return Span(low=few / (slow + draft_slow), high=many / (fast + draft_fast), upper_bound=upper)


def accepted_tokens(acceptance_rate: float, num_speculative_tokens: int) -> float:
    """Mean tokens a step: 1 + a + a^2 + ... + a^k."""
    return sum(acceptance_rate**position for position in range(num_speculative_tokens + 1))


def step_time(setting: Setting) -> StepTime:
    """Time of one step of the target model."""
    request, bandwidth = setting.request, setting.gpu.memory_bandwidth_bytes_per_s
    cache = attended_bytes_per_gpu(request.model, setting.kv_cache_dtype, request.tp_size, request.prompt_tokens)
    state_low, state_high = state_bytes_per_gpu(request.model, request.tp_size)
    least, most = (weights / request.tp_size + cache for weights in setting.weight_bytes)
    bound = (least + state_low) / bandwidth
    if setting.has_unknown_link:
        return StepTime(bound, None)
    head = head_bytes(request.model) / request.tp_size
    calls = 2 * request.model.num_layers
    return StepTime(
        bound,
        (
            read_s(setting, least + head + 2 * state_low, fast=True)
            + _calls_s(setting, calls, fast=True)
            + _STEP_OVERHEAD_S[0],
            read_s(setting, most + head + 2 * state_high, fast=False)
            + _calls_s(setting, calls, fast=False)
            + _STEP_OVERHEAD_S[1],
        ),
    )


def read_s(setting: Setting, num_bytes: float, *, fast: bool) -> float:
    """Seconds to read bytes from one GPU's memory, at the best or the worst share of its bandwidth."""
    return num_bytes / (setting.gpu.memory_bandwidth_bytes_per_s * _BANDWIDTH_SHARE[fast])


def _drafting_s(setting: Setting) -> tuple[float, float]:
    """Every MTP draft token reads the draft layers (as heavy as a target layer each) and the output head."""
    request = setting.request
    if not request.use_draft_layers:
        return 0.0, 0.0
    num_layers = max(1, len(request.model.draft_layers))
    head = head_bytes(request.model)
    layer_low, layer_high = (weights / request.model.num_layers * num_layers for weights in setting.weight_bytes)
    drafts, calls = request.num_speculative_tokens, 2 * num_layers
    return (
        drafts
        * (read_s(setting, (layer_low + head) / request.tp_size, fast=True) + _calls_s(setting, calls, fast=True)),
        drafts
        * (read_s(setting, (layer_high + head) / request.tp_size, fast=False) + _calls_s(setting, calls, fast=False)),
    )


def _calls_s(setting: Setting, num_calls: int, *, fast: bool) -> float:
    """All-reduces of a few hundred KB cost their latency."""
    latency = setting.link.all_reduce_latency_s if setting.link else 0.0
    return num_calls * latency * _LATENCY_SPREAD[0 if fast else 1]
