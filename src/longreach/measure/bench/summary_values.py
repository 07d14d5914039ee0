"""The figures of a run. Every interval is a 95 % bootstrap interval, None where the sample is too small for one."""

from dataclasses import dataclass, field
from typing import Literal

from longreach.measure.bench.values import CacheState
from longreach.measure.verify_report import ChecklistItem

Interval = tuple[float, float]
Figure = Literal["mean", "p50", "p90", "p99"]


@dataclass(frozen=True, slots=True)
class Distribution:
    """Of `num_samples` measured values. Percentiles interpolate linearly; below 100 samples P99 is close to the largest."""

    num_samples: int
    mean: float
    p50: float
    p90: float
    p99: float
    min: float
    max: float
    mean_interval: Interval | None = None
    p50_interval: Interval | None = None
    p90_interval: Interval | None = None
    p99_interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class StateSummary:
    """The figures of all requests that met the cache in one state."""

    state: CacheState
    num_ok: int
    num_proven: int
    num_disproven: int
    ttft_s: Distribution | None
    itl_s: Distribution | None
    e2e_latency_s: Distribution | None
    prompt_tokens: int
    cached_tokens: int | None
    hits_by_source: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class LengthSummary:
    """The figures of all requests in one state whose prompts are about as long: `low_tokens` to `high_tokens`."""

    state: CacheState
    low_tokens: int
    high_tokens: int
    ttft_s: Distribution
    itl_s: Distribution | None


@dataclass(frozen=True, slots=True)
class Slo:
    """Limits of one request in seconds: `--slo ttft=60s,itl=80ms,e2e=5m`. None: no limit."""

    ttft_s: float | None = None
    itl_s: float | None = None
    e2e_latency_s: float | None = None


@dataclass(frozen=True, slots=True)
class Goodput:
    """Requests that were answered within every limit; a failed one is not."""

    slo: Slo
    num_met: int
    share: float
    share_interval: Interval | None
    requests_per_s: float
    num_unknown: int = (
        0  # answered, and within or beyond the limit of ITL: their tokens are not counted. `share` lacks them
    )


@dataclass(frozen=True, slots=True)
class ForecastComparison:
    """A measured figure beside the plan's: `lower_bound` cannot be beaten, `low` to `high` is expected."""

    figure: Literal["ttft_cold_s", "ttft_warm_s", "decode_tokens_per_s"]
    prompt_tokens: int
    measured: float  # the median
    bound: float | None
    low: float | None
    high: float | None
    verdict: Literal["inside", "faster", "slower", "beats_bound", "no_forecast"]
    text: str  # "measured 61 s, bound 41 s, range 55-80"


@dataclass(frozen=True, slots=True)
class BenchSummary:
    """All figures of one run."""

    num_ok: int
    num_failed: int
    num_wanted: int
    duration_s: float
    ttft_s: Distribution | None
    time_to_first_answer_s: Distribution | None
    itl_s: Distribution | None
    chunk_gap_p99_s: Distribution | None
    e2e_latency_s: Distribution | None
    output_tokens_per_s: float | None
    prompt_tokens_per_s: float | None
    requests_per_s: float | None
    client_loop_lag_p99_s: float | None
    states: tuple[StateSummary, ...] = ()
    goodput: Goodput | None = None
    acceptance_rate: float | None = None
    mean_acceptance_length: float | None = None
    num_preemptions: int | None = None
    kv_cache_usage_max: float | None = None
    queue_mean_s: float | None = None
    checks: tuple[ChecklistItem, ...] = ()
    forecasts: tuple[ForecastComparison, ...] = ()
    errors: tuple[tuple[str, int], ...] = field(default=())  # what failed how often, most frequent first
    lengths: tuple[LengthSummary, ...] = ()  # where prompts are not all about as long
