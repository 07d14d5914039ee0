import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.measure.bench.results import cold_run, failed, record, result

from longreach.measure.bench.journal import open_journal
from longreach.measure.bench.log import Entry, RunEnd
from longreach.measure.bench.values import BenchResult, Load

Longreach = Callable[..., tuple[int, str, str]]


def _write(path: Path, run: BenchResult) -> str:
    end = RunEnd(run.client_loop_lag_p99_s, run.interrupted)
    entries: tuple[Entry, ...] = (*run.records, *run.phases, *run.samples, end)
    with open_journal(path, run.header) as journal:
        for entry in entries:
            journal.write(entry)
    return str(path)


def _slower(run: BenchResult, factor: float) -> BenchResult:
    def slow(seconds: float | None) -> float:
        return factor * (seconds or 0)

    records = [
        replace(r, ttft_s=slow(r.ttft_s), itl_s=slow(r.itl_s), e2e_latency_s=slow(r.e2e_latency_s)) for r in run.records
    ]
    return replace(run, records=tuple(records))


@pytest.mark.parametrize(
    ("factor", "options", "code", "verdict"),
    [
        (1.2, (), 1, "worse"),
        (1.2, ("--margin", "30%"), 0, "equal"),
        (1.2, ("--margin", "0.3"), 0, "equal"),
        (0.8, (), 0, "better"),
        (0.8, ("--slo", "ttft=1s"), 0, "better"),
    ],
    ids=["slower", "within the margin", "a margin as a number", "faster", "with limits"],
)
def test_compare_says_how_b_is_and_exits_1_when_it_is_worse(
    longreach: Longreach, tmp_path: Path, factor: float, options: tuple[str, ...], code: int, verdict: str
) -> None:
    a = _write(tmp_path / "a.jsonl", cold_run(12))
    b = _write(tmp_path / "b.jsonl", _slower(cold_run(12), factor))
    exit_code, out, _ = longreach("bench", "compare", a, b, "--json", *options)
    document = json.loads(out)
    assert (exit_code, document["verdict"]) == (code, verdict)
    assert document["metrics"][0]["interval"] == pytest.approx([factor - 1, factor - 1])
    text_code, text, _ = longreach("bench", "compare", a, b, *options)
    assert text_code == code
    assert text.lower().startswith(verdict)


@pytest.mark.parametrize("margin", ["0", "100%", "-5%", "five", "5%%", "nan"])
def test_a_margin_is_a_share(longreach: Longreach, margin: str) -> None:
    code, _, err = longreach("bench", "compare", "a.jsonl", "b.jsonl", f"--margin={margin}")
    assert code == 2
    assert f"margin '{margin}' is no share" in err
    assert "fix: --margin 5%" in err


def test_report_prints_the_run_again_with_limits(longreach: Longreach, tmp_path: Path) -> None:
    run = cold_run(10)
    path = _write(tmp_path / "run.jsonl", run)
    code, out, _ = longreach("bench", "report", path, "--slo", "ttft=3s,itl=50ms")
    assert code == 0
    assert "10 of 10 requests answered in 30.0 s" in out
    assert "goodput 0.0% (0.0% to 27.8%) within TTFT 3.0 s, ITL 50 ms" in out
    code, out, _ = longreach("bench", "report", path, "--json")
    document = json.loads(out)
    assert (code, document["summary"]["num_ok"], document["summary"]["ttft_s"]["p50"]) == (0, 10, 2.0)


def test_report_exits_1_when_a_request_failed_or_was_not_cold(longreach: Longreach, tmp_path: Path) -> None:
    broken = _write(tmp_path / "broken.jsonl", result(record(0), failed(1)))
    assert longreach("bench", "report", broken)[0] == 1
    hit = record(0, cached_tokens=900, proof="disproven")
    assert longreach("bench", "report", _write(tmp_path / "hit.jsonl", result(hit)))[0] == 1


def test_report_writes_a_page(longreach: Longreach, tmp_path: Path) -> None:
    path, page = _write(tmp_path / "run.jsonl", cold_run(10)), tmp_path / "run.html"
    code, out, err = longreach("bench", "report", path, "--html", str(page), "--json")
    assert code == 0
    assert json.loads(out)["schema"] == "longreach/bench/1"
    assert err == f"report: {page}\n"
    assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")


def test_compare_writes_a_page(longreach: Longreach, tmp_path: Path) -> None:
    path, page = _write(tmp_path / "run.jsonl", cold_run(10)), tmp_path / "compared.html"
    other = _write(tmp_path / "other.jsonl", cold_run(10, label="after"))
    code, _, err = longreach("bench", "compare", path, other, "--html", str(page))
    assert code == 0
    assert err == f"report: {page}\n"
    text = page.read_text(encoding="utf-8")
    assert "Comparison of two runs" in text
    assert all(word in text for word in ("run.jsonl", "other.jsonl", "after", "synthetic text"))


def test_runs_that_are_not_comparable_never_pass_a_gate(longreach: Longreach, tmp_path: Path) -> None:
    a = _write(tmp_path / "a.jsonl", cold_run(12))
    b = _write(tmp_path / "b.jsonl", _slower(cold_run(12, load=Load("closed", 4), workload_digest="e" * 64), 0.5))
    code, out, _ = longreach("bench", "compare", a, b, "--json")
    document = json.loads(out)
    assert (code, document["verdict"]) == (1, "not_comparable")
    assert [obstacle["field"] for obstacle in document["obstacles"]] == ["workload", "load"]
    assert {metric["verdict"] for metric in document["metrics"]} == {None}
    assert document["run_b"]["file"] == b
    code, text, _ = longreach("bench", "compare", a, b)
    assert code == 1
    assert text.startswith("NOT COMPARABLE  B against A: not the same workload, load")
    assert "not the same load: one at a time in A, 4 at once in B" in text
    page = tmp_path / "page.html"
    assert longreach("bench", "compare", a, b, "--html", str(page))[0] == 1
    assert "not comparable" in page.read_text(encoding="utf-8")
    code, text, _ = longreach("bench", "compare", a, b, "--anyway")
    assert code == 0
    assert text.startswith("better")
    assert "Compared anyway" in text


def test_results_in_place_of_a_plan_lead_to_report(longreach: Longreach, tmp_path: Path) -> None:
    path = _write(tmp_path / "run.jsonl", cold_run(10))
    code, _, err = longreach("bench", path)
    assert code == 1
    assert f"{path} holds results, not a plan" in err
    assert f"fix: longreach bench report {path}" in err


@pytest.mark.parametrize(("word", "hint"), [("compere", "compare"), ("reprot", "report"), ("reports", "report")])
def test_a_mistyped_file_command_is_told_the_nearest(longreach: Longreach, word: str, hint: str) -> None:
    code, _, err = longreach("bench", word, "a.jsonl", "b.jsonl")
    assert code == 2
    assert f"did you mean '{hint}'?" in err


def test_a_run_against_itself_is_refused(longreach: Longreach, tmp_path: Path) -> None:
    path = _write(tmp_path / "run.jsonl", cold_run(10))
    code, _, err = longreach("bench", "compare", path, path)
    assert code == 2
    assert "A and B are the same run" in err


def test_a_run_that_was_stopped_early_says_so_first_and_exits_1(longreach: Longreach, tmp_path: Path) -> None:
    run = cold_run(10)
    path = _write(
        tmp_path / "run.jsonl", BenchResult(replace(run.header, num_requests=20), run.records, interrupted=True)
    )
    code, text, _ = longreach("bench", "report", path)
    assert code == 1
    assert text.startswith("stopped early: 10 of 20 requests were made")


@pytest.mark.parametrize("command", ["report", "compare"])
def test_a_page_never_replaces_results(longreach: Longreach, tmp_path: Path, command: str) -> None:
    path = _write(tmp_path / "run.jsonl", cold_run(10))
    code, _, err = longreach("bench", command, *[path] * (1 + (command == "compare")), "--html", path)
    assert code == 2
    assert "would replace the results" in err
    assert "run-report.html" in err
    assert Path(path).read_text(encoding="utf-8").startswith('{"kind":"header"')


def test_files_that_hold_no_run_are_refused(longreach: Longreach, tmp_path: Path) -> None:
    good, missing = _write(tmp_path / "run.jsonl", cold_run(10)), str(tmp_path / "missing.jsonl")
    code, _, err = longreach("bench", "compare", good, missing)
    assert code == 1
    assert f"cannot read the results {missing}" in err
    warm = _write(tmp_path / "warm.jsonl", result(record(state="warm")))
    code, _, err = longreach("bench", "compare", good, warm)
    assert code == 2
    assert "the two runs have no figure in common" in err


def test_a_limit_that_is_none_is_refused_before_anything_is_read(longreach: Longreach) -> None:
    code, _, err = longreach("bench", "report", "no-such.jsonl", "--slo", "tfft=1s")
    assert code == 2
    assert "did you mean 'ttft'?" in err
