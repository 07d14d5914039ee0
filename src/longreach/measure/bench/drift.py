"""How much wider an interval must be because requests that follow each other are alike. Pure.

A machine warms up, another process comes and goes: neighbours then share what they owe to the moment, and a run of n requests
shows less than n independent ones. Blocks of neighbours tell how much less: were all independent, the means of k blocks would
vary as the spread of single requests says; the more they vary beyond it, the more drift there was.
"""

from dataclasses import replace
from math import sqrt

import numpy as np

from longreach.measure.bench.resampling import Array
from longreach.measure.bench.statistics import Estimate

_LEAST_BLOCKS = 4


def drift_factor(series: Array) -> float:
    """How many times the variance of the mean is that of as many independent values; `series` is in the order of sending.
    At least 1: that neighbours differ more than chance has them makes nothing surer.
    """
    num_blocks = max(_LEAST_BLOCKS, round(len(series) ** (1 / 3)) + 2)
    variance = float(series.var(ddof=1)) if len(series) >= 2 * num_blocks else 0.0
    if variance <= 0:
        return 1.0
    means = [block.mean() for block in np.array_split(series, num_blocks)]
    return float(max(1.0, np.var(means, ddof=1) / num_blocks / (variance / len(series))))


def drift_of_difference(a: Array, b: Array, *, paired: bool) -> float:
    """That of the difference of two samples, each given as what every request adds to its figure (on average zero, or one)."""
    if paired:
        return drift_factor(b - a)
    spreads = [(sample.var() / len(sample), drift_factor(sample)) for sample in (a, b)]
    total = sum(spread for spread, _ in spreads)
    return float(sum(spread * factor for spread, factor in spreads) / total) if total > 0 else 1.0


def widen(found: Estimate, factor: float) -> Estimate:
    """The interval stretched about its figure."""
    if found.interval is None:
        return found
    low, high = (found.value + sqrt(factor) * (end - found.value) for end in found.interval)
    return replace(found, interval=(low, high))
