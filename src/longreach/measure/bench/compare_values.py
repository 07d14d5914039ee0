"""What a comparison of two runs says, as data."""

from dataclasses import dataclass
from typing import Literal

from longreach.measure.bench.summary_values import Figure, Interval
from longreach.measure.bench.values import CacheState

Verdict = Literal["better", "equal", "worse", "not_enough_data"]
Unit = Literal["s", "tokens_per_s", "share"]


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One figure of both runs. `difference` is relative to A, of shares absolute; `interval` is that of the difference."""

    metric: str  # "ttft_s", "itl_s", "e2e_latency_s", "output_tokens_per_s", "success_rate", "goodput"
    state: CacheState | None  # None: of all requests
    figure: Figure | None  # None: the metric is one figure already
    unit: Unit
    a: float
    b: float
    difference: float
    interval: Interval | None
    verdict: Verdict
    num_a: int
    num_b: int
    paired: bool  # the same requests in both
    num_needed: int | None = None  # requests a run that would do; None: enough, or no sensible number would
    num_failed_a: int = 0  # requests that only A failed: its figure leaves them out, so it is not called the better one
    num_failed_b: int = 0


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs side by side. `level` is that of each interval, so that all together hold with 95 %."""

    label_a: str
    label_b: str
    margin: float
    level: float
    metrics: tuple[MetricComparison, ...]
    warnings: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Worse where one figure is; better where one is and none is worse; else equal where all but the percentiles are,
        which take many more requests than means do.
        """
        found = {metric.verdict for metric in self.metrics}
        if "worse" in found or "better" in found:
            return "worse" if "worse" in found else "better"
        whole = {metric.verdict for metric in self.metrics if metric.figure in (None, "mean")}
        return "equal" if whole == {"equal"} else "not_enough_data"
