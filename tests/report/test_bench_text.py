"""The screens of a benchmark run, compared with those on file; `python -m tests.report.test_bench_text` writes them anew."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.measure.bench.results import cold_run, failed, record, result
from tests.report.bench_examples import comparison, three_states, three_states_summary

from longreach.measure.bench.compare import compare_runs
from longreach.measure.bench.summary import summarise
from longreach.measure.bench.summary_values import Slo
from longreach.measure.bench.values import BenchResult, Load
from longreach.report.bench_compare_text import render_comparison
from longreach.report.bench_text import render_bench
from longreach.report.style import Paint

FOLDER = Path(__file__).parents[1] / "corpus/screens"
SCREENS: dict[str, Callable[[Paint], str]] = {
    "bench": lambda paint: render_bench(three_states(), three_states_summary(), paint),
    "bench-compare": lambda paint: render_comparison(comparison(), paint),
}


def _plain(run: BenchResult) -> str:
    return render_bench(run, summarise(run), Paint())


@pytest.mark.parametrize("name", SCREENS)
def test_the_screen_is_the_one_on_file(name: str) -> None:
    assert SCREENS[name](Paint()) + "\n" == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SCREENS)
def test_it_fits_eighty_columns(name: str) -> None:
    assert max(len(line) for line in SCREENS[name](Paint(width=80)).splitlines()) <= 80


@pytest.mark.parametrize("name", SCREENS)
def test_colour_changes_no_letter(name: str) -> None:
    coloured = SCREENS[name](Paint(enabled=True))
    for code in ("1", "1;31", "1;32", "1;33", "2", "31", "32", "33"):
        coloured = coloured.replace(f"\x1b[{code}m", "")
    assert coloured.replace("\x1b[0m", "") == SCREENS[name](Paint())


def test_a_run_without_an_answer_shows_why() -> None:
    text = _plain(result(failed(0), failed(1)))
    assert "0 of 2 requests answered in 3.0 s, 2 failed" in text
    assert "2 x refused (HTTP 400): This model's maximum context length is 512 tokens." in text
    assert "TTFT," not in text


def test_a_long_list_of_failures_is_cut_and_counted() -> None:
    text = _plain(result(*(failed(index, error=f"reason {index}") for index in range(8))))
    assert text.count("1 x refused") == 5
    assert "and 3 more; the results file holds all of them" in text


def test_a_run_cut_short_says_what_is_missing() -> None:
    run = replace(result(record(0), record(1), num_requests=5), interrupted=True)
    text = _plain(run)
    assert "2 of 5 requests answered in 6.0 s, 3 not made" in text
    assert "stopped early; " in text


def test_few_requests_have_no_intervals_and_one_time_to_first_token() -> None:
    text = _plain(cold_run(4, load=Load("poisson", 8, 0.5), notes=("half of the sessions were sampled",)))
    rows = [line.split() for line in text.splitlines() if line.startswith(("  TTFT", "  ITL"))]
    assert rows == [
        ["TTFT,", "s", "4", "2.00", "2.00", "2.00*", "2.00*", "2.00"],
        ["ITL,", "ms", "4", "100", "100", "100*", "100*", "100"],
    ]
    assert "* too few requests (P90 takes 10, P99 takes 100): close to the largest" in text
    assert "*" not in _plain(cold_run(100))
    assert "first answer" not in text
    assert "0.5 a second (poisson), at most 8 at once" in text
    assert "half of the sessions were sampled" in text


def test_a_servers_words_cannot_draw_on_the_terminal() -> None:
    text = _plain(result(record(), failed(1, error="no \x1b[2J\r\n such"), model="ti\x1bny"))
    assert "\x1b" not in text
    assert "no [2J such" in text


def test_without_metrics_nothing_is_said_of_the_server() -> None:
    run = replace(result(record(), record(1, output_tokens=None), lag_s=None), samples=())
    records = tuple(replace(item, client_loop_lag_p99_s=None) for item in run.records)
    text = _plain(replace(run, records=records))
    assert "preemption" not in text
    assert "late by" not in text
    assert "tokens/s generated" not in text


if __name__ == "__main__":
    for title, render in SCREENS.items():
        (FOLDER / f"{title}.txt").write_text(render(Paint()) + "\n", encoding="utf-8")


def test_words_of_others_move_no_cursor_and_long_names_are_wrapped() -> None:
    evil = "\x1b[2J\x07note"
    run = result(record(0, hits_by_source=((evil, 5),)), model="m" * 500, label=evil, notes=(evil,))
    text = render_bench(run, summarise(run), Paint(width=80))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert max(map(len, text.splitlines())) <= 93  # the checklist's evidence is indented by its mark


def test_a_goodput_that_cannot_be_told_is_no_number() -> None:
    run = result(*(record(index, output_tokens=None, itl_s=None) for index in range(10)))
    text = render_bench(run, summarise(run, Slo(itl_s=0.1)), Paint())
    assert "goodput within ITL 100 ms cannot be told: the server does not count the tokens of 10 requests" in text


def test_so_few_requests_that_nothing_can_be_said_are_told_what_would_be_the_least() -> None:
    text = render_comparison(compare_runs(result(record()), result(record(ttft_s=1.0))), Paint())
    assert "TTFT cold mean at least 8, TTFT cold P50 at least 10" in text


def test_a_run_that_failed_altogether_has_no_rates_and_no_intervals() -> None:
    text = _plain(result(failed(0), failed(1)))
    assert "requests/s" not in text
    assert "second lines" not in text
