from collections.abc import Callable, Sequence
from dataclasses import astuple
from math import exp, sqrt
from statistics import NormalDist, mean, stdev

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longreach.measure.bench import resampling
from longreach.measure.bench.statistics import (
    Estimate,
    describe,
    mean_difference,
    paired_difference,
    percentile,
    proportion_difference,
    proportion_interval,
    relative_difference,
    relative_rate_difference,
    samples_for,
    samples_that_would_do,
)
from longreach.measure.bench.summary_values import Distribution, Figure, Interval

SAMPLES = st.lists(st.floats(1e-3, 1e4), min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([1, 2, 3, 4], 0.5, 2.5),
        ([1, 2, 3, 4], 0.9, 3.7),
        ([4, 1, 3, 2, 5], 0.5, 3),
        ([7], 0.99, 7),
        (range(1, 102), 0.99, 100),
    ],
)
def test_a_percentile_interpolates_between_the_two_nearest(
    values: Sequence[float], share: float, expected: float
) -> None:
    assert percentile(values, share) == pytest.approx(expected)


@settings(max_examples=60, deadline=None)
@given(SAMPLES)
def test_every_figure_lies_within_the_sample_and_in_order(values: list[float]) -> None:
    found = describe(values)
    assert found.num_samples == len(values)
    ladder = (found.min, found.p50, found.p90, found.p99, found.max)
    assert list(ladder) == pytest.approx(sorted(ladder))
    for low, high in _intervals(found):
        assert found.min * (1 - 1e-9) <= low <= high <= found.max * (1 + 1e-9)


@settings(max_examples=20, deadline=None)
@given(SAMPLES, st.floats(0.01, 100), st.randoms(use_true_random=False))
def test_neither_unit_nor_order_nor_chance_changes_the_figures(values: list[float], scale: float, rng: object) -> None:
    found = describe(values)
    assert describe(values) == found
    other = [scale * value for value in values]
    rng.shuffle(other)  # type: ignore[attr-defined]
    again = astuple(describe(other))[1:]
    flat = [part for value in astuple(found)[1:] if value for part in (value if isinstance(value, tuple) else (value,))]
    other_flat = [part for value in again if value for part in (value if isinstance(value, tuple) else (value,))]
    assert other_flat == pytest.approx([scale * value for value in flat], rel=1e-6)


def _intervals(found: Distribution) -> list[Interval]:
    every = (found.mean_interval, found.p50_interval, found.p90_interval, found.p99_interval)
    return [interval for interval in every if interval is not None]


@pytest.mark.parametrize(("figure", "least"), [("mean", 8), ("p50", 10), ("p90", 100), ("p99", 1000)], ids=str)
def test_an_interval_is_given_from_the_sample_on_that_carries_it(figure: Figure, least: int) -> None:
    values = np.random.default_rng(0).normal(10, 1, least).tolist()
    assert samples_for(figure) == least
    assert getattr(describe(values), f"{figure}_interval") is not None
    assert getattr(describe(values[1:]), f"{figure}_interval") is None


def test_a_surer_percentile_takes_more_samples() -> None:
    assert samples_for("p50", 0.9999) == 15  # 0.5^15 is below 0.005 %


DRAWS: dict[str, tuple[Callable[[np.random.Generator, int], list[float]], dict[str, float]]] = {
    "normal": (lambda rng, n: rng.normal(10, 1, n).tolist(), {"mean": 10, "p50": 10, "p90": 11.2816}),
    "skewed": (
        lambda rng, n: rng.lognormal(0, 0.5, n).tolist(),
        {"mean": exp(0.125), "p50": 1, "p90": exp(0.5 * 1.28155)},
    ),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize(("num_samples", "figures"), [(10, ("mean", "p50")), (100, ("mean", "p50", "p90"))])
def test_nineteen_of_twenty_intervals_hold_the_truth(name: str, num_samples: int, figures: tuple[str, ...]) -> None:
    draw, truth = DRAWS[name]
    rng = np.random.default_rng(2026)
    held = dict.fromkeys(figures, 0)
    for _ in range(200):
        found = describe(draw(rng, num_samples))
        for figure in figures:
            low, high = getattr(found, f"{figure}_interval")
            held[figure] += low <= truth[figure] <= high
    least = 172 if name == "skewed" else 180  # a mean of ten skewed values is known to be held a little less often
    assert all(count >= least for count in held.values()), held


def test_percentiles_of_resamples_need_no_resampling() -> None:
    values = np.sort(np.random.default_rng(3).lognormal(0, 1, 100))
    drawn = np.random.default_rng(4).integers(0, 100, (20_000, 100))
    expected = np.quantile(np.quantile(values[drawn], 0.9, axis=1), [0.025, 0.975])
    assert describe(values.tolist()).p90_interval == pytest.approx(expected, rel=0.12)  # wider: it is 100 values


def test_the_interval_of_a_normal_mean_is_students() -> None:
    values = np.random.default_rng(5).normal(100, 10, 12).tolist()
    half = 2.201 * stdev(values) / sqrt(12)
    low, high = describe(values).mean_interval or (0, 0)
    assert (high - low) / 2 == pytest.approx(half, rel=0.1)


def test_a_difference_of_means_is_welchs() -> None:
    rng = np.random.default_rng(6)
    a, b = rng.normal(10, 1, 40).tolist(), rng.normal(12, 3, 60).tolist()
    half = 2 * sqrt(stdev(a) ** 2 / 40 + stdev(b) ** 2 / 60)
    low, high = mean_difference(a, b) or (0, 0)
    assert (low, high) == pytest.approx((mean(b) - mean(a) - half, mean(b) - mean(a) + half), abs=0.1)
    assert mean_difference(a[:7], b) is None


def test_pairs_are_compared_with_each_other() -> None:
    rng = np.random.default_rng(7)
    lengths = rng.uniform(1, 100, 30)
    a, b = lengths.tolist(), (1.1 * lengths * rng.normal(1, 0.01, 30)).tolist()
    paired, apart = (relative_difference(a, b, paired=pairs).interval for pairs in (True, False))
    assert paired == pytest.approx((0.1, 0.1), abs=0.01)
    assert apart is not None
    assert apart[0] < -0.1 < 0.3 < apart[1]
    low, high = paired_difference(a, b) or (0, 0)
    assert 0 < low < mean(b) - mean(a) < high


def test_a_large_sample_is_compared_with_a_small_one() -> None:
    rng = np.random.default_rng(9)
    many, few = rng.normal(10, 1, 9000).tolist(), rng.normal(11, 1, 100).tolist()
    low, high = relative_difference(many, few).interval or (0, 0)
    assert (low, high) == pytest.approx((mean(few) / mean(many) - 1.02, mean(few) / mean(many) - 0.98), abs=0.005)
    low, high = mean_difference(many, few) or (0, 0)
    assert low < 1 < high
    low, high = relative_rate_difference((many, [1.0] * 9000), (few, [1.0] * 100)) or (0, 0)
    assert low < 0.1 < high


@pytest.mark.parametrize("figure", ["mean", "p50"])
@pytest.mark.parametrize("paired", [True, False])
def test_without_spread_the_difference_is_exact(figure: Figure, paired: bool) -> None:
    found = relative_difference([2.0] * 10, [3.0] * 10, figure, paired=paired)
    assert found == Estimate(0.5, (0.5, 0.5), 10)
    assert relative_difference([2.0] * 7, [3.0] * 7, figure, paired=paired).interval is None


def test_a_rate_is_tokens_by_seconds_not_a_mean_of_rates() -> None:
    a, b = ([10.0, 100.0] * 10, [1.0, 100.0] * 10), ([10.0, 100.0] * 10, [1.0, 50.0] * 10)
    low, high = relative_rate_difference(a, b, paired=True) or (0, 0)
    assert low <= 101 / 51 - 1 <= high
    assert high - low < 0.2
    assert relative_rate_difference(a, ([1.0] * 7, [1.0] * 7)) is None


@pytest.mark.parametrize(
    ("num_met", "num_all", "expected"),
    [
        (81, 263, (0.2553, 0.3662)),
        (15, 148, (0.0624, 0.1605)),
        (0, 20, (0.0, 0.1611)),
        (1, 29, (0.0061, 0.1718)),
        (20, 20, (0.8389, 1.0)),
    ],
)
def test_wilsons_interval_is_the_published_one(num_met: int, num_all: int, expected: Interval) -> None:
    """Newcombe 1998, Statistics in Medicine 17:857, table I, method 3."""
    assert proportion_interval(num_met, num_all) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(
    ("more", "less", "expected"),
    [((56, 70), (48, 80), (0.0524, 0.3339)), ((9, 10), (3, 10), (0.1705, 0.8090)), ((10, 10), (0, 20), (0.6791, 1.0))],
)
def test_a_difference_of_shares_is_the_published_one(
    more: tuple[int, int], less: tuple[int, int], expected: Interval
) -> None:
    """Newcombe 1998, Statistics in Medicine 17:873, table II, method 10."""
    assert proportion_difference(less, more).interval == pytest.approx(expected, abs=5e-5)


def test_half_the_width_takes_four_times_the_samples() -> None:
    assert samples_that_would_do(25, 0.2, 0.1) == 100
    assert samples_that_would_do(25, 0.2, 0.0) is None
    assert samples_that_would_do(25, 1.0, 1e-6) is None


def test_a_sure_interval_is_wider() -> None:
    rng = np.random.default_rng(8)
    a, b = rng.normal(10, 1, 40).tolist(), rng.normal(10, 1, 40).tolist()
    usual, sure = (relative_difference(a, b, level=level).interval or (0, 0) for level in (0.95, 0.995))
    ratio = (sure[1] - sure[0]) / (usual[1] - usual[0])
    assert ratio == pytest.approx(NormalDist().inv_cdf(0.9975) / NormalDist().inv_cdf(0.975), rel=0.12)


def test_means_of_large_samples_are_drawn_from_the_normal_as_resamples_would_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    sample = rng.lognormal(0, 0.8, 30_000)
    a: list[float] = sample.tolist()
    b: list[float] = (sample * rng.normal(1.02, 0.1, 30_000)).tolist()
    drawn = describe(a).mean_interval, relative_difference(a, b, paired=True).interval
    monkeypatch.setattr(resampling, "_NORMAL_FROM", 10**9)
    resampled = describe(a).mean_interval, relative_difference(a, b, paired=True).interval
    for fast, slow in zip(drawn, resampled, strict=True):
        assert fast is not None
        assert slow is not None
        assert fast == pytest.approx(slow, abs=0.15 * (slow[1] - slow[0]))
