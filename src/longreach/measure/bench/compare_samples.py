"""The figures that two runs have in common, each with the way to its interval. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from longreach.measure.bench.compare_values import Unit
from longreach.measure.bench.drift import drift_of_difference, widen
from longreach.measure.bench.resampling import Array
from longreach.measure.bench.selection import busy_time_s, itl_s, known, states_of
from longreach.measure.bench.slo import is_unknown, judge
from longreach.measure.bench.statistics import (
    Estimate,
    compute_figure,
    proportion_difference,
    relative_difference,
    relative_rate_difference,
    samples_for,
)
from longreach.measure.bench.summary_values import Figure, Slo
from longreach.measure.bench.values import BenchResult, CacheState, RequestRecord

Read = Callable[[RequestRecord], float | None]


@dataclass(frozen=True, slots=True)
class Sample:
    """One figure of both runs; `estimate` gives the difference with its interval at a level."""

    metric: str
    unit: Unit
    a: float
    b: float
    num_a: int
    num_b: int
    estimate: Callable[[float], Estimate]
    state: CacheState | None = None
    figure: Figure | None = None
    paired: bool = False
    more_is_better: bool = False
    failed: "Failed | None" = None  # where the figure leaves failed requests out


@dataclass(frozen=True, slots=True)
class Failed:
    """Requests that one run failed and the other answered; of different workloads all that it failed."""

    by_a: int
    by_b: int


_TIMES: tuple[tuple[str, Read, tuple[Figure, ...]], ...] = (
    ("ttft_s", lambda record: record.ttft_s, ("mean", "p50", "p99")),
    ("itl_s", itl_s, ("mean",)),
    ("e2e_latency_s", lambda record: record.e2e_latency_s, ("mean",)),
)


def common_samples(a: BenchResult, b: BenchResult, slo: Slo | None) -> list[Sample]:
    """Times in each state that both measured, then what holds of all requests."""
    states = [state for state in states_of(a) if state in states_of(b)]
    return [*(s for state in states for s in _times(a, b, state)), *_throughput(a, b), *_shares(a, b, slo)]


def _times(a: BenchResult, b: BenchResult, state: CacheState) -> Iterator[Sample]:
    """P99 only where both runs are large enough for its interval."""
    failed = count_failed(a, b, state)
    for metric, read, figures in _TIMES:
        values_a, values_b, paired = _values(a, b, state, read)
        if not values_a or not values_b or min(*values_a, *values_b) <= 0:
            continue
        for figure in figures:
            if figure != "p99" or min(len(values_a), len(values_b)) >= samples_for("p99"):
                yield replace(_time(metric, state, figure, values_a, values_b, paired=paired), failed=failed)


def count_failed(a: BenchResult, b: BenchResult, state: CacheState | None = None) -> Failed:
    """In one cache state, or in all."""
    by_a, by_b = ({(r.state, r.index) for r in run.counted if not r.ok and state in (None, r.state)} for run in (a, b))
    if a.header.workload_digest != b.header.workload_digest:
        return Failed(len(by_a), len(by_b))
    return Failed(len(by_a - by_b), len(by_b - by_a))


def _values(a: BenchResult, b: BenchResult, state: CacheState, read: Read) -> tuple[list[float], list[float], bool]:
    """Of the requests that were answered; of the same ones in the same order, where the workload is the same."""
    records_a, records_b, paired = _matched(a, b, lambda record: record.ok and record.state == state)
    if paired:
        pairs = zip(records_a, records_b, strict=True)
        times = [(x, y) for one, other in pairs if (x := read(one)) is not None and (y := read(other)) is not None]
        return [x for x, _ in times], [y for _, y in times], True
    return known(map(read, records_a)), known(map(read, records_b)), False


def _matched(
    a: BenchResult, b: BenchResult, wanted: Callable[[RequestRecord], bool]
) -> tuple[list[RequestRecord], list[RequestRecord], bool]:
    """In the order of sending."""
    of_a, of_b = (
        {(r.state, r.index): r for r in sorted(run.counted, key=lambda r: r.sent_s) if wanted(r)} for run in (a, b)
    )
    if a.header.workload_digest != b.header.workload_digest:
        return list(of_a.values()), list(of_b.values()), False
    both = [key for key in of_a if key in of_b]
    return [of_a[key] for key in both], [of_b[key] for key in both], True


def _time(
    metric: str, state: CacheState, figure: Figure, a: Sequence[float], b: Sequence[float], *, paired: bool
) -> Sample:
    drift = drift_of_difference(_scaled(a), _scaled(b), paired=paired)
    return Sample(
        metric=metric,
        unit="s",
        a=compute_figure(a, figure),
        b=compute_figure(b, figure),
        num_a=len(a),
        num_b=len(b),
        estimate=lambda level: widen(relative_difference(a, b, figure, paired=paired, level=level), drift),
        state=state,
        figure=figure,
        paired=paired,
    )


def _scaled(values: Sequence[float]) -> Array:
    """In units of their mean: what each adds to a relative difference."""
    sample = np.asarray(values, dtype=float)
    return np.asarray(sample / sample.mean())


def _throughput(a: BenchResult, b: BenchResult) -> Iterator[Sample]:
    """Tokens generated a second. Closed loops only: in an open one the arrivals decide it. Not of runs of which one is not
    complete: the two rates are of different requests then.

    The interval is that of tokens by seconds of requests, moved to where the runs' own difference is: how many are under way
    at the same time, and how the last ones trail off, is no matter of chance.
    """
    if not all(map(_has_throughput, (a, b))):
        return
    records_a, records_b, paired = _matched(a, b, lambda _: True)
    if paired and not len(records_a) == len(a.counted) == len(b.counted):
        return
    side_a, side_b = _tokens_and_times(records_a), _tokens_and_times(records_b)
    if not all(sum(tokens) > 0 < sum(times) for tokens, times in (side_a, side_b)):
        return
    rate_a, rate_b = (_tokens_per_s(run) for run in (a, b))
    moved = (rate_b / rate_a) / (_quotient(side_b) / _quotient(side_a))

    drift = drift_of_difference(
        *(_scaled(tokens) - _scaled(times) for tokens, times in (side_a, side_b)), paired=paired
    )

    def estimate(level: float) -> Estimate:
        found = relative_rate_difference(side_a, side_b, paired=paired, level=level)
        interval = found and ((1 + found[0]) * moved - 1, (1 + found[1]) * moved - 1)
        return widen(Estimate(rate_b / rate_a - 1, interval, min(len(records_a), len(records_b))), drift)

    yield Sample(
        "output_tokens_per_s",
        "tokens_per_s",
        rate_a,
        rate_b,
        len(records_a),
        len(records_b),
        estimate,
        paired=paired,
        more_is_better=True,
        failed=count_failed(a, b),
    )


def _has_throughput(run: BenchResult) -> bool:
    counts = all(r.output_tokens is not None for r in run.counted if r.ok)
    return run.header.load.arrivals == "closed" and counts and busy_time_s(run.counted, run.phases) > 0


def _tokens_and_times(records: Sequence[RequestRecord]) -> tuple[list[float], list[float]]:
    """A failed request took time and gave nothing."""
    return [float(r.output_tokens or 0) if r.ok else 0.0 for r in records], [r.e2e_latency_s for r in records]


def _quotient(side: tuple[Sequence[float], Sequence[float]]) -> float:
    return sum(side[0]) / sum(side[1])


def _tokens_per_s(run: BenchResult) -> float:
    return sum(_tokens_and_times(run.counted)[0]) / busy_time_s(run.counted, run.phases)


def _shares(a: BenchResult, b: BenchResult, slo: Slo | None) -> Iterator[Sample]:
    """Requests that went well, unless all of both did, and those within the limits."""
    if not a.counted or not b.counted:
        return
    if not all(record.ok for record in (*a.counted, *b.counted)):
        yield _share("success_rate", a, b, lambda record: record.ok)
    if slo is not None and not any(is_unknown(record, slo) for record in (*a.counted, *b.counted)):
        yield _share("goodput", a, b, lambda record: judge(record, slo))


def _share(metric: str, a: BenchResult, b: BenchResult, met: Callable[[RequestRecord], bool]) -> Sample:
    (met_a, num_a), (met_b, num_b) = ((sum(map(met, run.counted)), len(run.counted)) for run in (a, b))
    return Sample(
        metric=metric,
        unit="share",
        a=met_a / num_a,
        b=met_b / num_b,
        num_a=num_a,
        num_b=num_b,
        estimate=lambda level: proportion_difference((met_a, num_a), (met_b, num_b), level),
        more_is_better=True,
    )
