"""What holds for every page."""

import re
from itertools import pairwise

import pytest
from tests.report.html import sample_runs
from tests.report.html.parsed_page import by_id, parsed, text_of

from longreach.report.html.bench_page import render_bench_html

PAGES = ("page", "plain_page", "large_page", "tiers_page", "compare_page")


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
    assert len(list(root.iter("svg"))) == len(figures) >= 1
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


def test_the_same_run_gives_the_same_bytes(plain_page: str) -> None:
    result = sample_runs.plain_run()
    assert render_bench_html(result, sample_runs.summary(result)) == plain_page
