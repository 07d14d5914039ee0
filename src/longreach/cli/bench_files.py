"""`longreach bench compare` and `bench report`: results files read again, nothing measured."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from longreach.cli.params import FILE, Share, echo_json, json_option, stdout_paint
from longreach.errors import UsageError

_GRAVE = frozenset({"requests_complete", "cold_is_cold", "warm_is_warm", "evicted_was_evicted"})


def slo_option(function: Any) -> Any:
    """`--slo`: limits of one request; the text is parsed where it is used."""
    return click.option(
        "--slo", metavar="LIMITS", help="Count requests within limits: ttft=60s,itl=80ms,e2e=5m (each optional)."
    )(function)


@click.command(short_help="Is run B better, equal or worse than run A?")
@click.argument("a", type=FILE, metavar="A.jsonl")
@click.argument("b", type=FILE, metavar="B.jsonl")
@click.option(
    "--margin",
    type=Share(most_open=True, number=float),
    default="5%",
    show_default=True,
    help="Differences up to this are equal.",
)
@click.option("--html", type=FILE, metavar="FILE.html", help="Write one self-contained page as well.")
@click.option("--anyway", is_flag=True, help="Give verdicts on runs that are not comparable, too.")
@slo_option
@json_option
def compare(a: Path, b: Path, *, margin: float, html: Path | None, anyway: bool, slo: str | None, as_json: bool) -> int:
    """Compare two results files figure by figure: better, equal, worse or not enough data, with intervals.

    Requests of the same workload are compared pair by pair. Runs of another workload, load, output length, cache state or API
    are not comparable. Exit code 1 when they are not, or when a figure is worse.
    """
    from longreach.measure.bench.compare import compare_runs
    from longreach.measure.bench.journal import read_journal
    from longreach.report.bench_compare_text import render_comparison

    limits = _slo(slo)
    refuse_to_replace(html, a, b)
    found = compare_runs(read_journal(a), read_journal(b), margin, limits, anyway=anyway)
    runs = {name: replace(getattr(found, name), file=str(path)) for name, path in (("run_a", a), ("run_b", b))}
    comparison = replace(found, **runs)
    if html is not None:
        from longreach.cli.html_page import write_compare_page

        write_compare_page(html, comparison)
        click.echo(f"report: {html}", err=True)
    if as_json:
        echo_json({"verdict": comparison.verdict, **asdict(comparison)})
    else:
        click.echo(render_comparison(comparison, stdout_paint()))
    return 1 if comparison.verdict in ("worse", "not_comparable") else 0


@click.command(short_help="Print a results file as `bench` printed it.")
@click.argument("file", type=FILE, metavar="FILE.jsonl")
@click.option("--html", type=FILE, metavar="FILE.html", help="Write one self-contained page as well.")
@slo_option
@json_option
def report(file: Path, *, html: Path | None, slo: str | None, as_json: bool) -> int:
    """Read a results file and show its figures again, with other limits or as another kind of document.

    Exit code 1 when a request failed, the cache was not in the state that was claimed, or the run was stopped early.
    """
    from longreach.measure.bench.journal import read_journal
    from longreach.measure.bench.summary import summarise

    limits = _slo(slo)
    refuse_to_replace(html, file)
    result = read_journal(file)
    summary = summarise(result, limits)
    if html is not None:
        write_html(html, result, summary)
    print_report(result, summary, as_json=as_json)
    is_grave = any(item.name in _GRAVE and item.verdict == "fail" for item in summary.checks)
    return 1 if is_grave or result.interrupted else 0


def refuse_to_replace(page: Path | None, *results: Path) -> None:
    """UsageError when the page would be written over results."""
    if page is not None and page.resolve() in {path.resolve() for path in results}:
        raise UsageError(
            f"--html {page} would replace the results",
            "they cannot be made from a page again",
            f"--html {page.with_name(f'{page.stem}-report.html')}",
        )


def print_report(result: Any, summary: Any, *, as_json: bool) -> None:
    """On stdout: the screen, or the document."""
    from longreach.report.bench_document import bench_document
    from longreach.report.bench_text import render_bench

    if as_json:
        echo_json(bench_document(result, summary))
    else:
        click.echo(render_bench(result, summary, stdout_paint()))


def write_html(path: Path, result: Any, summary: Any) -> None:
    """The page with plots; stderr says where."""
    from longreach.cli.html_page import write_bench_page

    write_bench_page(path, result, summary)
    click.echo(f"report: {path}", err=True)


def _slo(text: str | None) -> Any:
    from longreach.measure.bench.slo import parse_slo

    return None if text is None else parse_slo(text)
