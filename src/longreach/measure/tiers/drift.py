"""Was the machine another one in the run with the tier? The first send of a prompt is the control: no tier can serve it. Pure.

With a tier it can only cost. Where first sends surely come sooner with it, something other than the tier made the run faster,
and made the repeats faster, too.
"""

from collections.abc import Mapping

from longreach.measure.bench.values import BenchResult
from longreach.measure.tiers.pairs import Results, gain_of, pair_times
from longreach.measure.tiers.places import Place
from longreach.measure.tiers.values import Gain


def find_drift(base: Results, variant: Results, places: Mapping[int, Place]) -> Gain | None:
    """How much sooner the first sends came with the step; None unless the whole interval says that they did."""

    def choose(without: BenchResult, with_it: BenchResult) -> frozenset[int]:
        return _controls(without, with_it, places)

    found = gain_of(pair_times(base, variant, places, "ttft_s", choose))
    return found if found and found.interval and found.interval[0] > 0 else None


def beyond(gain: float, drift: float) -> float:
    """What is saved against a run that was as much faster by itself: the ratio of the two ratios."""
    return 1 - (1 - gain) / (1 - drift) if drift < 1 else -1.0


def _controls(without: BenchResult, with_it: BenchResult, places: Mapping[int, Place]) -> frozenset[int]:
    """First sends that found nothing more with the step than without, and ran beside no other request than such. In an open
    loop there are none: there they wait for repeats, which a tier may shorten.
    """
    load = without.header.load
    if load.arrivals != "closed" or load.concurrency is None:
        return frozenset()
    ours, theirs = _cached(without), _cached(with_it)
    cold = {
        index
        for index in ours.keys() & theirs.keys() & places.keys()
        if places[index].round == 1 and theirs[index] <= ours[index]
    }
    others, reach = places.keys() - cold, load.concurrency - 1
    return frozenset(
        index for index in cold if not any(near in others for near in range(index - reach, index + reach + 1))
    )


def _cached(result: BenchResult) -> dict[int, int]:
    """Cached tokens of every answer that tells them."""
    return {
        record.index: record.cached_tokens
        for record in result.counted
        if record.ok and record.cached_tokens is not None
    }
