"""TTFT by prompt length: every request as a mark, the forecast behind them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from longreach.measure.bench.summary_values import BenchSummary, ForecastComparison, LengthSummary
from longreach.measure.bench.values import BenchResult, CacheState, RequestRecord
from longreach.report.bench_tables import STATE_WORDS
from longreach.report.html.colours import FORECAST, MUTED, STATES
from longreach.report.html.drawing import HEIGHT_IN, Tips, drawn
from longreach.report.html.figures import DISTRIBUTION_HEADER, distribution_cells, duration, quantiles_text, tokens
from longreach.report.html.plots.rows import Row, plot_rows
from longreach.report.html.plots.values import (
    NoPlot,
    Plot,
    Scale,
    by_state,
    label_at_right,
    prompt_tokens,
    scatter,
    set_durations,
    set_tokens,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = "TTFT by prompt length"
_FORECAST_FIGURES = ("ttft_cold_s", "ttft_warm_s")
Groups = dict[CacheState, list[RequestRecord]]


def plot_ttft(result: BenchResult, summary: BenchSummary) -> Plot | NoPlot:
    """By length where lengths differ, else by cache state alone."""
    groups = by_state([record for record in result.counted if record.ok and record.ttft_s is not None])
    figures = {state.state: state.ttft_s for state in summary.states}
    if not groups:
        return NoPlot(_TITLE, "no request was answered")
    if not summary.lengths:
        rows = [
            Row(STATES[state], STATE_WORDS[state], _times(records), figures.get(state))
            for state, records in groups.items()
        ]
        limit_s = summary.goodput.slo.ttft_s if summary.goodput else None
        return plot_rows(
            "ttft",
            "TTFT by cache state",
            f"All prompts are about {tokens(_a_length(groups))} tokens long.",
            rows,
            limit_s,
        )
    forecasts = [one for one in summary.forecasts if one.figure in _FORECAST_FIGURES and (one.bound or one.low)]
    texts = [f"{STATE_WORDS[state]}: {quantiles_text(values)}" for state, values in figures.items() if values]
    shortest, longest = summary.lengths[0].low_tokens, max(length.high_tokens for length in summary.lengths)
    return Plot(
        "ttft",
        _TITLE,
        drawn("ttft", lambda figure: _draw(figure, groups, forecasts)),
        f"Prompts of {tokens(shortest)} to {tokens(longest)} tokens. {'; '.join(texts)}.{_forecast_text(forecasts)}",
        ("cache", "prompt tokens", *DISTRIBUTION_HEADER),
        tuple(_table_row(length) for length in summary.lengths),
    )


def _a_length(groups: Groups) -> int:
    return next((length for records in groups.values() for record in records if (length := prompt_tokens(record))), 0)


def _times(records: Sequence[RequestRecord]) -> list[float]:
    return [record.ttft_s or 0.0 for record in records]


def _forecast_text(forecasts: Sequence[ForecastComparison]) -> str:
    if not forecasts:
        return ""
    texts = (
        f"{'warm' if one.figure == 'ttft_warm_s' else 'cold'}, {tokens(one.prompt_tokens)} tokens: {one.text}"
        for one in forecasts
    )
    return f" Grey: the range that the plan expects, and the bound that nothing beats. {'; '.join(texts)}."


def _table_row(length: LengthSummary) -> tuple[str, ...]:
    low, high = tokens(length.low_tokens), tokens(length.high_tokens)
    return (
        STATE_WORDS[length.state],
        low if low == high else f"{low} to {high}",
        *distribution_cells(length.ttft_s),
    )


def _draw(figure: "Figure", groups: Groups, forecasts: Sequence[ForecastComparison]) -> Tips:
    figure.set_figheight(HEIGHT_IN * 1.2)
    axes = figure.add_subplot()
    shown = [record for records in groups.values() for record in records]
    expected = [value for one in forecasts for value in (one.bound, one.low, one.high) if value]
    lengths = Scale.of([float(prompt_tokens(record) or 0) for record in shown])
    times = Scale.of([*_times(shown), *expected])
    set_tokens(axes, lengths, "x")
    set_durations(axes, times, "y")
    axes.set_xlabel("prompt, tokens")
    axes.set_title("time to first token", loc="left")
    for name in _FORECAST_FIGURES:
        _draw_forecast(axes, [one for one in forecasts if one.figure == name])
    tips: dict[str, list[str]] = {}
    for state, records in groups.items():
        xs = [float(prompt_tokens(record) or 0) for record in records]
        if scatter(axes, STATES[state], xs, _times(records), gid=f"marks-{state}"):
            tips[f"marks-{state}"] = [_tip(record) for record in records]
    _label(axes, groups, forecasts)
    return tips


def _tip(record: RequestRecord) -> str:
    cached = "" if record.cached_tokens is None else f", {tokens(record.cached_tokens)} cached"
    length = f"{tokens(prompt_tokens(record))} tokens{cached}"
    return f"{record.phase}, request {record.index}: {length}, TTFT {duration(record.ttft_s)}"


def _draw_forecast(axes: "Axes", forecasts: Sequence[ForecastComparison]) -> None:
    """Where the plan speaks of several lengths, a band from one to the next; at each of them a bar and the bound."""
    ordered = sorted(forecasts, key=lambda one: one.prompt_tokens)
    ranged = [(one.prompt_tokens, one.low, one.high) for one in ordered if one.low is not None and one.high is not None]
    if len(ranged) > 1:
        lengths, lows, highs = zip(*ranged, strict=True)
        axes.fill_between(lengths, lows, highs, color=FORECAST.light, alpha=0.22, linewidth=0)
    for length, low, high in ranged:
        axes.plot([length, length], [low, high], color=FORECAST.light, linewidth=9, alpha=0.45, solid_capstyle="butt")
    bounds = [(one.prompt_tokens, one.bound) for one in ordered if one.bound]
    if bounds:
        axes.plot(
            *zip(*bounds, strict=True), color=FORECAST.light, marker="_", markersize=13, linestyle=":", linewidth=1
        )


def _label(axes: "Axes", groups: Groups, forecasts: Sequence[ForecastComparison]) -> None:
    """Names beside the longest prompts of each state, and beside the furthest bounds."""
    longest = {state: max(records, key=_length_and_time) for state, records in groups.items()}
    labels = [(STATE_WORDS[state], STATES[state], record.ttft_s or 0.0) for state, record in longest.items()]
    for name in _FORECAST_FIGURES:
        bounds = [(one.prompt_tokens, one.bound) for one in forecasts if one.figure == name and one.bound]
        labels += [("bound", MUTED, max(bounds)[1])] if bounds else []
    label_at_right(axes, labels)


def _length_and_time(record: RequestRecord) -> tuple[int, float]:
    return prompt_tokens(record) or 0, record.ttft_s or 0.0
