"""The forecast against published measurements: bounds are never beaten, ranges mostly hold and say something."""

from statistics import median

import pytest
from tests.accuracy.measurements import (
    Row,
    counted,
    decode_rows,
    leave_one_source_out,
    median_error,
    over_unknown_links,
    prefill_rows,
    read_cases,
    request_of,
)

from longreach.forecast.prefill import ttft_cold


def share_inside(rows: tuple[Row, ...]) -> float:
    return sum(row.inside for row in rows) / len(rows)


@pytest.mark.parametrize("row", prefill_rows(), ids=lambda row: row.case["id"])
def test_no_measured_first_token_beats_the_bound(row: Row) -> None:
    assert row.span.lower_bound is not None
    assert row.measured >= row.span.lower_bound


@pytest.mark.parametrize("row", decode_rows(), ids=lambda row: row.case["id"])
def test_no_measured_decode_beats_the_bound(row: Row) -> None:
    assert row.span.upper_bound is not None
    assert row.measured <= row.span.upper_bound


def test_a_saturated_card_does_not_prefill_faster_than_one_prompt_after_another() -> None:
    saturated = [case for case in read_cases() if "prefill_tokens_per_s" in case]
    for case in saturated:
        bound = ttft_cold(request_of(case, case["prompt_tokens"])).lower_bound
        assert bound is not None
        assert case["prefill_tokens_per_s"] <= case["prompt_tokens"] / bound
    assert len(saturated) == 1


def test_four_of_five_first_tokens_over_a_known_link_fall_into_a_narrow_range_around_them() -> None:
    rows = counted(prefill_rows())
    assert len(rows) >= 26
    assert share_inside(rows) >= 0.8
    assert median_error(rows) < 0.2
    assert median(row.width for row in rows) < 1.8


def test_a_link_that_nobody_named_is_forecast_both_ways() -> None:
    rows = over_unknown_links(prefill_rows())
    assert all(len(row.peers) == 2 for row in rows)
    assert sum(row.inside or row.inside_a_case for row in rows) / len(rows) >= 0.8


def test_four_of_five_decode_rates_fall_into_the_range() -> None:
    rows = counted(decode_rows())
    assert len(rows) >= 10
    assert share_inside(rows) >= 0.8
    assert median_error(rows) < 0.2


def test_a_source_that_had_no_part_in_the_rates_is_met_as_well() -> None:
    errors = [abs(error) for left in leave_one_source_out() for error in left.errors]
    assert len(errors) == len(counted(prefill_rows()))
    assert median(errors) < 0.2
