"""The times of the same requests without a tier and with it, and what of them is saved. Pure.

    gain = 1 - (time with the tier) / (time without), both summed over the same requests of the same repeat

Its interval is a bootstrap over prompts; all sends of a prompt stay together, so that every draw has the workload's own share
of cold sends. Runs differ by more than prompts: of several repeats it is at least as wide as Student's interval of the ratio of
the runs' times, on a logarithmic scale, with the spread of both variants' runs pooled (2 x (repeats - 1) degrees of freedom).
One run of each says nothing of how runs differ, so there a spread is assumed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import exp, log, sqrt
from statistics import fmean, variance
from typing import TypeVar

from longreach.measure.bench.statistics import Estimate, relative_difference
from longreach.measure.bench.values import BenchResult
from longreach.measure.tiers.places import Place
from longreach.measure.tiers.values import Gain

ASSUMED_SPREAD = 0.03
"""Standard deviation of the logarithm of a run's time, where a single run of each tells nothing of it. An assumption."""

_Z = 1.960
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Student's t at 97.5 % by degrees of freedom from 1; beyond, the last one is near enough and on the safe side."""

Key = TypeVar("Key")
_Sums = tuple[float, float]  # seconds without and with the step
Results = Mapping[int, BenchResult]
"""By repeat."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Times of the same requests without and with the step, in seconds, summed by repeat and unit, and by round."""

    num_pairs: int = 0
    by_unit: dict[tuple[int, int], _Sums] = field(default_factory=dict)
    by_round: dict[int, _Sums] = field(default_factory=dict)
    num_lost: int = 0  # requests that were answered without the step, and not with it

    @property
    def repeats(self) -> tuple[int, ...]:
        return tuple(sorted({repeat for repeat, _ in self.by_unit}))


Choose = Callable[[BenchResult, BenchResult], frozenset[int]]
"""The requests that are looked at, by index, of a run without the step and one with it."""


def pair_times(
    base: Results, variant: Results, places: Mapping[int, Place], name: str, choose: Choose | None = None
) -> Pairs:
    """Requests that both answered. `name` is the record's field."""
    by_unit, by_round, num_pairs, num_lost = dict[tuple[int, int], _Sums](), dict[int, _Sums](), 0, 0
    for repeat in sorted(base.keys() & variant.keys()):
        without, with_it = _times(base[repeat], name), _times(variant[repeat], name)
        chosen = without.keys() if choose is None else choose(base[repeat], variant[repeat])
        num_lost += len(without.keys() - with_it.keys())
        for index in sorted(without.keys() & with_it.keys() & chosen):
            place, times = places.get(index, Place(1, index)), (without[index], with_it[index])
            _add(by_unit, (repeat, place.unit), times)
            _add(by_round, place.round, times)
            num_pairs += 1
    return Pairs(num_pairs, by_unit, by_round, num_lost)


def _add(sums: dict[Key, _Sums], key: Key, times: _Sums) -> None:
    before = sums.get(key, (0.0, 0.0))
    sums[key] = (before[0] + times[0], before[1] + times[1])


def _times(result: BenchResult, name: str) -> dict[int, float]:
    times = {record.index: getattr(record, name) for record in result.counted if record.ok}
    return {index: seconds for index, seconds in times.items() if seconds is not None}


def drawn(pairs: Pairs) -> Estimate | None:
    """The relative change over prompts, with its bootstrap interval."""
    without, with_it = zip(*pairs.by_unit.values(), strict=True) if pairs.by_unit else ((), ())
    return relative_difference(without, with_it, paired=True) if sum(without) else None


def gain_of(pairs: Pairs) -> Gain | None:
    """What is saved, with its interval where there are prompts enough for one."""
    found = drawn(pairs)
    if found is None:
        return None
    if found.interval is None:
        return Gain(-found.value, None)
    low, high = -found.interval[1], -found.interval[0]
    spread = spread_of(pairs)
    half = spread.half(len(pairs.repeats))
    low, high = min(low, 1 - exp(spread.log_ratio + half)), max(high, 1 - exp(spread.log_ratio - half))
    return Gain(-found.value, (low, high))


@dataclass(frozen=True, slots=True)
class Spread:
    """How runs of one variant differ: `deviation` of the logarithm of their times; `log_ratio` is of with to without."""

    log_ratio: float
    deviation: float

    def half(self, num_repeats: int) -> float:
        """Half of Student's interval of the ratio with so many repeats, on the logarithmic scale."""
        degrees = 2 * (num_repeats - 1)
        quantile = _T[min(degrees, len(_T)) - 1] if degrees else _Z
        return quantile * self.deviation * sqrt(2 / num_repeats)


def spread_of(pairs: Pairs) -> Spread:
    """As it was seen; of a single repeat as it is assumed."""
    rows = [[sums for (of, _), sums in pairs.by_unit.items() if of == repeat] for repeat in pairs.repeats]
    logs = [[log(sum(sums[side] for sums in row)) for row in rows] for side in (0, 1)]
    seen = sqrt(fmean([variance(logs[0]), variance(logs[1])])) if len(rows) > 1 else ASSUMED_SPREAD
    return Spread(fmean(logs[1]) - fmean(logs[0]), seen)


def saved(sums: tuple[float, float]) -> float:
    """The share of the time without the step."""
    return 1 - sums[1] / sums[0] if sums[0] else 0.0
