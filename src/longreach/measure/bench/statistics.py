"""Figures of a sample and how sure they are: percentiles, bootstrap intervals, differences, proportions. Pure.

A percentile interpolates linearly between the two nearest samples (numpy's default). An interval is the percentile
bootstrap, widened for small samples as Student's t is against the normal, and seeded: the same values give the same one.
There is none where the sample cannot carry it: a mean takes 8 values, P50 10, P90 100, P99 1,000. With fewer it misses the
truth far more often than once in twenty (P99 of 100 values: the largest of them lies below the truth in 37 % of runs).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log, sqrt
from statistics import NormalDist

import numpy as np

from longreach.measure.bench.resampling import (
    SHARES,
    Array,
    equally_many,
    replicate,
    replicate_interval,
    replicate_pairs,
)
from longreach.measure.bench.summary_values import Distribution, Figure, Interval

LEVEL = 0.95
MIN_SAMPLES = 8
_LEAST: dict[Figure, int] = {"mean": MIN_SAMPLES, "p50": 10, "p90": 100, "p99": 1000}
_MOST_SAMPLES = 10**6  # beyond it no number of requests is worth naming


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure made from samples; `interval` is None where they cannot carry one."""

    value: float
    interval: Interval | None
    num_samples: int  # of the smaller side, where two are compared


def samples_for(figure: Figure, level: float = LEVEL) -> int:
    """How many values an interval of this figure takes at least. A surer one may take more: with p^n above its tail, the
    largest value itself lies below percentile p in more runs than the interval may miss.
    """
    share = SHARES.get(figure)
    beyond_reach = 0 if share is None else ceil(log((1 - level) / 2) / log(share))
    return max(_LEAST[figure], beyond_reach)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` (0..1) of the sample does not exceed, between samples by linear interpolation."""
    return float(np.quantile(np.asarray(values, dtype=float), share))


def compute_figure(values: Sequence[float], figure: Figure) -> float:
    """The mean, or a percentile by its name."""
    return float(np.mean(values)) if figure == "mean" else percentile(values, SHARES[figure])


def describe(values: Sequence[float], seed: int = 0) -> Distribution:
    """Mean, percentiles and ends of at least one value, with the intervals that so many values carry."""
    sample = np.sort(np.asarray(values, dtype=float))
    p50, p90, p99 = (float(value) for value in np.quantile(sample, list(SHARES.values())))
    return Distribution(
        num_samples=len(sample),
        mean=float(sample.mean()),
        p50=p50,
        p90=p90,
        p99=p99,
        min=float(sample[0]),
        max=float(sample[-1]),
        mean_interval=_figure_interval(sample, "mean", seed),
        p50_interval=_figure_interval(sample, "p50", seed),
        p90_interval=_figure_interval(sample, "p90", seed),
        p99_interval=_figure_interval(sample, "p99", seed),
    )


def mean_difference(first: Sequence[float], second: Sequence[float], seed: int = 0) -> Interval | None:
    """mean(second) - mean(first) of two independent samples."""
    a, b = _samples(first, second)
    if min(len(a), len(b)) < MIN_SAMPLES:
        return None
    rng = np.random.default_rng(seed)
    of_a, of_b = equally_many(replicate(a, "mean", rng), replicate(b, "mean", rng))
    return replicate_interval(of_b - of_a, min(len(a), len(b)), LEVEL)


def paired_difference(first: Sequence[float], second: Sequence[float], seed: int = 0) -> Interval | None:
    """The mean of second - first over pairs: the same request under two conditions. The sequences are equally long."""
    a, b = _samples(first, second)
    return _figure_interval(np.sort(b - a), "mean", seed)


def relative_difference(
    first: Sequence[float],
    second: Sequence[float],
    figure: Figure = "mean",
    *,
    paired: bool = False,
    level: float = LEVEL,
    seed: int = 0,
) -> Estimate:
    """figure(second) / figure(first) - 1 of positive values. `paired`: the n-th of both belong together and are drawn
    together, so that what they share (the length of the prompt) does not widen the interval.
    """
    value = compute_figure(second, figure) / compute_figure(first, figure) - 1
    num_samples = min(len(first), len(second))
    if num_samples < samples_for(figure, level):
        return Estimate(value, None, num_samples)
    (a, b), rng = _samples(first, second), np.random.default_rng(seed)
    if paired:
        of_a, of_b = replicate_pairs(a, b, figure, rng)
    else:
        of_a, of_b = equally_many(replicate(np.sort(a), figure, rng), replicate(np.sort(b), figure, rng))
    return Estimate(value, replicate_interval(of_b / of_a - 1, num_samples, level), num_samples)


def relative_rate_difference(
    first: tuple[Sequence[float], Sequence[float]],
    second: tuple[Sequence[float], Sequence[float]],
    *,
    paired: bool = False,
    level: float = LEVEL,
    seed: int = 0,
) -> Interval | None:
    """How much larger sum(gains) / sum(times) is in the second of two samples of (gains, times): tokens by seconds. `paired` as
    above.

    In a closed loop the rate is the number of requests at once times this quotient (renewal and reward), so its relative
    difference is that of the throughput.
    """
    num_samples = min(len(first[0]), len(second[0]))
    if num_samples < MIN_SAMPLES:
        return None
    rates = []
    for (gains, times), own_seed in ((first, seed), (second, seed if paired else seed + 1)):
        rng = np.random.default_rng(own_seed)  # the same one draws the same requests
        of_gains, of_times = replicate_pairs(*_samples(gains, times), "mean", rng)
        rates.append(of_gains / of_times)
    of_first, of_second = equally_many(*rates)
    return replicate_interval(of_second / of_first - 1, num_samples, level)


def proportion_interval(num_met: int, num_all: int, level: float = LEVEL) -> Interval:
    """Wilson's interval of a share, which stays within 0..1 and is honest at 0 of n and n of n."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, spread = num_met / num_all, z * z / num_all
    middle = (share + spread / 2) / (1 + spread)
    half = sqrt(spread * (share * (1 - share) + spread / 4)) / (1 + spread)
    low = 0.0 if num_met == 0 else max(0.0, middle - half)
    return low, 1.0 if num_met == num_all else min(1.0, middle + half)


def proportion_difference(first: tuple[int, int], second: tuple[int, int], level: float = LEVEL) -> Estimate:
    """share(second) - share(first) of two independent (met, all), by Newcombe's square-and-add of Wilson's intervals."""
    (p, (p_low, p_high)), (q, (q_low, q_high)) = (
        (met / of, proportion_interval(met, of, level)) for met, of in (first, second)
    )
    value = q - p
    low = value - sqrt((q - q_low) ** 2 + (p_high - p) ** 2)
    high = value + sqrt((q_high - q) ** 2 + (p - p_low) ** 2)
    return Estimate(value, (max(-1.0, low), min(1.0, high)), min(first[1], second[1]))


def samples_that_would_do(num_samples: int, half_width: float, wanted_half_width: float) -> int | None:
    """How many samples shrink an interval to the wanted half width, as 1 / sqrt(n) does; None when no number is sensible."""
    if wanted_half_width <= 0:
        return None
    needed = num_samples * (half_width / wanted_half_width) ** 2
    return ceil(needed) if needed <= _MOST_SAMPLES else None


def _samples(first: Sequence[float], second: Sequence[float]) -> tuple[Array, Array]:
    return np.asarray(first, dtype=float), np.asarray(second, dtype=float)


def _figure_interval(ordered: Array, figure: Figure, seed: int) -> Interval | None:
    if len(ordered) < samples_for(figure):
        return None
    return replicate_interval(replicate(ordered, figure, np.random.default_rng(seed)), len(ordered), LEVEL)
