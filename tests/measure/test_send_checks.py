"""Cold, warm, complete, unpreempted: what the requests prove."""

from collections.abc import Sequence

import pytest
from tests.measure.sends import PROMPT, send

from longreach.measure.send_checks import check_sends, is_proven_warm
from longreach.measure.stream import StreamFailure
from longreach.measure.target import ExpectedServer, VerifySettings
from longreach.measure.verify_report import ChecklistItem, Counters, SendReport, ServerState
from longreach.wire.refusals import ApiError


def judge(sends: Sequence[SendReport], expected: ExpectedServer | None = None) -> dict[str, ChecklistItem]:
    items = check_sends(expected or ExpectedServer(), VerifySettings(), ServerState(block_size=16), PROMPT, sends)
    return {item.name: item for item in items}


WARM_CASES = {
    "all_but_the_open_block": (9_984, 16, True),
    "speculation_gives_up_a_block": (9_968, 16, True),
    "half": (5_000, 16, False),
    "nothing": (0, 4_000, False),
    "unknown": (None, 16, False),
    "large_hybrid_blocks": (8_000, 1_600, True),
    "no_block_size_known": (9_000, None, True),
    "no_block_size_and_too_few": (8_999 - 1, None, False),
}


@pytest.mark.parametrize(("cached", "block_size", "is_warm"), WARM_CASES.values(), ids=WARM_CASES.keys())
def test_warm_is_the_prompt_but_for_its_last_blocks(cached: int | None, block_size: int | None, is_warm: bool) -> None:
    assert is_proven_warm(send("warm 1", cached), block_size) is is_warm


COLD_CASES = {
    "none": (0, "pass", "0 cached tokens by usage"),
    "shared_template": (12, "pass", "of the 12 tokens"),
    "shared_text": (16, "fail", "16 cached"),
    "not_told": (None, "cannot_tell", "unattributed"),
}


@pytest.mark.parametrize(("cached", "verdict", "words"), COLD_CASES.values(), ids=COLD_CASES.keys())
def test_cold_shares_no_more_than_the_template(cached: int | None, verdict: str, words: str) -> None:
    item = judge([send(cached=cached)])["cold_is_cold"]
    assert item.verdict == verdict
    assert words in item.evidence


def test_repeat_that_is_not_faster_is_told_but_not_judged() -> None:
    item = judge([send(ttft_s=0.1), send("warm 1", 9_984, ttft_s=0.2)])["warm_is_faster"]
    assert (item.verdict, item.evidence) == ("cannot_tell", "TTFT 100 ms cold, 200 ms warm (0.5 times as fast)")


def test_failed_request_is_quoted_and_leaves_the_rest_untold() -> None:
    failure = StreamFailure("error_event", ApiError("out of blocks"), 200)
    items = judge([send(failure=failure)])
    assert items["requests_complete"].evidence == "cold: error_event (HTTP 200, out of blocks)"
    assert items["cold_is_cold"].verdict == items["same_answer"].verdict == "cannot_tell"


def test_unknown_finish_reason_fails() -> None:
    assert judge([send(finish_reason="abort")])["requests_complete"].verdict == "fail"


def test_no_request_at_all_cannot_be_told() -> None:
    items = judge([])
    assert {item.verdict for item in items.values()} == {"cannot_tell"}


def test_another_count_than_wanted_fails_with_both() -> None:
    item = judge([send(prompt_tokens=10_007)])["prompt_exact"]
    assert (item.verdict, item.evidence) == ("fail", "10,007 counted, 10,000 wanted, built with t")


def test_no_prefix_caching_planned_expects_no_hits() -> None:
    items = judge([send(), send("warm 1", 0)], ExpectedServer(prefix_caching=False))
    assert "warm_is_warm" not in items


def test_preemptions_of_all_requests_add_up() -> None:
    counters = Counters(attributed=False, preemptions=1)
    item = judge([send(counters=counters), send("warm 1", 9_984, counters=counters)])["no_preemptions"]
    assert (item.verdict, item.evidence) == ("fail", "2 preemptions")


def test_sources_are_named_only_when_the_hits_are_ours() -> None:
    ours = Counters(attributed=True, hits_by_source=(("disk", 984), ("host", 9_000)))
    foreign = Counters(attributed=False, hits_by_source=(("device", 9_984),))
    assert "(disk 984, host 9,000)" in judge([send("warm 1", 9_984, counters=ours)])["warm_is_warm"].evidence
    assert "device" not in judge([send("warm 1", 9_984, counters=foreign)])["warm_is_warm"].evidence
