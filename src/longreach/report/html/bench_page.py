"""A benchmark run as a page for people who were not there."""

from xml.etree.ElementTree import Element

from longreach.measure.bench.summary_values import BenchSummary
from longreach.measure.bench.values import BenchResult
from longreach.report.html.bench_tables import bench_tables, check_table, failure_tables, forecast_table, header_table
from longreach.report.html.elements import element
from longreach.report.html.figures import counted, duration, interval, percent, rate
from longreach.report.html.headline import Headline, bench_headline
from longreach.report.html.page import plot_section, render_page, section
from longreach.report.html.plots.hits import plot_hits
from longreach.report.html.plots.itl import plot_itl
from longreach.report.html.plots.latency import plot_latency
from longreach.report.html.plots.timeline import plot_timeline
from longreach.report.html.plots.ttft import plot_ttft
from longreach.report.html.plots.values import STATE_WORDS


def render_bench_html(result: BenchResult, summary: BenchSummary) -> str:
    """The whole run: verdict, figures with their intervals, plots, forecast, checks, and what was run."""
    headline = bench_headline(result, summary)
    plots = (
        plot_ttft(result, summary),
        plot_latency(result, summary),
        plot_timeline(result),
        plot_hits(summary),
        plot_itl(result, summary),
    )
    body = [
        _opening(headline),
        _tiles(summary),
        plot_section("Plots", plots),
        section("Figures", *bench_tables(summary)),
        *([section("Measured against the plan", forecast_table(summary))] if summary.forecasts else []),
        *([section("Checks", check_table(summary))] if summary.checks else []),
        *([section("Failed requests", *failure_tables(result, summary))] if summary.num_failed else []),
        section("What was run", *header_table(result)),
    ]
    foot = element(
        "footer", f"Written by longreach {result.header.longreach_version}. This page loads nothing from anywhere."
    )
    return render_page(headline.title, [element("header", *body[:1]), element("main", *body[1:]), foot])


def _opening(headline: Headline) -> Element:
    details = element("ul", *(element("li", line) for line in headline.details))
    verdict = element("div", element("p", headline.verdict), class_=f"verdict {headline.level}", role="status")
    if headline.details:
        verdict.append(details)
    return element(
        "div",
        element("p", "Benchmark", class_="eyebrow"),
        element("h1", headline.title),
        element("p", headline.what, class_="lead"),
        verdict,
    )


def _tiles(summary: BenchSummary) -> Element:
    tiles = [
        _tile(f"TTFT, {STATE_WORDS[state.state]}, P50", duration(state.ttft_s.p50), interval(state.ttft_s.p50_interval))
        for state in summary.states
        if state.ttft_s
    ]
    if summary.itl_s:
        tiles.append(_tile("ITL, P50", duration(summary.itl_s.p50), interval(summary.itl_s.p50_interval)))
    if summary.output_tokens_per_s is not None:
        tiles.append(_tile("Output", rate(summary.output_tokens_per_s, "").strip(), "tokens/s, all requests together"))
    if summary.goodput:
        within = f"{counted(summary.goodput.num_met, 'request')} within every limit"
        tiles.append(_tile("Goodput", percent(summary.goodput.share), within))
    return element("dl", *tiles, class_="tiles")


def _tile(name: str, value: str, below: str) -> Element:
    lines = [element("dd", value), *([element("dd", below)] if below != "-" else [])]
    return element("div", element("dt", name), *lines, class_="tile")
