"""Does a tier pay? Two variants request by request, and a verdict only where the interval allows one. Pure.

A run that was faster where no tier can help was faster by itself (see `drift`); a tier is then kept for what it saves beyond the
most that this can be. A run of which the engine counted requests of others proves nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, sqrt

from longreach.measure.bench.summary_values import Interval
from longreach.measure.bench.values import BenchResult
from longreach.measure.tiers.drift import beyond, find_drift
from longreach.measure.tiers.pairs import ASSUMED_SPREAD, Pairs, drawn, gain_of, pair_times, saved, spread_of
from longreach.measure.tiers.places import Place
from longreach.measure.tiers.values import TIER_WORDS, Gain, StepVerdict, TierStep, VariantFigures
from longreach.units import format_count, format_tokens

DEFAULT_MARGIN = 0.05
_FEWEST_REPEATS = 3  # to ask for: of two, Student's interval is wider than it need be
MOST_REPEATS = 50  # a difference that takes more is too small to matter


@dataclass(frozen=True, slots=True)
class Measured:
    """One variant: its figures, and its results by repeat."""

    figures: VariantFigures
    results: Mapping[int, BenchResult]


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
    drift: Gain | None = None  # how much faster the machine surely was in the run with the tier
    mixed: tuple[str, ...] = ()  # variants of which the engine counted requests of others, too


def decide_step(base: Measured, variant: Measured, places: Mapping[int, Place], margin: float) -> TierStep:
    """The variant against the best one before it. A tier that nothing was hit in is dropped, whatever the times say."""
    waits, answers = (pair_times(base.results, variant.results, places, field) for field in ("ttft_s", "e2e_latency_s"))
    tiers = variant.figures.variant
    added = tiers.added if base.figures.variant.tiers != tiers.tiers else None
    evidence = _Evidence(
        ttft=gain_of(waits),
        latency=gain_of(answers),
        tier="ARC policy" if added is None else f"{TIER_WORDS[added]} tier",
        tier_hits=None if added is None else variant.figures.hits_from(added),
        num_repeats=len(waits.repeats),
        margin=margin,
        num_lost=waits.num_lost,
        base_hits=base.figures.hit_share,
        drift=find_drift(base.results, variant.results, places),
        mixed=tuple(one.variant.title for one in (base.figures, variant.figures) if one.num_mixed_runs),
    )
    verdict, why = _judge(evidence)
    more_runs = _more_runs(waits, margin) if verdict == "not_enough_data" and not evidence.mixed else None
    return TierStep(
        base=base.figures.variant,
        variant=tiers,
        verdict=verdict,
        why=why,
        num_pairs=waits.num_pairs,
        num_repeats=evidence.num_repeats,
        ttft_gain=evidence.ttft,
        latency_gain=evidence.latency,
        gain_by_round=tuple((number, saved(sums)) for number, sums in sorted(waits.by_round.items())),
        added_hit_share=_added_hit_share(base.figures, variant.figures),
        more_runs=more_runs,
        drift=evidence.drift,
        is_mixed=bool(evidence.mixed),
    )


def _judge(found: _Evidence) -> tuple[StepVerdict, str]:
    if found.mixed:
        whose = " and of ".join(found.mixed)
        why = f"the engine of {whose} counted other requests than were sent here: neither hits nor times are the tiers' alone"
        return "not_enough_data", f"{why}; run it again where nobody else uses it"
    if found.tier_hits == 0:
        unasked = f"; {found.base_hits:.0%} came from the tiers before it" if found.base_hits else ""
        return "drop", f"not one prompt token came from the {found.tier}: whatever differs is not its doing{unasked}"
    if found.ttft is None or found.ttft.interval is None:
        return "not_enough_data", "too few prompts were answered with it and without"
    verdict, why = _judge_gain(found, found.ttft.interval)
    served = f"; {format_tokens(found.tier_hits)} prompt tokens came from the {found.tier}" if found.tier_hits else ""
    once = f"; one run each, and runs are taken to differ by {ASSUMED_SPREAD:.0%}" if found.num_repeats == 1 else ""
    return verdict, f"time to first token saved: {_text(found.ttft)}{why}{served}{once}"


def _judge_gain(found: _Evidence, interval: Interval) -> tuple[StepVerdict, str]:
    (low, high), asked = interval, f"the {found.margin:.0%} asked for"
    if high < found.margin:
        return "drop", f", less than {asked}"
    if low <= found.margin:
        return "not_enough_data", f", which may be more or less than {asked}{_faster(found.drift, '; ')}"
    if found.num_lost:
        lost = f"{format_count(found.num_lost, 'request')} that got an answer without it got none with it"
        return "not_enough_data", f" where both answered, but {lost}: it cannot win by leaving them out"
    if found.latency is not None and found.latency.interval is not None and found.latency.interval[1] < 0:
        return "drop", f", but whole answers take longer: saved {_text(found.latency)}"
    if found.drift is None or found.drift.interval is None:
        return "keep", f", more than {asked}"
    if beyond(low, found.drift.interval[1]) <= found.margin:
        quiet = f"repeat on a quiet machine, --repeats {_FEWEST_REPEATS}"
        return "not_enough_data", f"{_faster(found.drift, ', but ')}: {quiet}"
    return "keep", f", more than {asked} even beyond that{_faster(found.drift, ': ')}"


def _faster(drift: Gain | None, link: str) -> str:
    if drift is None:
        return ""
    return f"{link}the machine was faster by {_text(drift)} in this run where the tier could not help (first sends)"


def _text(gain: Gain) -> str:
    """What is saved is a plus: `+62.0 % (+58.3 to +65.1)`."""
    if gain.interval is None:
        return f"{100 * gain.value:+.1f} %"
    low, high = gain.interval
    return f"{100 * gain.value:+.1f} % ({100 * low:+.1f} to {100 * high:+.1f})"


def _more_runs(pairs: Pairs, margin: float) -> int | None:
    """How many repeats more are likely to move the interval off the margin, if prompts and runs go on to differ as they do."""
    found, repeats = drawn(pairs), len(pairs.repeats)
    if found is None or found.interval is None:
        return 1
    half, distance = (found.interval[1] - found.interval[0]) / 2, abs(-found.value - margin)
    spread = spread_of(pairs)
    for number in range(max(repeats + 1, _FEWEST_REPEATS), MOST_REPEATS + 1):
        told = half * sqrt(repeats / number) < distance
        if told and spread.half(number) < abs(spread.log_ratio - log(1 - margin)):
            return number - repeats
    return None


def _added_hit_share(base: VariantFigures, variant: VariantFigures) -> float | None:
    if base.hit_share is None or variant.hit_share is None:
        return None
    return variant.hit_share - base.hit_share
