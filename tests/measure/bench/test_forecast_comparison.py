from typing import Any

import pytest
from tests.measure.bench.results import record, result

from longreach.forecast.values import Span
from longreach.measure.bench.forecast_comparison import compare_forecast
from longreach.measure.bench.values import Load, RequestRecord
from longreach.measure.target import ExpectedSpeed

UNKNOWN = Span(None, None, certainty="unknown", reason="no GPU is named")
SPEED = ExpectedSpeed(
    prompt_tokens=1000,
    ttft_cold_s=Span(55, 80, lower_bound=41),
    ttft_warm_s=UNKNOWN,
    decode_tokens_per_s=Span(8, 12, upper_bound=20),
)


def _texts(*records: RequestRecord, **header: Any) -> dict[str, tuple[str, str]]:
    found = compare_forecast(result(*records, **header), [SPEED])
    return {item.figure: (item.verdict, item.text) for item in found}


@pytest.mark.parametrize(("ttft_s", "verdict"), [(61, "inside"), (50, "faster"), (90, "slower"), (40, "beats_bound")])
def test_a_first_token_is_held_against_bound_and_range(ttft_s: float, verdict: str) -> None:
    found = compare_forecast(result(*(record(index, ttft_s=ttft_s + index - 1) for index in range(3))), [SPEED])[0]
    assert (found.figure, found.prompt_tokens, found.measured) == ("ttft_cold_s", 1000, ttft_s)
    assert (found.bound, found.low, found.high, found.verdict) == (41, 55, 80, verdict)


def test_the_text_tells_all_three() -> None:
    texts = _texts(record(ttft_s=48.2), record(1, ttft_s=48.2))
    assert texts["ttft_cold_s"] == ("faster", "measured 48.2 s, bound 41.0 s, range 55.0 s to 1 min 20 s")
    assert texts["decode_tokens_per_s"] == (
        "inside",
        "measured 10.0 tokens/s, bound 20.0 tokens/s, range 8.0 tokens/s to 12.0 tokens/s",
    )


@pytest.mark.parametrize(("itl_s", "verdict"), [(0.2, "slower"), (0.07, "faster"), (0.04, "beats_bound")])
def test_of_a_rate_more_is_faster(itl_s: float, verdict: str) -> None:
    assert _texts(record(itl_s=itl_s))["decode_tokens_per_s"][0] == verdict


def test_what_is_not_forecast_is_only_told() -> None:
    texts = _texts(record(state="warm", ttft_s=3.0))
    assert texts["ttft_warm_s"] == ("no_forecast", "measured 3.0 s, no range: no GPU is named")
    assert "ttft_cold_s" not in texts


def test_requests_beside_others_are_held_against_the_bound_alone() -> None:
    together = Load("closed", 4)
    assert _texts(record(ttft_s=200), load=together)["ttft_cold_s"] == (
        "no_forecast",
        "measured 3 min 20 s with others at the same time; alone: bound 41.0 s, range 55.0 s to 1 min 20 s",
    )
    assert _texts(record(ttft_s=30), load=together)["ttft_cold_s"][0] == "beats_bound"


@pytest.mark.parametrize(
    "other",
    [
        record(prompt_tokens=1001),
        record(ok=False),
        record(proof="disproven", cached_tokens=500),
        record(cached_tokens=500, reusable_tokens=500),
        record(cached_tokens=None, reusable_tokens=500, proof="unattributed"),
    ],
    ids=["other length", "failed", "not cold", "shared prefix", "shared prefix, not counted"],
)
def test_only_what_the_forecast_is_about_counts(other: RequestRecord) -> None:
    assert "ttft_cold_s" not in _texts(other)


def test_what_comes_without_a_claim_is_cold_where_nothing_was_cached() -> None:
    assert _texts(record(state="as_it_comes", cached_tokens=0, ttft_s=60))["ttft_cold_s"][0] == "inside"


def test_answers_in_one_piece_are_held_against_no_forecast() -> None:
    whole = record(1, ttft_s=62.99, itl_s=None, chunk_gap_max_s=0.0)
    assert _texts(whole) == {}
    assert _texts(record(ttft_s=61), whole)["ttft_cold_s"] == _texts(record(ttft_s=61))["ttft_cold_s"]
