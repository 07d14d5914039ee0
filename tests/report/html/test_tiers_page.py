from dataclasses import replace

from tests.report.html import sample_tiers
from tests.report.html.parsed_page import parsed, text_of

from longreach.report.html.tiers_page import render_tiers_html


def test_the_winner_and_each_verdict_come_first(tiers_page: str) -> None:
    root = parsed(tiers_page)
    opening = text_of(next(root.iter("header")))
    assert "Qwen/Qwen3.6-27B: GPU+CPU is best" in opening
    assert "Run 3 of GPU+CPU+disk failed: the engine died: <script>alert('x')</script>" in opening
    assert "CPU tier, keep: time to first token saved: +" in opening
    assert "disk tier, not enough data: " in opening


def test_hits_are_shown_by_tier(tiers_page: str) -> None:
    text = text_of(parsed(tiers_page))
    assert "GPU+CPU: 38 % computed, 2 % GPU cache, 60 % CPU tier of 72,000 prompt tokens" in text


def test_gains_are_shown_with_their_intervals(tiers_page: str) -> None:
    report = sample_tiers.report()
    gain = report.steps[0].ttft_gain
    assert gain is not None
    assert gain.interval is not None
    low, high = (f"{100 * end:+.1f} %" for end in gain.interval)
    assert f"GPU+CPU, TTFT {100 * gain.value:+.1f} % ({low} to {high}): keep" in text_of(parsed(tiers_page))


def test_a_comparison_that_measured_nothing_is_a_page() -> None:
    report = sample_tiers.report()
    empty = replace(report, figures=(), steps=(), winner=None, runs=report.runs[-1:], sizing=None, workload_source="")
    text = text_of(parsed(render_tiers_html(empty)))
    assert "Nothing could be judged." in text
    assert "TTFT by variant is not drawn: no request was answered." in text
    assert "What each tier saves is not drawn: no two variants answered the same requests." in text
