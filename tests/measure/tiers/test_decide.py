from collections.abc import Sequence
from random import Random

import pytest
from tests.measure.tiers.tier_cases import Script, result_of

from longreach.measure.bench.values import BenchResult
from longreach.measure.tiers.decide import Measured, decide_step
from longreach.measure.tiers.figures import variant_figures
from longreach.measure.tiers.places import Place
from longreach.measure.tiers.values import TierSet, TierStep

NUM_PROMPTS, ROUNDS, TOKENS = 12, 3, 1_000
PLACES = {index: Place(1 + index // NUM_PROMPTS, index % NUM_PROMPTS) for index in range(NUM_PROMPTS * ROUNDS)}
GPU, CPU = TierSet(("gpu",)), TierSet(("gpu", "cpu"), "lru")


def times(cold_s: float, warm_s: float, seed: int, noise: float = 0.02) -> list[float]:
    """Cold once, warm afterwards; each a little off."""
    rng = Random(seed)
    means = [cold_s] * NUM_PROMPTS + [warm_s] * (NUM_PROMPTS * (ROUNDS - 1))
    return [mean * rng.gauss(1, noise) for mean in means]


def measured(variant: TierSet, results: Sequence[BenchResult]) -> Measured:
    return Measured(variant_figures(variant, results, PLACES), dict(enumerate(results, 1)))


def step(without: Sequence[list[float]], with_it: Sequence[list[float]], hits: int | None = 20_000) -> TierStep:
    """A run of each for every list of times; `hits` come from the CPU tier, None: the server does not count."""
    found = () if hits is None else (("device", 0), ("host", hits))
    base = measured(GPU, [result_of(Script(run, hits=(("device", 0),))) for run in without])
    return decide_step(base, measured(CPU, [result_of(Script(run, hits=found)) for run in with_it]), PLACES, 0.05)


def test_a_tier_that_saves_most_of_the_wait_is_kept() -> None:
    found = step([times(2, 2, seed) for seed in (1, 3)], [times(2.1, 0.2, seed) for seed in (2, 4)])
    assert found.verdict == "keep"
    assert found.ttft_gain is not None
    assert found.ttft_gain.interval is not None
    low, high = found.ttft_gain.interval
    truth = 1 - (2.1 + 2 * 0.2) / 6
    assert low < truth < high
    assert high - low < 0.05
    assert "40,000 prompt tokens came from the CPU tier" in found.why


def test_what_storing_costs_shows_in_the_first_round() -> None:
    found = dict(step([times(2, 2, 1)], [times(2.4, 0.2, 2)]).gain_by_round)
    assert found[1] == pytest.approx(-0.2, abs=0.03)
    assert found[2] == pytest.approx(0.9, abs=0.03)


def test_a_tier_that_nothing_was_hit_in_is_dropped_however_fast_it_looks() -> None:
    found = step([times(2, 2, 1)], [times(1, 1, 2)], hits=0)
    assert (found.verdict, found.more_runs) == ("drop", None)
    assert "not one prompt token came from the CPU tier" in found.why


@pytest.mark.parametrize("factor", [0.99, 1.0, 1.2], ids=["hardly faster", "equal", "slower"])
def test_a_tier_that_surely_saves_less_than_the_margin_is_dropped(factor: float) -> None:
    without, with_it = (
        [times(2 * of, 2 * of, seed) for seed in seeds] for of, seeds in ((1, (1, 3)), (factor, (2, 4)))
    )
    assert step(without, with_it).verdict == "drop"


def test_a_gain_at_the_margin_asks_for_more_runs() -> None:
    runs = [times(2, 2, seed, noise=0.1) for seed in range(2)], [times(1.9, 1.9, seed, noise=0.1) for seed in (7, 8)]
    found = step(*runs)
    assert found.verdict == "not_enough_data"
    assert found.more_runs is None or found.more_runs >= 1


def test_runs_that_differ_among_themselves_decide_nothing() -> None:
    """The prompts of each run agree; the machine was busy in one of them."""
    found = step([times(2, 2, 1), times(2.4, 2.4, 2)], [times(1.4, 1.4, 3), times(2.2, 2.2, 4)])
    assert (found.verdict, found.num_repeats) == ("not_enough_data", 2)
    assert found.more_runs is not None
    assert 1 <= found.more_runs <= 20


def test_runs_that_differ_by_chance_are_told_apart_no_more_often_than_said() -> None:
    """No tier at all, in three turns of which each start is a tenth faster or slower; prompts of a start agree."""
    rng, missed = Random(5), 0
    for _ in range(60):
        without, with_it = (
            [times(2 * (f := rng.gauss(1, 0.1)), 2 * f, rng.randrange(10**6)) for _ in range(3)] for _ in "ab"
        )
        found = step(without, with_it)
        assert found.ttft_gain is not None
        assert found.ttft_gain.interval is not None
        missed += not found.ttft_gain.interval[0] <= 0 <= found.ttft_gain.interval[1]
    assert missed <= 8


def test_single_runs_that_differ_as_runs_do_keep_nothing() -> None:
    """A machine that was faster in the one run with a tier by what is assumed of any two runs, and a margin more."""
    found = step([times(2, 2, 1)], [times(1.78, 1.78, 2)])
    assert (found.verdict, found.num_repeats) == ("not_enough_data", 1)
    assert found.more_runs is not None
    assert "one run each, and runs are taken to differ by 3%" in found.why


def test_no_tier_at_all_is_hardly_ever_kept_after_single_runs() -> None:
    """200 comparisons of the same with itself, each start faster or slower by 3 %."""
    rng, kept = Random(7), 0
    for _ in range(200):
        one, other = (2 * rng.gauss(1, 0.03) for _ in "ab")
        kept += (
            step([times(one, one, rng.randrange(10**6))], [times(other, other, rng.randrange(10**6))]).verdict == "keep"
        )
    assert kept <= 2


def test_a_difference_that_is_too_small_to_find_asks_for_no_runs() -> None:
    found = step([times(2, 2, 1), times(4, 4, 2)], [times(2.9, 2.9, 3), times(2, 2, 4)])
    assert (found.verdict, found.more_runs) == ("not_enough_data", None)


def test_repeats_that_agree_decide() -> None:
    found = step([times(2, 2, seed) for seed in (1, 2, 3)], [times(2, 1, seed) for seed in (4, 5, 6)])
    assert (found.verdict, found.num_repeats, found.num_pairs) == ("keep", 3, 3 * NUM_PROMPTS * ROUNDS)
    assert "one run each" not in found.why


def test_few_prompts_decide_nothing() -> None:
    few = {index: Place(1, index % 4) for index in range(8)}
    base, variant = ([result_of(Script([seconds] * 8, hits=(("host", 10),)))] for seconds in (2.0, 1.0))
    found = decide_step(
        Measured(variant_figures(GPU, base, few), {1: base[0]}),
        Measured(variant_figures(CPU, variant, few), {1: variant[0]}),
        few,
        0.05,
    )
    assert (found.verdict, found.more_runs) == ("not_enough_data", 1)


def test_a_server_that_does_not_count_hits_is_judged_by_time() -> None:
    assert step([times(2, 2, 1)], [times(2, 0.2, 2)], hits=None).verdict == "keep"


def test_a_failed_request_is_in_no_pair() -> None:
    base = measured(GPU, [result_of(Script(times(2, 2, 1)))])
    variant = measured(CPU, [result_of(Script(times(2, 1, 2), hits=(("host", 9),), failed=frozenset({3, 5})))])
    found = decide_step(base, variant, PLACES, 0.05)
    assert (found.num_pairs, variant.figures.num_failed) == (NUM_PROMPTS * ROUNDS - 2, 2)
    assert found.verdict == "not_enough_data", "it does not win by leaving out what failed"
    assert "2 requests that got an answer without it got none with it" in found.why


def test_what_failed_without_the_tier_does_not_speak_against_it() -> None:
    base = measured(GPU, [result_of(Script(times(2, 2, 1), failed=frozenset({3})))])
    variant = measured(CPU, [result_of(Script(times(2, 1, 2), hits=(("host", 9),)))])
    assert decide_step(base, variant, PLACES, 0.05).verdict == "keep"


def test_a_first_token_that_is_paid_for_with_a_longer_answer_is_no_gain() -> None:
    base = measured(GPU, [result_of(Script(times(2, 2, 1), answer_s=1.0))])
    variant = measured(CPU, [result_of(Script(times(1.5, 1.5, 2), hits=(("host", 9),), answer_s=2.0))])
    found = decide_step(base, variant, PLACES, 0.05)
    assert found.verdict == "drop"
    assert "whole answers take longer" in found.why


def test_the_same_times_are_judged_wrongly_no_more_often_than_said() -> None:
    """No tier at all, 60 times over: an interval of 95 % misses the truth about one time in twenty."""
    missed = 0
    for seed in range(60):
        found = step([times(2, 2, 3 * seed + 1, 0.2)], [times(2, 2, 3 * seed + 2, 0.2)])
        assert found.ttft_gain is not None
        assert found.ttft_gain.interval is not None
        missed += not found.ttft_gain.interval[0] <= 0 <= found.ttft_gain.interval[1]
        assert found.verdict != "keep" or found.ttft_gain.value > 0.05
    assert missed <= 8
