import numpy as np
import pytest

from longreach.measure.bench.drift import drift_factor, drift_of_difference, widen
from longreach.measure.bench.statistics import Estimate


@pytest.mark.parametrize("size", [8, 10, 30, 300])
def test_independent_requests_widen_little(size: int) -> None:
    factors = [drift_factor(np.random.default_rng(seed).normal(1, 0.2, size)) for seed in range(200)]
    assert min(factors) == 1
    assert np.median(factors) < 1.2


def test_a_slow_change_widens_much_and_what_all_share_not_at_all() -> None:
    ramp = np.linspace(0.8, 1.2, 40)
    assert drift_factor(ramp) > 7
    assert drift_factor(np.tile([0.8, 1.2], 20)) == 1
    assert drift_of_difference(ramp, ramp, paired=True) == 1
    assert drift_of_difference(ramp, np.ones(40), paired=False) == pytest.approx(drift_factor(ramp))
    assert drift_of_difference(np.ones(40), np.ones(40), paired=False) == 1


@pytest.mark.parametrize("series", [[1.0] * 30, [1.0, 2.0, 3.0]], ids=["constant", "too short for blocks"])
def test_what_shows_no_drift_widens_nothing(series: list[float]) -> None:
    assert drift_factor(np.array(series)) == 1


def test_an_interval_is_stretched_about_its_figure() -> None:
    assert widen(Estimate(0.5, (0.4, 0.7), 9), 4.0).interval == pytest.approx((0.3, 0.9))
    assert widen(Estimate(0.5, None, 9), 4.0).interval is None
