"""Measured against forecast, and speculation against the plan."""

import dataclasses

import pytest
from tests.measure.sends import send

from longreach.forecast.values import Span
from longreach.measure.speed_checks import check_forecast, check_speculation
from longreach.measure.target import ExpectedServer, ExpectedSpeed
from longreach.measure.verify_report import Counters

SPEED = ExpectedSpeed(
    prompt_tokens=10_000,
    ttft_cold_s=Span(8.0, 20.0, lower_bound=5.0),
    ttft_warm_s=Span(None, None, reason="no figure"),
    decode_tokens_per_s=Span(20.0, 40.0, upper_bound=50.0),
)
PLANNED = ExpectedServer(speed=SPEED)


def test_inside_the_range_passes() -> None:
    items = check_forecast(PLANNED, send(ttft_s=10.0, rate=30.0), [])
    assert [(item.verdict, item.evidence) for item in items] == [
        ("pass", "10.0 s, inside the expected 8.0 s to 20.0 s"),
        ("pass", "30.0 tokens/s, inside the expected 20.0 tokens/s to 40.0 tokens/s"),
    ]


def test_outside_the_range_is_told_not_judged() -> None:
    cold, decode = check_forecast(PLANNED, send(ttft_s=30.0, rate=45.0), [])
    assert cold.verdict == decode.verdict == "pass"
    assert "outside" in cold.evidence
    assert "outside" in decode.evidence


def test_beating_a_bound_disproves_the_forecast() -> None:
    cold, decode = check_forecast(PLANNED, send(ttft_s=4.0, rate=60.0), [])
    assert cold.verdict == decode.verdict == "fail"
    assert cold.evidence == "4.0 s beats the bound of 5.0 s: the forecast is wrong"


def test_no_range_cannot_be_told() -> None:
    warm = check_forecast(PLANNED, send(), [send("warm 1", 9_984, ttft_s=0.5)])[1]
    assert (warm.verdict, warm.evidence) == ("cannot_tell", "500 ms measured; no range is forecast: no figure")


def test_forecast_for_another_length_is_not_applied() -> None:
    (item,) = check_forecast(PLANNED, send(prompt_tokens=500), [])
    assert (item.verdict, item.evidence) == ("cannot_tell", "the forecast is for 10,000 tokens, the prompt had 500")


def test_no_forecast_or_no_request_is_nothing_to_check() -> None:
    assert check_forecast(ExpectedServer(), send(), []) == []
    assert check_forecast(PLANNED, None, []) == []


DRAFTS = Counters(attributed=True, num_drafts=20, num_draft_tokens=60, num_accepted_tokens=30)


@pytest.mark.parametrize(
    ("planned", "counters", "verdict"),
    [
        (True, DRAFTS, "pass"),
        (False, DRAFTS, "fail"),
        (None, DRAFTS, "pass"),
        (True, Counters(attributed=True), "fail"),
        (False, Counters(attributed=True), "pass"),
        (True, None, "cannot_tell"),
    ],
    ids=["on_and_on", "off_but_on", "no_plan", "on_but_off", "off_and_off", "no_metrics"],
)
def test_speculation_must_be_as_planned(planned: bool | None, counters: Counters | None, verdict: str) -> None:
    item = check_speculation(ExpectedServer(speculation=planned), [send(counters=counters)])
    assert item is not None
    assert item.verdict == verdict


def test_acceptance_is_told_with_its_share_and_length() -> None:
    item = check_speculation(ExpectedServer(), [send(counters=DRAFTS)])
    assert item is not None
    assert item.evidence == "30 of 60 draft tokens accepted (50%), 2.50 tokens a step"
    assert (DRAFTS.acceptance_rate, DRAFTS.mean_acceptance_length) == (0.5, 2.5)
    shared = dataclasses.replace(DRAFTS, attributed=False)
    item = check_speculation(ExpectedServer(), [send(counters=shared)])
    assert item is not None
    assert item.evidence.endswith("other requests included")


def test_nothing_planned_and_nothing_drafted_is_not_listed() -> None:
    assert check_speculation(ExpectedServer(), [send(counters=Counters(attributed=True))]) is None
    assert Counters(attributed=True).acceptance_rate is None
    assert Counters(attributed=True).mean_acceptance_length is None
