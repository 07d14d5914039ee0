from longreach.errors import UsageError
from longreach.report.findings_text import render_error, render_finding, render_findings
from longreach.report.style import Paint
from longreach.rules.finding import Finding

FINDING = Finding(
    "LR103",
    "error",
    "max-model-len 750000 does not fit the KV cache",
    "10 GiB on each of 4 GPUs holds 327680 tokens " + "and more words " * 12,
    "set --kv-cache-memory-bytes to at least 24576524288\nor less length",
    "kv_too_small_for_max_len",
)
ADVICE = Finding("LR301", "advice", "tiers hold prefixes", "why", "none needed", "tiers_hold_prefixes", instance="long")


def test_a_finding_says_what_why_and_fix() -> None:
    lines = render_finding(FINDING, Paint())
    assert lines[0] == "error[LR103]: max-model-len 750000 does not fit the KV cache"
    assert lines[1].startswith("  why: 10 GiB")
    assert "  fix: set --kv-cache-memory-bytes to at least 24576524288" in lines
    assert lines[-1] == "       or less length"
    assert all(len(line) <= Paint().width for line in lines)


def test_findings_are_counted_and_advice_may_be_brief() -> None:
    lines = render_findings([FINDING, ADVICE], Paint(), brief_advice=True)
    assert lines[0] == "Findings: 1 error, 1 advice"
    assert "advice[LR301]: long: tiers hold prefixes" in lines
    assert not any("none needed" in line for line in lines)
    assert "none needed" in "\n".join(render_findings([FINDING, ADVICE], Paint()))


def test_no_findings_are_said() -> None:
    assert render_findings([], Paint()) == ["No findings."]


def test_an_error_has_the_same_form() -> None:
    lines = render_error(UsageError("unknown GPU 'X'", "no card has that name", "--gpus 4xRTX4090"), Paint())
    assert lines == ["error: unknown GPU 'X'", "  why: no card has that name", "  fix: --gpus 4xRTX4090"]
