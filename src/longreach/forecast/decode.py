"""Decode: tokens per second of one request, bound by the bytes that every step must read.

    bound     (1 + draft tokens) / ((weights + cache of the context) per GPU / memory bandwidth)
    expected  accepted tokens / (bytes / (bandwidth x share) + all-reduce latency + launches + drafting)
Stages of a pipeline take turns, so only tensor parallelism divides the bytes.
"""

from dataclasses import dataclass
from math import hypot

from longreach.forecast.setting import Setting, Unknown, resolve
from longreach.forecast.traffic import attended_bytes_per_gpu, head_bytes, state_bytes_per_gpu
from longreach.forecast.values import Span, SpeedRequest, combined

_BANDWIDTH_SHARE = (0.67, 0.97)  # of nominal: STREAM-like copies reach 0.80 to 0.95, a matmul of few tokens less
_STEP_OVERHEAD_S = (0.0002, 0.002)  # scheduling and sampling beside the kernels
_LAYER_OVERHEAD_S = (4e-6, 34e-6)  # about ten small kernels, with graphs at the low end
_DRAFT_OVERHEAD_S = (0.0005 / 3, 0.018 / 3)  # a pass outside the graphs, seen with three: fast CPU to old server
_LATENCY_SPREAD = (0.4, 1.6)  # of the link class's latency a call
_MTP_ACCEPTANCE, _LOOKUP_ACCEPTANCE = (0.5, 0.85), (0.0, 0.8)  # of each draft token, given the one before it

Ends = tuple[float, float]
"""Least and most."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """One decode step: what it cannot be under, and the expected range. Expected is None over an unknown link."""

    lower_bound_s: float
    expected_s: Ends | None


def decode_rate(request: SpeedRequest) -> Span:
    """Tokens per second after a context of `prompt_tokens`, one request alone on the instance."""
    setting = resolve(request)
    if isinstance(setting, Unknown):
        return setting.span()
    bound = _lower_bound_s(setting)
    upper = (1 + request.num_speculative_tokens) / bound
    if setting.has_unknown_link:
        return Span(None, None, upper_bound=upper, certainty="bound", reason="the link between the GPUs is unknown")
    fast, slow = combined((*_step_parts(setting), *_drafting_parts(setting)))
    acceptance = _MTP_ACCEPTANCE if request.use_draft_layers else _LOOKUP_ACCEPTANCE
    few, many = (accepted_tokens(rate, request.num_speculative_tokens) for rate in acceptance)
    middle = (few + many) / (fast + slow)
    spread = hypot((slow - fast) / (slow + fast), (many - few) / (many + few))  # time and acceptance err independently
    return Span(low=middle * (1 - spread), high=min(middle * (1 + spread), upper), upper_bound=upper)


def accepted_tokens(acceptance_rate: float, num_speculative_tokens: int) -> float:
    """Mean tokens a step: 1 + a + a^2 + ... + a^k."""
    return sum(acceptance_rate**position for position in range(num_speculative_tokens + 1))


def step_time(setting: Setting) -> StepTime:
    """Time of one step of the target model."""
    expected = None if setting.has_unknown_link else combined(_step_parts(setting))
    return StepTime(_lower_bound_s(setting), expected)


def read_s(setting: Setting, num_bytes: float, *, fast: bool) -> float:
    """Seconds to read bytes from one GPU's memory, at the best or the worst share of its bandwidth."""
    return num_bytes / (setting.gpu.memory_bandwidth_bytes_per_s * _BANDWIDTH_SHARE[fast])


def _lower_bound_s(setting: Setting) -> float:
    read = setting.weight_bytes[0] / setting.request.tp_size + _cache_bytes(setting) + _state_bytes(setting)[0]
    return read / setting.gpu.memory_bandwidth_bytes_per_s


def _step_parts(setting: Setting) -> tuple[Ends, ...]:
    """Reading, all-reduces, and what kernels and the engine take beside."""
    request, model = setting.request, setting.request.model
    other = _cache_bytes(setting) + head_bytes(model) / request.tp_size
    least, most = (
        weights / request.tp_size + 2 * state + other
        for weights, state in zip(setting.weight_bytes, _state_bytes(setting), strict=True)
    )
    layers = model.num_layers
    return (
        (read_s(setting, least, fast=True), read_s(setting, most, fast=False)),
        _calls_s(setting, 2 * layers),
        (layers * _LAYER_OVERHEAD_S[0], layers * _LAYER_OVERHEAD_S[1]),
        _STEP_OVERHEAD_S,
    )


def _drafting_parts(setting: Setting) -> tuple[Ends, ...]:
    """Every MTP draft token reads the draft layers (as heavy as a target layer each) and the output head."""
    request = setting.request
    if not request.use_draft_layers or not request.num_speculative_tokens:
        return ()
    drafts, num_layers = request.num_speculative_tokens, max(1, len(request.model.draft_layers))
    head = head_bytes(request.model)
    least, most = (
        drafts * (weights / request.model.num_layers * num_layers + head) / request.tp_size
        for weights in setting.weight_bytes
    )
    return (
        (read_s(setting, least, fast=True), read_s(setting, most, fast=False)),
        _calls_s(setting, drafts * 2 * num_layers),
        (drafts * _DRAFT_OVERHEAD_S[0], drafts * _DRAFT_OVERHEAD_S[1]),
    )


def _calls_s(setting: Setting, num_calls: int) -> Ends:
    """All-reduces of a few hundred KB cost their latency, given for four GPUs: NCCL takes 13 to 16 us there, 17 to 25 on eight."""
    latency = setting.link.all_reduce_latency_s if setting.link else 0.0
    middle = num_calls * latency * (4 + setting.request.tp_size) / 8
    return middle * _LATENCY_SPREAD[0], middle * _LATENCY_SPREAD[1]


def _cache_bytes(setting: Setting) -> int:
    request = setting.request
    return attended_bytes_per_gpu(request.model, setting.kv_cache_dtype, request.tp_size, request.prompt_tokens)


def _state_bytes(setting: Setting) -> Ends:
    return state_bytes_per_gpu(setting.request.model, setting.request.tp_size)
