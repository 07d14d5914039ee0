"""Does a tier pay? Two variants request by request, and a verdict only where the interval allows one. Pure.

    gain = 1 - (time with the tier) / (time without), both summed over the same requests of the same repeat

Its interval is a bootstrap over prompts; all sends of a prompt stay together, so that every draw has the workload's own share
of cold sends. Runs differ by more than prompts: of several repeats it is at least as wide as Student's interval of the ratio of
the runs' times, on a logarithmic scale, with the spread of both variants' runs pooled (2 x (repeats - 1) degrees of freedom).
One run of each says nothing of how runs differ, so there a spread is assumed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp, log, sqrt
from statistics import fmean, variance
from typing import TypeVar

from longreach.measure.bench.statistics import Estimate, relative_difference
from longreach.measure.bench.values import BenchResult
from longreach.measure.tiers.places import Place
from longreach.measure.tiers.values import TIER_WORDS, Gain, StepVerdict, TierStep, VariantFigures
from longreach.units import format_count, format_tokens

DEFAULT_MARGIN = 0.05
ASSUMED_SPREAD = 0.03
"""Standard deviation of the logarithm of a run's time, where a single run of each tells nothing of it. An assumption."""

_Z = 1.960
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Student's t at 97.5 % by degrees of freedom from 1; beyond, the last one is near enough and on the safe side."""

_FEWEST_REPEATS = 3  # to ask for: of two, Student's interval is wider than it need be
MOST_REPEATS = 50  # a difference that takes more is too small to matter


Key = TypeVar("Key")
_Sums = tuple[float, float]  # seconds without and with the step


@dataclass(frozen=True, slots=True)
class Measured:
    """One variant: its figures, and its results by repeat."""

    figures: VariantFigures
    results: Mapping[int, BenchResult]


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Times of the same requests without and with the step, in seconds, summed by repeat and unit, and by round."""

    num_pairs: int = 0
    by_unit: dict[tuple[int, int], _Sums] = field(default_factory=dict)
    by_round: dict[int, _Sums] = field(default_factory=dict)
    num_lost: int = 0  # requests that were answered without the step, and not with it

    @property
    def repeats(self) -> tuple[int, ...]:
        return tuple(sorted({repeat for repeat, _ in self.by_unit}))


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What a verdict is made of. `tier_hits`: prompt tokens from the tier in question; None: not counted, or no new tier."""

    ttft: Gain | None
    latency: Gain | None
    tier: str
    tier_hits: int | None
    num_repeats: int
    margin: float
    num_lost: int = 0
    base_hits: float | None = None  # share of prompt tokens that were cached without the tier


def decide_step(base: Measured, variant: Measured, places: Mapping[int, Place], margin: float) -> TierStep:
    """The variant against the best one before it. A tier that nothing was hit in is dropped, whatever the times say."""
    waits, answers = (_pairs(base, variant, places, field) for field in ("ttft_s", "e2e_latency_s"))
    tiers = variant.figures.variant
    added = tiers.added if base.figures.variant.tiers != tiers.tiers else None
    evidence = _Evidence(
        ttft=_gain(waits),
        latency=_gain(answers),
        tier="ARC policy" if added is None else f"{TIER_WORDS[added]} tier",
        tier_hits=None if added is None else variant.figures.hits_from(added),
        num_repeats=len(waits.repeats),
        margin=margin,
        num_lost=waits.num_lost,
        base_hits=base.figures.hit_share,
    )
    verdict, why = _judge(evidence)
    return TierStep(
        base=base.figures.variant,
        variant=tiers,
        verdict=verdict,
        why=why,
        num_pairs=waits.num_pairs,
        num_repeats=evidence.num_repeats,
        ttft_gain=evidence.ttft,
        latency_gain=evidence.latency,
        gain_by_round=tuple((number, _saved(sums)) for number, sums in sorted(waits.by_round.items())),
        added_hit_share=_added_hit_share(base.figures, variant.figures),
        more_runs=_more_runs(waits, margin) if verdict == "not_enough_data" else None,
    )


def _judge(found: _Evidence) -> tuple[StepVerdict, str]:
    if found.tier_hits == 0:
        unasked = f"; {found.base_hits:.0%} came from the tiers before it" if found.base_hits else ""
        return "drop", f"not one prompt token came from the {found.tier}: whatever differs is not its doing{unasked}"
    if found.ttft is None or found.ttft.interval is None:
        return "not_enough_data", "too few prompts were answered with it and without"
    low, high = found.ttft.interval
    served = (
        ""
        if found.tier_hits is None
        else f"; {format_tokens(found.tier_hits)} prompt tokens came from the {found.tier}"
    )
    once = f"; one run each, and runs are taken to differ by {ASSUMED_SPREAD:.0%}" if found.num_repeats == 1 else ""
    said, asked = f"time to first token {_change(found.ttft)}", f"the {found.margin:.0%} asked for"
    if high < found.margin:
        return "drop", f"{said}: less saved than {asked}{served}{once}"
    if low <= found.margin:
        return "not_enough_data", f"{said}: it may save more or less than {asked}{served}{once}"
    if found.num_lost:
        lost = f"{format_count(found.num_lost, 'request')} that got an answer without it got none with it"
        return "not_enough_data", f"{said} where both answered, but {lost}: it cannot win by leaving them out"
    if found.latency is not None and found.latency.interval is not None and found.latency.interval[1] < 0:
        return "drop", f"{said}, but whole answers take longer, {_change(found.latency)}{served}{once}"
    return "keep", f"{said}: more saved than {asked}{served}{once}"


def _change(gain: Gain) -> str:
    """A saving is a minus: `-62.0 % (-65.1 to -58.3)`."""
    if gain.interval is None:
        return f"{0.0 - 100 * gain.value:+.1f} %"
    low, high = gain.interval
    return f"{0.0 - 100 * gain.value:+.1f} % ({0.0 - 100 * high:+.1f} to {0.0 - 100 * low:+.1f})"


def _pairs(base: Measured, variant: Measured, places: Mapping[int, Place], name: str) -> _Pairs:
    """Requests that both answered. `name` is the record's field."""
    by_unit, by_round, num_pairs, num_lost = dict[tuple[int, int], _Sums](), dict[int, _Sums](), 0, 0
    for repeat in sorted(base.results.keys() & variant.results.keys()):
        without, with_it = _times(base.results[repeat], name), _times(variant.results[repeat], name)
        num_lost += len(without.keys() - with_it.keys())
        for index in sorted(without.keys() & with_it.keys()):
            place, times = places.get(index, Place(1, index)), (without[index], with_it[index])
            _add(by_unit, (repeat, place.unit), times)
            _add(by_round, place.round, times)
            num_pairs += 1
    return _Pairs(num_pairs, by_unit, by_round, num_lost)


def _add(sums: dict[Key, _Sums], key: Key, times: _Sums) -> None:
    before = sums.get(key, (0.0, 0.0))
    sums[key] = (before[0] + times[0], before[1] + times[1])


def _times(result: BenchResult, name: str) -> dict[int, float]:
    times = {record.index: getattr(record, name) for record in result.counted if record.ok}
    return {index: seconds for index, seconds in times.items() if seconds is not None}


def _drawn(pairs: _Pairs) -> Estimate | None:
    """The relative change over prompts, with its bootstrap interval."""
    without, with_it = zip(*pairs.by_unit.values(), strict=True) if pairs.by_unit else ((), ())
    return relative_difference(without, with_it, paired=True) if sum(without) else None


def _gain(pairs: _Pairs) -> Gain | None:
    found = _drawn(pairs)
    if found is None:
        return None
    if found.interval is None:
        return Gain(-found.value, None)
    low, high = -found.interval[1], -found.interval[0]
    spread = _spread(pairs)
    half = spread.half(len(pairs.repeats))
    low, high = min(low, 1 - exp(spread.log_ratio + half)), max(high, 1 - exp(spread.log_ratio - half))
    return Gain(-found.value, (low, high))


@dataclass(frozen=True, slots=True)
class _Spread:
    """How runs of one variant differ: `deviation` of the logarithm of their times; `log_ratio` is of with to without."""

    log_ratio: float
    deviation: float

    def half(self, num_repeats: int) -> float:
        """Half of Student's interval of the ratio with so many repeats, on the logarithmic scale."""
        degrees = 2 * (num_repeats - 1)
        quantile = _T[min(degrees, len(_T)) - 1] if degrees else _Z
        return quantile * self.deviation * sqrt(2 / num_repeats)


def _spread(pairs: _Pairs) -> _Spread:
    """As it was seen; of a single repeat as it is assumed."""
    rows = [[sums for (of, _), sums in pairs.by_unit.items() if of == repeat] for repeat in pairs.repeats]
    logs = [[log(sum(sums[side] for sums in row)) for row in rows] for side in (0, 1)]
    seen = sqrt(fmean([variance(logs[0]), variance(logs[1])])) if len(rows) > 1 else ASSUMED_SPREAD
    return _Spread(fmean(logs[1]) - fmean(logs[0]), seen)


def _saved(sums: tuple[float, float]) -> float:
    return 1 - sums[1] / sums[0] if sums[0] else 0.0


def _more_runs(pairs: _Pairs, margin: float) -> int | None:
    """How many repeats more are likely to move the interval off the margin, if prompts and runs go on to differ as they do."""
    found, repeats = _drawn(pairs), len(pairs.repeats)
    if found is None or found.interval is None:
        return 1
    half, distance = (found.interval[1] - found.interval[0]) / 2, abs(-found.value - margin)
    spread = _spread(pairs)
    for number in range(max(repeats + 1, _FEWEST_REPEATS), MOST_REPEATS + 1):
        told = half * sqrt(repeats / number) < distance
        if told and spread.half(number) < abs(spread.log_ratio - log(1 - margin)):
            return number - repeats
    return None


def _added_hit_share(base: VariantFigures, variant: VariantFigures) -> float | None:
    if base.hit_share is None or variant.hit_share is None:
        return None
    return variant.hit_share - base.hit_share
