"""TTFT by prompt length: every request as a mark, the forecast behind them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from longreach.measure.bench.summary_values import BenchSummary, ForecastComparison
from longreach.measure.bench.values import BenchResult, CacheState, RequestRecord
from longreach.report.html.colours import FORECAST, MUTED, STATES
from longreach.report.html.drawing import HEIGHT_IN, Tips, drawn
from longreach.report.html.figures import counted, duration, quantiles_text, tokens
from longreach.report.html.plots.rows import Row, draw_rows
from longreach.report.html.plots.values import (
    STATE_WORDS,
    NoPlot,
    Plot,
    Scale,
    apart,
    by_state,
    prompt_tokens,
    scatter,
    set_durations,
    set_tokens,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = "TTFT by prompt length"
_SAME_LENGTH = 1.05  # largest / smallest prompt: up to here there is nothing to draw by length
_FORECAST_FIGURES = ("ttft_cold_s", "ttft_warm_s")
Groups = dict[CacheState, list[RequestRecord]]


def plot_ttft(result: BenchResult, summary: BenchSummary) -> Plot | NoPlot:
    """By length where lengths differ, else by cache state alone."""
    shown = [record for record in result.counted if record.ttft_s is not None and prompt_tokens(record)]
    if not shown:
        return NoPlot(_TITLE, "no request brought a first token")
    lengths = sorted(prompt_tokens(record) or 0 for record in shown)
    if lengths[-1] <= _SAME_LENGTH * lengths[0]:
        return _by_state_alone(by_state(shown), summary, lengths)
    groups = by_state(shown)
    forecasts = [one for one in summary.forecasts if one.figure in _FORECAST_FIGURES and one.verdict != "no_forecast"]
    sentence = (
        f"{counted(len(shown), 'request')} with prompts of {tokens(lengths[0])} to {tokens(lengths[-1])} tokens. "
    )
    sentence += "; ".join(_state_text(state, records) for state, records in groups.items()) + "."
    if forecasts:
        sentence += " Grey: what the plan expects, and the bound that nothing beats: "
        sentence += "; ".join(f"at {tokens(one.prompt_tokens)} tokens {one.text}" for one in forecasts) + "."
    return Plot(
        "ttft",
        _TITLE,
        drawn("ttft", lambda figure: _draw(figure, groups, forecasts)),
        sentence,
        ("cache", "prompt tokens", "requests", "least", "median", "largest"),
        tuple(row for state, records in groups.items() for row in _table_rows(state, records)),
    )


def _by_state_alone(groups: Groups, summary: BenchSummary, lengths: Sequence[int]) -> Plot:
    marks = {state: [record.ttft_s or 0.0 for record in records] for state, records in groups.items()}
    figures = {state.state: state.ttft_s for state in summary.states}
    rows = [Row(state, STATE_WORDS[state], values, figures.get(state)) for state, values in marks.items()]
    length = tokens(lengths[0]) if lengths[0] == lengths[-1] else f"{tokens(lengths[0])} to {tokens(lengths[-1])}"
    texts = [f"{row.label}: {quantiles_text(row.figures)}" for row in rows if row.figures]
    return Plot(
        "ttft",
        "TTFT by cache state",
        drawn("ttft", lambda figure: draw_rows(figure, rows, summary.goodput.slo.ttft_s if summary.goodput else None)),
        f"Every prompt has {length} tokens, so that TTFT is drawn by cache state alone. {'; '.join(texts)}.",
        ("cache", "prompt tokens", "requests", "least", "median", "largest"),
        tuple(row for state, records in groups.items() for row in _table_rows(state, records)),
    )


def _state_text(state: CacheState, records: Sequence[RequestRecord]) -> str:
    times = sorted(record.ttft_s or 0.0 for record in records)
    return f"{STATE_WORDS[state]}: {duration(times[0])} to {duration(times[-1])}, median {duration(_median(times))}"


def _median(ordered: Sequence[float]) -> float:
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _table_rows(state: CacheState, records: Sequence[RequestRecord]) -> list[tuple[str, ...]]:
    """One row a length, or a twelfth of the requests where lengths are many."""
    ordered = sorted(records, key=lambda record: prompt_tokens(record) or 0)
    lengths = sorted({prompt_tokens(record) or 0 for record in ordered})
    size = -(-len(ordered) // 12)
    parts = (
        [[record for record in ordered if prompt_tokens(record) == length] for length in lengths]
        if len(lengths) <= 12
        else [ordered[start : start + size] for start in range(0, len(ordered), size)]
    )
    return [_table_row(state, part) for part in parts]


def _table_row(state: CacheState, part: Sequence[RequestRecord]) -> tuple[str, ...]:
    low, high = prompt_tokens(part[0]), prompt_tokens(part[-1])
    times = sorted(record.ttft_s or 0.0 for record in part)
    return (
        STATE_WORDS[state],
        tokens(low) if low == high else f"{tokens(low)} to {tokens(high)}",
        str(len(part)),
        duration(times[0]),
        duration(_median(times)),
        duration(times[-1]),
    )


def _draw(figure: "Figure", groups: Groups, forecasts: Sequence[ForecastComparison]) -> Tips:
    figure.set_figheight(HEIGHT_IN * 1.2)
    axes = figure.add_subplot()
    shown = [record for records in groups.values() for record in records]
    expected = [value for one in forecasts for value in (one.bound, one.low, one.high) if value]
    lengths = Scale.of([float(prompt_tokens(record) or 0) for record in shown])
    times = Scale.of([*(record.ttft_s or 0.0 for record in shown), *expected])
    set_tokens(axes, lengths, "x")
    set_durations(axes, times, "y")
    axes.set_xlabel("prompt, tokens")
    axes.set_title("time to first token", loc="left")
    for name in _FORECAST_FIGURES:
        _draw_forecast(axes, [one for one in forecasts if one.figure == name])
    tips: dict[str, list[str]] = {}
    for state, records in groups.items():
        xs = [float(prompt_tokens(record) or 0) for record in records]
        if scatter(axes, state, xs, [record.ttft_s or 0.0 for record in records], gid=f"marks-{state}"):
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
    """Names right of the longest prompts of each state and of each bound, moved apart where they meet."""
    longest = {state: max(records, key=_length_and_time) for state, records in groups.items()}
    labels = [(STATE_WORDS[state], STATES[state].light, record.ttft_s) for state, record in longest.items()]
    for name in _FORECAST_FIGURES:
        bounds = [one for one in forecasts if one.figure == name and one.bound]
        if bounds:
            furthest = max(bounds, key=lambda one: one.prompt_tokens)
            labels.append(("bound", MUTED.light, furthest.bound))
    to_axes = axes.transData + axes.transAxes.inverted()
    heights = [float(to_axes.transform((axes.get_xlim()[1], time or 0.0))[1]) for _, _, time in labels]
    for place, (text, colour, _), height in zip(range(len(labels)), labels, apart(heights, 0.07), strict=True):
        axes.text(
            1.025,
            height,
            text,
            transform=axes.transAxes,
            va="center",
            color=colour,
            fontweight="normal" if text == "bound" else "bold",
            gid=f"direct@{place}",
        )


def _length_and_time(record: RequestRecord) -> tuple[int, float]:
    return prompt_tokens(record) or 0, record.ttft_s or 0.0
