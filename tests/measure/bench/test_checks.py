from dataclasses import replace
from typing import Any

import pytest
from tests.measure.bench.results import BLOCK, cold_run, failed, phase, record, result

from longreach.measure.bench.checks import check_run
from longreach.measure.bench.summary import summarise
from longreach.measure.bench.values import BenchResult, CacheState, Load, PhaseReport, RequestRecord
from longreach.measure.verify_report import ChecklistItem, ServerState


def _check(run: BenchResult, name: str) -> ChecklistItem:
    return next(item for item in check_run(run) if item.name == name)


def _names(run: BenchResult) -> set[str]:
    return {item.name for item in check_run(run)}


def test_a_run_that_went_well_passes_every_check() -> None:
    items = check_run(cold_run())
    assert {item.verdict for item in items} == {"pass"}
    assert [item.name for item in items] == [
        "requests_complete",
        "prompt_exact",
        "output_exact",
        "cold_is_cold",
        "ttft_agrees",
        "tokens_agree",
        "client_kept_up",
    ]


def test_failures_are_told_by_kind_with_the_servers_words() -> None:
    run = result(record(0), failed(1), failed(2), failed(3, error_kind="disconnected", error=None, error_status=None))
    item = _check(run, "requests_complete")
    assert item.verdict == "fail"
    assert item.evidence == (
        "3 of 4 failed (2 refused, 1 disconnected); request 1: HTTP 400, "
        "This model's maximum context length is 512 tokens."
    )


def test_a_failure_in_the_flood_or_a_repeated_pass_is_one_too() -> None:
    assert _check(result(record(), failed(0, "flood")), "requests_complete").verdict == "fail"


@pytest.mark.parametrize("interrupted", [True, False])
def test_what_was_not_made_cannot_be_told(interrupted: bool) -> None:
    run = result(record(0), record(1), num_requests=5)
    item = _check(replace(run, interrupted=interrupted), "requests_complete")
    reason = "the run was cut short" if interrupted else "the results file is not complete"
    assert (item.verdict, item.evidence) == ("cannot_tell", f"3 of 5 were not made: {reason}")


@pytest.mark.parametrize(
    ("name", "change", "verdict", "evidence"),
    [
        (
            "prompt_exact",
            {"prompt_tokens": 1003},
            "fail",
            "1 of 4 differ, by +3 to +3 tokens; built with tokenizer.json",
        ),
        ("prompt_exact", {"prompt_tokens": None}, "pass", "3 of 3, counted with tokenizer.json"),
        ("output_exact", {"output_tokens": 12}, "fail", "1 of 4 differ, with 12 tokens"),
        ("output_exact", {"output_tokens": 9}, "fail", "1 of 4 differ, with 9 tokens"),
        (
            "output_exact",
            {"output_tokens": 9, "finish_reason": "stop"},
            "cannot_tell",
            "1 of 4 ended by themselves, with 9 tokens",
        ),
        (
            "cold_is_cold",
            {"proof": "disproven", "cached_tokens": 500},
            "fail",
            "1 of 4 were not; 500 of 4,000 tokens cached",
        ),
        (
            "cold_is_cold",
            {"proof": "unattributed", "cached_tokens": None},
            "cannot_tell",
            "3 of 4 proven by the server's count; the others it does not attribute (it does with --enable-prompt-tokens-details)",
        ),
    ],
)
def test_lengths_and_coldness_are_judged_by_the_servers_count(
    name: str, change: dict[str, Any], verdict: str, evidence: str
) -> None:
    item = _check(result(record(0, **change), *(record(index) for index in (1, 2, 3))), name)
    assert (item.verdict, item.evidence) == (verdict, evidence)


def test_another_tokenizer_is_told_and_not_judged_where_the_server_is_not_vllm() -> None:
    run = result(record(prompt_tokens=1100), server=ServerState())
    assert _check(run, "prompt_exact").verdict == "cannot_tell"


def test_a_server_without_usage_cannot_be_told() -> None:
    nothing: dict[str, Any] = {
        "prompt_tokens": None,
        "output_tokens": None,
        "cached_tokens": None,
        "proof": "unattributed",
    }
    run = result(record(0, **nothing), record(1, **nothing))
    assert {_check(run, name).verdict for name in ("prompt_exact", "output_exact", "cold_is_cold")} == {"cannot_tell"}


def test_text_of_no_wanted_length_is_not_checked_for_it() -> None:
    assert "prompt_exact" not in _names(result(record(wanted_prompt_tokens=None)))


def test_of_a_hybrids_repeats_the_last_must_hit() -> None:
    missed = record(state="warm", phase="warm 1", cached_tokens=0, proof="disproven")
    run = result(record(), missed, record(state="warm", phase="warm 2"))
    assert _check(run, "warm_is_warm").verdict == "pass"
    assert _check(replace(run, records=run.records[:2]), "warm_is_warm").verdict == "cannot_tell"


EVICTED_TOKENS = 4 * 992


def _evicted(report: PhaseReport, cached: int | None = 992) -> BenchResult:
    cold = [record(index) for index in range(4)]
    again = [record(index, "evicted", cached_tokens=cached) for index in range(4)]
    return result(*cold, *again, phases=(phase(), report))


@pytest.mark.parametrize(
    ("changes", "cached", "verdict", "evidence"),
    [
        (
            {"hits_by_source": (("host", 3000), ("disk", 968))},
            992,
            "pass",
            "of 4,000 tokens CPU 3,000, disk 968; the rest recomputed",
        ),
        ({}, 0, "pass", "none of 4,000 tokens cached: all recomputed"),
        (
            {"hits_by_source": (("device", EVICTED_TOKENS),)},
            992,
            "fail",
            "of 4,000 tokens GPU 3,968; the rest recomputed: the flood did not push them out",
        ),
        (
            {"prefix_hit_tokens": 4 * (BLOCK + 10), "external_hit_tokens": 3000},
            992,
            "pass",
            "of 4,000 tokens GPU 104, outside the GPU 3,000; the rest recomputed",
        ),
        ({"attributed": False}, 992, "cannot_tell", "the server does not say where the hits came from"),
    ],
    ids=["from tiers", "recomputed", "still there", "template only", "others ran too"],
)
def test_evicted_prompts_come_back_from_a_tier_or_are_recomputed(
    changes: dict[str, Any], cached: int, verdict: str, evidence: str
) -> None:
    item = _check(_evicted(phase("evicted", **changes), cached), "evicted_was_evicted")
    assert (item.verdict, item.evidence) == (verdict, evidence)


@pytest.mark.parametrize("state", ["warm", "evicted"])
@pytest.mark.parametrize(
    ("digest", "deterministic", "verdict"),
    [("answer 1", True, "pass"), ("other", True, "fail"), ("other", False, "cannot_tell"), (None, True, "pass")],
)
def test_cached_answers_equal_cold_ones(
    state: CacheState, digest: str | None, deterministic: bool, verdict: str
) -> None:
    records = [record(0), record(1), record(0, state), record(1, state, answer_digest=digest)]
    item = _check(result(*records, is_deterministic=deterministic), "same_answer")
    assert item.verdict == verdict
    if digest == "other":
        assert item.evidence.startswith(f"1 of 2 differ (request 1 {state})")


@pytest.mark.parametrize(
    ("server_sum_s", "verdict"),
    [(8.0, "pass"), (7.88, "pass"), (7.80, "cannot_tell"), (7.0, "fail"), (9.0, "fail")],
)
def test_first_tokens_agree_with_the_servers_clock(server_sum_s: float, verdict: str) -> None:
    run = result(*(record(index) for index in range(4)), phases=(phase(ttft_sum_s=server_sum_s),))
    item = _check(run, "ttft_agrees")
    assert item.verdict == verdict
    assert item.evidence == (
        f"8.000 s here, {server_sum_s:.3f} s there over 4 requests: {250 * (8 - server_sum_s):+.1f} ms a request"
    )


@pytest.mark.parametrize(
    "changes", [{"attributed": False}, {"ttft_sum_s": None, "prompt_tokens": None, "generation_tokens": None}], ids=str
)
def test_counts_that_are_not_ours_decide_nothing(changes: dict[str, Any]) -> None:
    run = result(*(record(index) for index in range(4)), phases=(phase(**changes),))
    assert {_check(run, name).verdict for name in ("ttft_agrees", "tokens_agree")} == {"cannot_tell"}


def test_a_failed_request_leaves_the_counts_of_its_phase_undecided() -> None:
    run = result(*(record(index) for index in range(3)), failed(3), phases=(phase(),))
    assert {_check(run, name).verdict for name in ("ttft_agrees", "tokens_agree")} == {"cannot_tell"}


def test_a_phase_with_a_request_that_was_sent_again_is_left_undecided() -> None:
    sittings = (phase(num_sent=3, ended_s=7, prompt_tokens=2000), phase(num_sent=2, began_s=8, ended_s=15))
    run = result(*(record(index, sent_s=[0, 3, 9, 12][index]) for index in range(4)), phases=sittings)
    assert _check(run, "tokens_agree").evidence == "prompt 2,000; output 22"


def test_token_totals_are_equal_to_the_last_token() -> None:
    run = result(*(record(index) for index in range(4)), phases=(phase(generation_tokens=45),))
    item = _check(run, "tokens_agree")
    assert (item.verdict, item.evidence) == ("fail", "prompt 4,000; output 44 here, 45 there")


@pytest.mark.parametrize(
    ("lag_s", "verdict", "words"),
    [
        (0.05, "pass", "late at P99"),
        (0.15, "cannot_tell", "beside a time between tokens of 100.0 ms"),
        (0.3, "cannot_tell", "a time to first token of 2000.0 ms, a time between tokens of 100.0 ms"),
    ],
)
def test_a_late_client_is_said_beside_what_it_measured(lag_s: float, verdict: str, words: str) -> None:
    item = _check(result(record(), lag_s=lag_s), "client_kept_up")
    assert item.verdict == verdict
    assert item.evidence.endswith(words)
    assert (item.fix is None) == (verdict == "pass")


def _sent_late(late_s: float) -> list[RequestRecord]:
    return [record(index, due_s=3.0 * index - late_s) for index in range(4)]


@pytest.mark.parametrize(("late_s", "verdict"), [(0.0, "pass"), (0.15, "pass"), (0.5, "fail")])
def test_an_open_loop_sends_when_it_is_due(late_s: float, verdict: str) -> None:
    item = _check(result(*_sent_late(late_s), load=Load("poisson", 8, 0.5)), "sent_on_time")
    assert item.verdict == verdict
    assert item.evidence.endswith("at most 8 were allowed at once") == (verdict == "fail")
    assert "sent_on_time" not in _names(cold_run())


def test_nothing_answered_leaves_nothing_to_check_but_the_failures() -> None:
    assert _names(result(failed(0), failed(1))) == {"requests_complete", "cold_is_cold", "ttft_agrees", "tokens_agree"}


def test_the_larger_number_of_requests_says_what_it_includes() -> None:
    passes = [record(0), record(0, "warm", phase="warm 1"), record(0, "warm", phase="warm 2"), record(0, "flood")]
    more = "4 of 4 (2 measured, 1 of the flood, 1 of passes before the last of their state)"
    assert _check(result(*passes), "requests_complete").evidence == more
    broken = _check(result(*passes[:3], failed(0, "flood")), "requests_complete").evidence
    assert broken.startswith("1 of 4 (2 measured, 1 of the flood, 1 of passes before the last of their state) failed")


@pytest.mark.parametrize("name", ["ttft_agrees", "tokens_agree"])
@pytest.mark.parametrize(
    ("records", "phases", "reason"),
    [
        ((record(),), (), "no pass came to its end"),
        (
            (record(),),
            (phase(num_sent=1, prompt_tokens=None, generation_tokens=None, ttft_count=None, attributed=False),),
            "the server's metrics do not count it, or there are none",
        ),
        (
            (record(),),
            (phase(num_sent=1, attributed=False),),
            "the server's metrics hold other requests than these too",
        ),
        (
            (record(), failed(1)),
            (phase(num_sent=2),),
            "in every pass a request failed, or was sent before the run was taken up again",
        ),
    ],
    ids=["cut short", "no metrics", "others", "failed"],
)
def test_a_count_that_cannot_be_compared_has_the_reason_that_holds(
    name: str, records: tuple[RequestRecord, ...], phases: tuple[PhaseReport, ...], reason: str
) -> None:
    item = _check(result(*records, phases=phases), name)
    assert (item.verdict, item.evidence) == ("cannot_tell", reason)


def test_answers_in_one_piece_are_counted_and_in_no_time_between_tokens() -> None:
    whole: dict[str, Any] = {
        "itl_s": None,
        "chunk_gap_p50_s": 0.0,
        "chunk_gap_p99_s": 0.0,
        "chunk_gap_max_s": 0.0,
        "ttft_s": 2.99,
    }
    run = result(*(record(index, **(whole if index < 7 else {})) for index in range(30)))
    item = _check(run, "tokens_streamed")
    assert item.verdict == "cannot_tell"
    assert item.evidence.startswith(
        "7 of 30 answers came in one piece: their first token is known only to have come by"
    )
    assert item.fix
    summary = summarise(run)
    assert summary.itl_s is not None
    assert summary.chunk_gap_p99_s is not None
    assert (summary.itl_s.num_samples, summary.chunk_gap_p99_s.num_samples, summary.chunk_gap_p99_s.min) == (
        23,
        23,
        0.12,
    )
    assert "tokens_streamed" not in _names(cold_run())
    counted = replace(run, phases=(phase(num_sent=30),))
    agrees = _check(counted, "ttft_agrees")
    assert agrees.verdict == "cannot_tell"
    assert agrees.evidence.endswith("some answers came in one piece, later than their first token")
