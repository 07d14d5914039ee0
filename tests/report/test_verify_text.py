from longreach.measure.verify_report import ChecklistItem, SendReport, ServerState, VerifyReport
from longreach.report.style import Paint
from longreach.report.verify_text import render_verify
from longreach.wire.chunks import Usage

COLD = SendReport(
    label="cold",
    failure=None,
    usage=Usage(prompt_tokens=32_768, completion_tokens=32, cached_tokens=0),
    cached_tokens=0,
    cached_tokens_source="usage",
    counters=None,
    ttft_s=17.8,
    first_answer_s=17.8,
    itl_s=0.0068,
    chunk_gap_p99_s=0.01,
    output_tokens_per_s=146.6,
    e2e_latency_s=18.0,
    event_loop_lag_p99_s=0.001,
    finish_reason="length",
    content="text",
    reasoning="",
)
PASSED = ChecklistItem("cold", "first request cold", "pass", "0 cached tokens by usage")
FAILED = ChecklistItem("warm", "repeat warm", "fail", "0 of 32,768 cached")


def _report(*items: ChecklistItem, interrupted: bool = False) -> VerifyReport:
    server = ServerState(version="0.32.0")
    return VerifyReport("http://127.0.0.1:8000", "tiny", server, None, (COLD,), items, interrupted)


def test_each_send_is_a_row_of_measured_figures() -> None:
    row = next(line for line in render_verify(_report(PASSED), Paint()).splitlines() if line.startswith("  cold"))
    assert row.split() == ["cold", "32,768", "0", "17.8", "s", "6.8", "ms", "146.6", "32", "length"]


def test_each_promise_is_judged_with_its_evidence() -> None:
    text = render_verify(_report(PASSED, FAILED), Paint())
    assert "       pass  first request cold: 0 cached tokens by usage" in text
    assert "       FAIL  repeat warm: 0 of 32,768 cached" in text
    assert text.endswith("1 passed, 1 failed, 0 cannot be told")


def test_an_interrupted_run_says_so() -> None:
    assert "stopped early; 1 passed" in render_verify(_report(PASSED, interrupted=True), Paint())


def test_a_servers_words_cannot_draw_on_the_terminal_and_advice_follows() -> None:
    item = ChecklistItem("server_answers", "server answers", "fail", "no \x1b[2J\r\n such", "curl -i URL")
    lines = render_verify(_report(item), Paint()).splitlines()
    at = lines.index("       FAIL  server answers: no [2J such")
    assert lines[at + 1] == "             fix: curl -i URL"
