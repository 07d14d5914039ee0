"""A benchmark run as a page for people who were not there."""

from collections.abc import Iterator

from longreach.measure.bench.summary_values import BenchSummary
from longreach.measure.bench.values import BenchResult
from longreach.report.bench_tables import STATE_WORDS
from longreach.report.html.bench_tables import bench_tables, check_table, failure_tables, forecast_table, header_table
from longreach.report.html.figures import duration, interval, percent, rate
from longreach.report.html.headline import bench_headline
from longreach.report.html.page import notes, plot_section, render_page, section, tiles
from longreach.report.html.plots.hits import plot_hits
from longreach.report.html.plots.itl import plot_itl
from longreach.report.html.plots.latency import plot_latency
from longreach.report.html.plots.timeline import plot_timeline
from longreach.report.html.plots.ttft import plot_ttft
from longreach.units import format_count


def render_bench_html(result: BenchResult, summary: BenchSummary) -> str:
    """The whole run: verdict, figures with their intervals, plots, forecast, checks, and what was run."""
    plots = (
        plot_ttft(result, summary),
        plot_latency(result, summary),
        plot_timeline(result),
        plot_hits(summary),
        plot_itl(result, summary),
    )
    body = [
        tiles(_main_figures(summary)),
        plot_section("Plots", plots),
        section("Figures", *bench_tables(summary)),
        *([section("Measured against the plan", forecast_table(summary))] if summary.forecasts else []),
        *([section("Checks", check_table(summary))] if summary.checks else []),
        *([section("Failed requests", *failure_tables(result, summary))] if summary.num_failed else []),
        section("What was run", header_table(result), *notes(result.header.notes)),
    ]
    return render_page("Benchmark", bench_headline(result, summary), body)


def _main_figures(summary: BenchSummary) -> Iterator[tuple[str, str, str]]:
    for state in summary.states:
        if state.ttft_s:
            name = f"TTFT, {STATE_WORDS[state.state]}, P50"
            yield name, duration(state.ttft_s.p50), interval(state.ttft_s.p50_interval)
    if summary.itl_s:
        yield "ITL, P50", duration(summary.itl_s.p50), interval(summary.itl_s.p50_interval)
    if summary.output_tokens_per_s is not None:
        yield "Output", rate(summary.output_tokens_per_s, "").strip(), "tokens/s, all requests together"
    if summary.goodput and not summary.goodput.num_unknown:
        within = f"{format_count(summary.goodput.num_met, 'request')} within every limit"
        yield "Goodput", percent(summary.goodput.share), within
