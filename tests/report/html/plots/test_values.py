from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longreach.report.html.plots.values import Scale, apart


@pytest.mark.parametrize(
    ("values", "logarithmic"), [([0.0, 5.0], False), ([1.0, 5.0], False), ([0.01, 5.0], True), ([0.0], False)]
)
def test_values_that_are_far_apart_get_a_logarithmic_axis(values: list[float], logarithmic: bool) -> None:
    scale = Scale.of(values)
    assert scale.logarithmic is logarithmic
    assert scale.low <= min(values) <= max(values) < scale.high


@given(st.lists(st.floats(0, 1), max_size=8))
def test_labels_keep_their_order_and_do_not_meet(places: list[float]) -> None:
    moved = apart(places, 0.07)
    order = sorted(range(len(places)), key=places.__getitem__)
    assert all(moved[after] - moved[before] >= 0.07 - 1e-9 for before, after in pairwise(order))
    assert max(moved, default=0.0) <= 1.0 + 1e-9


def test_labels_that_do_not_meet_stay_where_they_are() -> None:
    assert apart([0.9, 0.1, 0.5], 0.07) == [0.9, 0.1, 0.5]
