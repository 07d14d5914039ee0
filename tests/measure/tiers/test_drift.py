"""Runs that were faster by themselves, and runs that were not ours alone, prove nothing for a tier."""

from dataclasses import replace

import pytest
from tests.measure.tiers.test_decide import CPU, GPU, PLACES, measured, times
from tests.measure.tiers.tier_cases import Script, result_of

from longreach.measure.bench.values import BenchResult, Load
from longreach.measure.tiers.decide import decide_step
from longreach.measure.tiers.drift import beyond, find_drift
from longreach.measure.tiers.values import TierStep


def judged(without: list[Script], with_it: list[Script]) -> TierStep:
    base, variant = (
        measured(tiers, [result_of(script) for script in scripts])
        for tiers, scripts in ((GPU, without), (CPU, with_it))
    )
    return decide_step(base, variant, PLACES, 0.05)


def gpu(cold_s: float, warm_s: float, seed: int = 1) -> Script:
    return Script(times(cold_s, warm_s, seed), hits=(("device", 0),))


def cpu(cold_s: float, warm_s: float, seed: int = 2) -> Script:
    return Script(times(cold_s, warm_s, seed), hits=(("host", 9_000),))


@pytest.mark.parametrize(
    "runs",
    [
        ([gpu(0.447, 0.447)], [cpu(0.164, 0.22)]),
        ([gpu(0.447, 0.447, seed) for seed in (1, 3)], [cpu(0.164, 0.22, seed) for seed in (2, 4)]),
    ],
    ids=["one run each", "two runs each"],
)
def test_a_machine_that_was_faster_where_no_tier_could_help_keeps_no_tier(
    runs: tuple[list[Script], list[Script]],
) -> None:
    found = judged(*runs)
    assert found.verdict == "not_enough_data"
    assert found.drift is not None
    assert found.drift.value == pytest.approx(1 - 0.164 / 0.447, abs=0.03)
    assert "the machine was faster by +63" in found.why
    assert "repeat on a quiet machine, --repeats 3" in found.why
    assert found.more_runs == 3 - len(runs[0])


def test_a_large_gain_is_kept_beyond_a_machine_that_was_a_little_faster() -> None:
    found = judged([gpu(2, 2)], [cpu(1.7, 0.2)])
    assert found.verdict == "keep"
    assert found.drift is not None
    assert "even beyond that: the machine was faster by +15" in found.why


@pytest.mark.parametrize("cold_s", [1.88, 2.0, 2.6], ids=["faster by noise", "equal", "storing costs"])
def test_first_sends_within_the_spread_of_runs_show_no_drift(cold_s: float) -> None:
    found = judged([gpu(2, 2)], [cpu(cold_s, 0.2)])
    assert (found.verdict, found.drift) == ("keep", None)


def test_a_gain_that_is_all_drift_is_nothing() -> None:
    assert beyond(0.5, 0.5) == 0
    assert beyond(0.75, 0.5) == pytest.approx(0.5)
    assert beyond(0.1, 0.5) < 0
    assert beyond(0.9, 1.0) < 0


def runs_of(load: Load, cached: int = 0) -> tuple[dict[int, BenchResult], dict[int, BenchResult]]:
    """First sends that take half as long with the tier, of which it may have served a part."""
    without, with_it = (replace(script, load=load) for script in (gpu(2, 2), replace(cpu(1, 0.2), cached=cached)))
    return {1: result_of(without)}, {1: result_of(with_it)}


def test_first_sends_that_a_tier_served_in_part_are_no_control() -> None:
    """Of a trace: prompts that are sent once and share their beginning with others."""
    assert find_drift(*runs_of(Load()), PLACES) is not None
    assert find_drift(*runs_of(Load(), cached=512), PLACES) is None


def test_first_sends_that_wait_for_repeats_are_no_control() -> None:
    """The tier shortens the repeats that they wait for."""
    assert find_drift(*runs_of(Load("trace", None)), PLACES) is None
    assert find_drift(*runs_of(Load(concurrency=2)), PLACES) is not None
    mixed = {index: replace(place, round=1 + index % 2) for index, place in PLACES.items()}
    assert find_drift(*runs_of(Load(concurrency=2)), mixed) is None


@pytest.mark.parametrize("hits", [0, 9_000], ids=["no hits", "hits"])
@pytest.mark.parametrize("whose", ["GPU", "GPU+CPU"])
def test_runs_that_others_used_the_engine_in_decide_nothing(whose: str, hits: int) -> None:
    base, variant = gpu(2, 2), replace(cpu(2, 0.2), hits=(("host", hits),))
    found = judged([replace(base, attributed=whose != "GPU")], [replace(variant, attributed=whose == "GPU")])
    assert (found.verdict, found.is_mixed, found.more_runs) == ("not_enough_data", True, None)
    assert f"the engine of {whose} counted other requests than were sent here" in found.why


def test_a_server_that_counts_nothing_is_not_taken_for_a_shared_one() -> None:
    runs = [replace(gpu(2, 2), hits=(), attributed=False)], [replace(cpu(2, 0.2), hits=(), attributed=False)]
    assert (judged(*runs).verdict, judged(*runs).is_mixed) == ("keep", False)
