"""Two benchmark runs side by side as a page."""

from xml.etree.ElementTree import Element

from longreach.measure.bench.compare_values import MetricComparison, RunComparison
from longreach.measure.verify_report import Verdict
from longreach.report.bench_compare_text import (
    HONESTY,
    NO_INTERVAL,
    count_verdicts,
    describe_runs,
    explain_verdict,
    name_metric,
    write_figure,
    write_needed,
)
from longreach.report.html.colours import BAD, DOUBT, GOOD, SERIES, Colour
from longreach.report.html.elements import Content, table
from longreach.report.html.page import Headline, notes, plot_section, render_page, section, word
from longreach.report.html.plots.forest import Difference, change_text, interval_text, plot_differences
from longreach.report.html.plots.values import NoPlot, Plot

_VERDICTS: dict[str, tuple[str, Verdict, Colour]] = {
    "better": ("better", "pass", GOOD),
    "equal": ("equal", "pass", SERIES[0]),
    "worse": ("worse", "fail", BAD),
    "not_enough_data": ("not enough data", "cannot_tell", DOUBT),
    "not_comparable": ("not comparable", "fail", BAD),
}
_NO_VERDICT: tuple[str, Verdict, Colour] = ("no verdict", "cannot_tell", DOUBT)


def render_compare_html(comparison: RunComparison) -> str:
    """The verdict, every difference with its interval, and what would decide the open ones."""
    body = [
        plot_section("Plots", [_plot(comparison)]),
        *([section("Figures", _metric_table(comparison))] if comparison.metrics else []),
        section("How to read it", *notes((*_needed(comparison), NO_INTERVAL, HONESTY))),
    ]
    return render_page("Comparison of two runs", _headline(comparison), body)


def _headline(comparison: RunComparison) -> Headline:
    text, level, _ = _VERDICTS[comparison.verdict]
    return Headline(
        f"{comparison.label_b} against {comparison.label_a}: {text}",
        f"Differences are of B ({comparison.label_b}) from A ({comparison.label_a}). All intervals together hold with 95 %; "
        f"each of them with {100 * comparison.level:.3g} %.",
        level,
        f"{text.capitalize()}: {count_verdicts(comparison) or 'no figure in common'}.",
        (*explain_verdict(comparison), *comparison.warnings, *describe_runs(comparison)),
    )


def _plot(comparison: RunComparison) -> Plot | NoPlot:
    title = "Differences"
    if not comparison.metrics:
        return NoPlot(title, "the runs have no figure in common")
    differences = [_difference(item) for item in comparison.metrics]
    opening = "Difference of B from A, with intervals. Times are better when shorter, rates and shares when larger."
    return plot_differences("differences", title, opening, "B against A", comparison.margin, differences)


def _difference(item: MetricComparison) -> Difference:
    text, _, colour = _VERDICTS[item.verdict] if item.verdict else _NO_VERDICT
    return Difference(name_metric(item), item.difference, item.interval, text, colour)


def _metric_table(comparison: RunComparison) -> Element:
    return table("Every figure of both runs", _HEADER, [_row(item) for item in comparison.metrics], num_text_columns=2)


_HEADER = ("figure", "verdict", "A", "B", "difference", "interval", "requests of A", "of B")


def _row(item: MetricComparison) -> tuple[Content, ...]:
    text, level, _ = _VERDICTS[item.verdict] if item.verdict else _NO_VERDICT
    return (
        name_metric(item),
        word(level, text),
        write_figure(item.a, item),
        write_figure(item.b, item),
        change_text(item.difference),
        interval_text(item.interval),
        f"{item.num_a:,}",
        f"{item.num_b:,}",
    )


def _needed(comparison: RunComparison) -> list[str]:
    return [
        f"{name_metric(item)}: {write_needed(item)} requests a run would do, now {min(item.num_a, item.num_b):,}."
        for item in comparison.metrics
        if item.verdict == "not_enough_data" and item.num_needed
    ]
