"""Time to first token: a bound that no tuning beats, and the range that measurements support.

bound     max(compute at the best rate, link at its raw rate, weights read once a chunk), as if all overlapped,
          over whichever number of the instance's GPUs does it fastest
expected  compute at the rate vLLM reaches + link at the class's measured rate + overhead, one after another
"""

from dataclasses import dataclass
from typing import Literal

from longreach.forecast.decode import read_s, step_time
from longreach.forecast.setting import Setting, Unknown, resolve
from longreach.forecast.values import Span, SpeedRequest, combined
from longreach.forecast.work import (
    attending_layers,
    attention_flops,
    linear_flops,
    num_prefill_chunks,
    prefill_work,
    ring_share,
)
from longreach.units import ceil_div

_REQUEST_OVERHEAD_S = (0.004, 0.030)  # HTTP, tokenizing, scheduling
_CHUNK_OVERHEAD_S = (0.001, 0.008)  # one engine step beside its kernels


@dataclass(frozen=True, slots=True)
class PrefillTime:
    """Where the time of computing some tokens goes, one case (fast or slow) of the expected range."""

    compute_s: float
    link_s: float
    overhead_s: float

    @property
    def total_s(self) -> float:
        """One after another."""
        return self.compute_s + self.link_s + self.overhead_s


Limit = Literal["compute", "link", "weights"]


@dataclass(frozen=True, slots=True)
class LowerBound:
    """A time nobody beats, what sets it, and on how many of the instance's GPUs it is reached."""

    seconds: float
    limit: Limit
    num_gpus: int


def ttft_cold(request: SpeedRequest) -> Span:
    """First token of a prompt of which nothing is cached."""
    setting = resolve(request)
    if isinstance(setting, Unknown):
        return setting.span()
    found = ttft_lower_bound(setting)
    bound = found.seconds if found else None
    expected = _expected(setting, request.prompt_tokens, 0)
    if isinstance(expected, Unknown):
        return Span(
            None, None, lower_bound=bound, certainty="unknown" if bound is None else "bound", reason=expected.reason
        )
    low, high = _between(*expected)
    return Span(low=max(low, bound or 0.0), high=high, lower_bound=bound)


def ttft_warm(request: SpeedRequest) -> Span:
    """First token when the whole prefix hits the GPU cache: one token to one block is computed again."""
    setting = resolve(request)
    if isinstance(setting, Unknown):
        return setting.span()
    step, again = step_time(setting), min(request.block_size, request.prompt_tokens)
    expected = _expected(setting, again, request.prompt_tokens - again)
    if isinstance(expected, Unknown) or step.expected_s is None:
        reason = expected.reason if isinstance(expected, Unknown) else "the link between the GPUs is unknown"
        return Span(None, None, lower_bound=step.lower_bound_s, certainty="bound", reason=reason)
    fast_step, slow_step = step.expected_s
    low, high = fast_step + _REQUEST_OVERHEAD_S[0], slow_step + expected[1].total_s
    return Span(low=low, high=high, lower_bound=step.lower_bound_s)


def ttft_lower_bound(setting: Setting) -> LowerBound | None:
    """The bound of a cold prompt; None where the card's peak is unknown."""
    work, rates, request = setting.work, setting.rates, setting.request
    if rates.linear_best is None or rates.attention_best is None or work.linear_flops is None:
        return None
    compute = work.linear_flops / rates.linear_best + work.attention_flops / rates.attention_best
    read = work.num_prefill_chunks * setting.weight_bytes[0] / setting.gpu.memory_bandwidth_bytes_per_s
    message_bytes = work.all_reduce_bytes / ring_share(request.tp_size) if request.tp_size > 1 else 0.0

    def with_gpus(count: int) -> LowerBound:
        group = ceil_div(count, request.pp_size)
        link = message_bytes * ring_share(group) / setting.link.all_reduce_best_bytes_per_s if setting.link else 0.0
        limits: dict[Limit, float] = {"compute": compute / count, "link": link, "weights": read / count}
        limit = max(limits, key=limits.__getitem__)
        return LowerBound(limits[limit], limit, count)

    # Fewer GPUs exchange less: no split of the work over up to `num_gpus` of them is faster than the best one.
    return min((with_gpus(count) for count in range(1, setting.num_gpus + 1)), key=lambda bound: bound.seconds)


def prefill_times(setting: Setting) -> tuple[PrefillTime, PrefillTime] | None:
    """Fast and slow case of the cold prompt, for showing where the time goes. None where no rate is known."""
    expected = _expected(setting, setting.request.prompt_tokens, 0)
    return None if isinstance(expected, Unknown) else expected


def _between(fast: PrefillTime, slow: PrefillTime) -> tuple[float, float]:
    """Compute, link and overhead err independently of each other."""
    return combined(((fast.compute_s, slow.compute_s), (fast.link_s, slow.link_s), (fast.overhead_s, slow.overhead_s)))


def _expected(setting: Setting, num_tokens: int, past_tokens: int) -> tuple[PrefillTime, PrefillTime] | Unknown:
    """Computing `num_tokens` after `past_tokens` cached ones, fast and slow."""
    if setting.rates.linear is None or setting.rates.attention is None:
        return Unknown(f"no matrix rate of {setting.gpu.name} is known")
    if setting.has_unknown_link:
        return Unknown(f"the link between several {setting.gpu.name} is unknown")
    return _time(setting, num_tokens, past_tokens, fast=True), _time(setting, num_tokens, past_tokens, fast=False)


def _time(setting: Setting, num_tokens: int, past_tokens: int, *, fast: bool) -> PrefillTime:
    request, budget = setting.request, setting.request.max_num_batched_tokens
    chunks = num_prefill_chunks(num_tokens, budget)
    link_s = 0.0
    if setting.link is not None:
        work = prefill_work(request.model, num_tokens, request.tp_size, budget, request.pp_size)
        calls = 2 * request.model.num_layers / request.pp_size * chunks
        rate = setting.link.all_reduce_bytes_per_s[fast]
        link_s = work.all_reduce_bytes / rate + calls * setting.link.all_reduce_latency_s
    # Every chunk reads the weights, which is what a short one waits for.
    read = chunks * read_s(setting, setting.weight_bytes[not fast], fast=fast)
    compute = max(_compute_s(setting, num_tokens, past_tokens, fast=fast), read)
    stages = _stage_factor(request.pp_size, chunks, fast=fast)
    return PrefillTime(
        compute_s=stages * compute / setting.num_gpus,
        link_s=stages * link_s,
        overhead_s=_REQUEST_OVERHEAD_S[not fast] + chunks * _CHUNK_OVERHEAD_S[not fast],
    )


def _compute_s(setting: Setting, num_tokens: int, past_tokens: int, *, fast: bool) -> float:
    """All layers on one GPU, MTP draft layers included: they fill their own cache chunk by chunk."""
    model, rates = setting.request.model, setting.rates
    assert rates.linear is not None
    assert rates.attention is not None
    linear = linear_flops(model, num_tokens) or 0.0
    attention = attention_flops(attending_layers(model), num_tokens, model.index_topk, past_tokens)
    if setting.request.use_draft_layers:
        linear *= 1 + len(model.draft_layers) / model.num_layers
        attention += attention_flops(model.draft_layers, num_tokens, model.index_topk, past_tokens)
    return linear / rates.linear[fast] + attention / rates.attention[fast]


def _stage_factor(pp_size: int, num_chunks: int, *, fast: bool) -> float:
    """Stages overlap over chunks, (n + pp - 1)/n of one stage's time at best; at worst they take turns."""
    return (num_chunks + pp_size - 1) / num_chunks if fast else float(pp_size)
