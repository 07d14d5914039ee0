import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from tests.report.html import sample_runs
from tests.report.html.parsed_page import by_id, parsed, text_of

from longreach.measure.bench.values import BenchResult
from longreach.report.html.bench_page import render_bench_html

PAGES = ("page", "plain_page", "large_page")


@pytest.fixture(params=PAGES)
def any_page(request: pytest.FixtureRequest) -> str:
    page: str = request.getfixturevalue(request.param)
    return page


def test_page_stays_under_a_megabyte(any_page: str) -> None:
    assert 20_000 < len(any_page.encode()) < 1_000_000


def test_page_names_its_language_and_itself(any_page: str) -> None:
    root = parsed(any_page)
    assert [html.get("lang") for html in root.iter("html")] == ["en"]
    assert text_of(next(root.iter("title"))) == text_of(next(root.iter("h1")))


def test_headings_come_in_order(any_page: str) -> None:
    levels = [int(element.tag[1]) for element in parsed(any_page).iter() if re.fullmatch(r"h[1-6]", element.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_drawing_has_a_name_a_sentence_and_a_table(any_page: str) -> None:
    root = parsed(any_page)
    figures = list(root.iter("figure"))
    assert len(list(root.iter("svg"))) == len(figures) >= 4
    for figure in figures:
        drawing = next(figure.iter("svg"))
        assert drawing.get("role") == "img"
        assert text_of(by_id(root, drawing.attrib["aria-labelledby"]))
        assert re.search(r"\d", text_of(by_id(root, drawing.attrib["aria-describedby"])))
        assert re.search(r"\d", text_of(next(figure.iter("tbody"))))


def test_every_table_has_a_caption_and_named_rows_and_columns(any_page: str) -> None:
    for table in parsed(any_page).iter("table"):
        assert text_of(next(table.iter("caption")))
        assert {head.get("scope") for head in table.iter("th")} == {"col", "row"}
        columns = len(next(table.iter("thead"))[0])
        assert {len(row) for row in table.iter("tr")} == {columns}


def test_ids_are_unique_and_every_reference_is_met(any_page: str) -> None:
    elements = list(parsed(any_page).iter())
    ids = [element.attrib["id"] for element in elements if "id" in element.attrib]
    assert len(ids) == len(set(ids))
    links = {element.attrib["href"] for element in elements if "href" in element.attrib}
    drawn = set(re.findall(r"url\(#([^)]*)\)", any_page))
    assert {link.removeprefix("#") for link in links if link.startswith("#")} | drawn <= set(ids)


def test_nothing_is_loaded_or_run(any_page: str) -> None:
    root = parsed(any_page)
    assert not [
        element for element in root.iter() if element.tag in {"script", "link", "iframe", "object", "base", "a"}
    ]
    for element in root.iter():
        assert not [name for name in element.attrib if name.startswith("on")]
        for name in ("src", "href"):
            assert re.match(r"#|data:image/png;base64,|$", element.get(name, ""))
    assert not re.search(r"url\((?!#)|@import", any_page)


def test_policy_forbids_what_the_page_does_not_need(any_page: str) -> None:
    (policy,) = [
        meta.attrib["content"]
        for meta in parsed(any_page).iter("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")


def test_the_same_run_gives_the_same_bytes() -> None:
    first, second = (render_bench_html(run, sample_runs.summary(run)) for run in (sample_runs.run(num_requests=6),) * 2)
    assert first == second


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
    assert "All 12 requests were answered." in text_of_run(replace(result, records=at_once))
