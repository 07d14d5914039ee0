from dataclasses import replace
from typing import Any

from tests.report.html import sample_runs
from tests.report.html.parsed_page import parsed, text_of

from longreach.measure.bench.summary import summarise
from longreach.measure.bench.values import BenchResult
from longreach.report.html.bench_page import render_bench_html


def test_words_of_a_server_stay_words(page: str) -> None:
    failures = text_of(
        next(section for section in parsed(page).iter("section") if section.get("aria-labelledby") == "failed-requests")
    )
    assert "EngineDeadError: <script>alert('x')</script> & [31mred" in failures
    assert "\x1b" not in page


EVIL = "</style></title><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x00"


def test_words_of_a_file_stay_words() -> None:
    result = sample_runs.plain_run()
    words = ("base_url", "model", "label", "started_at", "workload_source", "seed", "tokenizer")
    changes: dict[str, Any] = {name: f"{name} {EVIL}" for name in words}
    header = replace(result.header, notes=(f"notes {EVIL}",), **changes)
    made = replace(result, header=header)
    root = parsed(render_bench_html(made, sample_runs.summary(made)))
    assert not [element for element in root.iter() if element.tag in {"script", "img"}]
    text = text_of(next(root.iter("body")))
    assert [name for name in (*words, "notes") if f"{name} {EVIL[:-1]}" not in text] == []


def text_of_run(result: BenchResult) -> str:
    return text_of(parsed(render_bench_html(result, sample_runs.summary(result))))


def test_a_run_without_an_answer_says_so_instead_of_drawing() -> None:
    result = sample_runs.run()
    lost = tuple(replace(one, ok=False, ttft_s=None, itl_s=None, error="dead") for one in result.records)
    text = text_of_run(replace(result, records=lost, samples=(), phases=()))
    assert "72 of 72 requests failed." in text
    assert "TTFT by prompt length is not drawn: no request was answered." in text
    assert "Latency distribution is not drawn: no request was answered." in text
    assert "Prompt tokens by source is not drawn: the server counted no prompt tokens." in text
    assert "The first 50 of 72 failed requests" in text


def test_a_run_without_any_request_is_a_page() -> None:
    text = text_of_run(replace(sample_runs.plain_run(), records=(), interrupted=True))
    assert "Stopped early: 0 of 12 requests were sent." in text
    assert "Timeline is not drawn: no request was sent." in text


def test_a_single_request_is_drawn() -> None:
    text = text_of_run(sample_runs.plain_run(num_requests=1))
    assert "The one request was answered." in text
    assert "is not drawn: no request" not in text


def test_what_a_server_does_not_tell_is_not_made_up() -> None:
    result = sample_runs.plain_run()
    untold = tuple(replace(one, prompt_tokens=None, wanted_prompt_tokens=None, itl_s=None) for one in result.records)
    text = text_of_run(replace(result, records=untold))
    assert "ITL distribution is not drawn: no request brought two tokens whose number the server told." in text
    assert "Prompt tokens by source is not drawn" in text


def test_times_of_nothing_are_drawn() -> None:
    result = sample_runs.plain_run()
    at_once = tuple(replace(one, ttft_s=0.0, itl_s=0.0, e2e_latency_s=0.0, sent_s=0.0) for one in result.records)
    made = replace(result, records=at_once)
    assert "All 12 requests were answered." in text_of_run(made)
    assert "All 12 requests were answered." in text_of(parsed(render_bench_html(made, summarise(made))))


def test_thousands_of_different_long_errors_stay_a_small_page() -> None:
    result = sample_runs.plain_run(300)
    lost = tuple(replace(one, ok=False, error=f"{one.index} " + "long words " * 9_000) for one in result.records)
    made = replace(result, records=lost)
    page = render_bench_html(made, sample_runs.summary(made))
    assert "280 other texts" in page
    assert "... (99,0" in page
    assert len(page) < 400_000
