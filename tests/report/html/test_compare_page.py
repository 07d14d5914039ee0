from dataclasses import replace

import pytest
from tests.report.html import sample_runs
from tests.report.html.parsed_page import parsed, text_of

from longreach.measure.bench.compare import compare_runs
from longreach.measure.bench.compare_values import RunComparison
from longreach.report.html.compare_page import render_compare_html


@pytest.fixture(scope="module")
def comparison() -> RunComparison:
    a, b = sample_runs.run(), sample_runs.run()
    faster = tuple(replace(one, ttft_s=one.ttft_s * 0.7 if one.ttft_s else None) for one in b.records)
    header = replace(b.header, label="after </title><script>alert(1)</script>")
    return compare_runs(a, replace(b, records=faster, header=header))


def test_the_verdict_comes_first(comparison: RunComparison) -> None:
    opening = text_of(next(parsed(render_compare_html(comparison)).iter("header")))
    assert "after </title><script>alert(1)</script> against GPU and CPU tier: better" in opening


def test_every_difference_has_its_interval(comparison: RunComparison) -> None:
    (cold,) = [
        item for item in comparison.metrics if (item.metric, item.state, item.figure) == ("ttft_s", "cold", "mean")
    ]
    assert cold.interval is not None
    low, high = (f"{100 * end:+.1f} %" for end in cold.interval)
    text = text_of(parsed(render_compare_html(comparison)))
    assert f"TTFT cold mean {100 * cold.difference:+.1f} % ({low} to {high}): better" in text


def test_what_would_decide_is_told(comparison: RunComparison) -> None:
    open_one = replace(comparison.metrics[0], verdict="not_enough_data", num_needed=1_200)
    text = text_of(parsed(render_compare_html(replace(comparison, metrics=(open_one,)))))
    assert "1,200 requests a run would do, now 24." in text


def test_runs_without_a_common_figure_are_a_page(comparison: RunComparison) -> None:
    text = text_of(parsed(render_compare_html(replace(comparison, metrics=()))))
    assert "Differences is not drawn: the runs have no figure in common." in text
