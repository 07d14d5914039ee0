"""What a forecast says: bounds that physics sets and ranges that measurements support."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import hypot

from longreach.hardware.spec import Machine
from longreach.model.spec import ModelSpec
from longreach.units import Certainty


@dataclass(frozen=True, slots=True)
class SpeedRequest:
    """One request of `prompt_tokens` on an otherwise idle instance, and the settings that decide its speed."""

    model: ModelSpec
    machine: Machine
    prompt_tokens: int
    tp_size: int = 1
    pp_size: int = 1
    max_num_batched_tokens: int = 8192
    kv_cache_dtype: str = "auto"
    block_size: int = 16  # a warm prompt computes up to one block again
    num_speculative_tokens: int = 0
    use_draft_layers: bool = False  # MTP: the draft layers prefill too
    cpu_tier: bool = False
    disk_tier: bool = False
    disk_read_bytes_per_s: tuple[float, float] | None = None  # least and most; None: a range over NVMe drives


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

    @property
    def middle(self) -> float | None:
        """The best guess."""
        return None if self.low is None or self.high is None else (self.low + self.high) / 2


@dataclass(frozen=True, slots=True)
class PrefillWork:
    """Arithmetic of one cold prefill, whole model."""

    linear_flops: float | None  # None: the config does not tell how many parameters a token meets
    attention_flops: float
    all_reduce_bytes: float  # bytes each GPU must move over the link: messages x 2(TP-1)/TP
    num_prefill_chunks: int


@dataclass(frozen=True, slots=True)
class PeerCase:
    """What the speed would be if the GPUs of an unknown PCIe link reached each other directly, or did not."""

    p2p: bool
    link: str  # the class it is computed for
    ttft_cold_s: Span
    decode_tokens_per_s: Span


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
    peer_cases: tuple[PeerCase, ...] = ()  # without and with P2P, where nobody said which


@dataclass(frozen=True, slots=True)
class TierForecast:
    """Does a tier pay? Reload against recompute for one prompt."""

    name: str
    reload_tokens_per_s: Span
    reload_s: Span
    recompute_s: Span
    pays: bool | None  # None: cannot tell
    why: str


def combined(parts: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Least and most of a sum whose parts err independently: their half-widths add in quadrature."""
    pairs = list(parts)
    middle = sum(low + high for low, high in pairs) / 2
    half = hypot(*(high - low for low, high in pairs)) / 2
    return middle - half, middle + half
