"""What a comparison of two runs says, as data."""

from dataclasses import dataclass
from typing import Literal

from longreach.measure.bench.summary_values import Figure, Interval
from longreach.measure.bench.values import CacheState

Verdict = Literal["better", "equal", "worse", "not_enough_data"]
RunVerdict = Literal["better", "equal", "worse", "not_enough_data", "not_comparable"]
_FIGURES_THAT_AGREE = 2
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
    verdict: Verdict | None  # None: the runs are not comparable
    num_a: int
    num_b: int
    paired: bool  # the same requests in both
    num_needed: int | None = None  # requests a run that would do; None: enough, or no sensible number would
    num_failed_a: int = 0  # requests that only A failed: its figure leaves them out, so it is not called the better one
    num_failed_b: int = 0


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """What one side is, for people: `file` is set by who read it from one."""

    model: str
    base_url: str
    server_version: str | None
    longreach_version: str
    started_at: str
    sent: str  # "30 requests, cold, then warm; 4 at once; synthetic text"
    num_ok: int
    num_wanted: int
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What must be the same in both for a difference to mean anything, and is not."""

    field: Literal["workload", "load", "output length", "cache states", "API"]
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs side by side. `level` is that of each interval, so that all together hold with 95 %."""

    label_a: str
    label_b: str
    margin: float
    level: float
    metrics: tuple[MetricComparison, ...]
    warnings: tuple[str, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    is_forced: bool = False  # verdicts are given in spite of the obstacles
    run_a: ComparedRun | None = None
    run_b: ComparedRun | None = None

    @property
    def verdict(self) -> RunVerdict:
        """Worse where one figure is. Better where none is worse and two of those that decide are: one alone may be luck, but
        for the share answered, which no drift improves. Equal where all that decide are.
        """
        if self.obstacles and not self.is_forced:
            return "not_comparable"
        if any(metric.verdict == "worse" for metric in self.metrics):
            return "worse"
        better = [metric for metric in self.deciding if metric.verdict == "better"]
        if len(better) >= _FIGURES_THAT_AGREE or any(metric.metric == "success_rate" for metric in better):
            return "better"
        return "equal" if {metric.verdict for metric in self.deciding} == {"equal"} else "not_enough_data"

    @property
    def deciding(self) -> tuple[MetricComparison, ...]:
        """Means, tokens/s and shares; percentiles take many more requests, and inform."""
        return tuple(metric for metric in self.metrics if metric.figure in (None, "mean"))

    @property
    def lone_better(self) -> tuple[MetricComparison, ...]:
        """What is better without making the run better."""
        return tuple(m for m in self.metrics if m.verdict == "better") if self.verdict == "not_enough_data" else ()
