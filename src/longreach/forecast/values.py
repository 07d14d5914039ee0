"""What a forecast says: bounds that physics sets and ranges that measurements support."""

from dataclasses import dataclass

from longreach.units import Certainty


@dataclass(frozen=True, slots=True)
class Span:
    """A forecast quantity. `lower_bound` cannot be beaten (for a rate: `upper_bound` cannot); `low`..`high` is expected.

    None means that no figure can be given, and `reason` says why.
    """

    low: float | None
    high: float | None
    lower_bound: float | None = None
    upper_bound: float | None = None
    certainty: Certainty = "range"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PrefillWork:
    """Arithmetic of one cold prefill, whole model."""

    linear_flops: float
    attention_flops: float
    all_reduce_bytes: float  # bytes each GPU must move over the link: messages x 2(TP-1)/TP
    num_prefill_chunks: int


@dataclass(frozen=True, slots=True)
class SpeedForecast:
    """Speed of one request at one prompt length on an otherwise idle instance."""

    prompt_tokens: int
    num_prefill_chunks: int
    work: PrefillWork
    ttft_cold_s: Span
    ttft_warm_s: Span  # the whole prefix hits the GPU cache
    ttft_from_cpu_s: Span | None  # the whole prefix comes back from the CPU tier
    ttft_from_disk_s: Span | None
    decode_tokens_per_s: Span
    arithmetic: tuple[str, ...]  # the figures that led here, one sentence each


@dataclass(frozen=True, slots=True)
class TierForecast:
    """Does a tier pay? Reload against recompute for one prompt."""

    name: str
    reload_tokens_per_s: Span
    reload_s: Span
    recompute_s: Span
    pays: bool | None  # None: cannot tell
    why: str
