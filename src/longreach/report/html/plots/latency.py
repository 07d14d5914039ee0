"""The share of requests that were answered within a time: TTFT above, the whole request below."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from longreach.measure.bench.statistics import percentile
from longreach.measure.bench.summary_values import BenchSummary
from longreach.measure.bench.values import BenchResult, CacheState, RequestRecord
from longreach.report.bench_tables import STATE_WORDS
from longreach.report.html.colours import STATES
from longreach.report.html.drawing import HEIGHT_IN, Tips, drawn
from longreach.report.html.figures import duration
from longreach.report.html.plots.values import NoPlot, Plot, Scale, by_state, limit_line, set_durations

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = "Latency distribution"
_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
_LABEL_SHARES = (0.8, 0.55, 0.3, 0.93)  # each curve is named at another height, so that no two names meet
Curves = dict[CacheState, list[float]]


def plot_latency(result: BenchResult, summary: BenchSummary) -> Plot | NoPlot:
    """Cumulative shares by cache state. A failed request is in none of them."""
    groups = by_state([record for record in result.counted if record.ok])
    first = _curves(groups, lambda record: record.ttft_s)
    whole = _curves(groups, lambda record: record.e2e_latency_s)
    if not whole:
        return NoPlot(_TITLE, "no request was answered")
    figures = [("TTFT", first, _limit(summary, "ttft_s")), ("E2E", whole, _limit(summary, "e2e_latency_s"))]
    panels = [panel for panel in figures if panel[1]]
    texts = [
        f"{name}: " + ", ".join(f"{STATE_WORDS[state]} {_text(times)}" for state, times in curves.items())
        for name, curves, _ in panels
    ]
    limits = [f" The limit asked for {name} is {duration(limit)}." for name, _, limit in panels if limit is not None]
    return Plot(
        "latency",
        _TITLE,
        drawn("latency", lambda figure: _draw(figure, panels)),
        f"Share of the answered requests that took at most so long. {'; '.join(texts)}.{''.join(limits)}",
        ("figure", *(f"{share:.0%} within".replace("%", " %") for share in _SHARES)),
        tuple(
            _table_row(f"{name}, {STATE_WORDS[s]}", times) for name, curves, _ in panels for s, times in curves.items()
        ),
    )


def _limit(summary: BenchSummary, name: str) -> float | None:
    return getattr(summary.goodput.slo, name) if summary.goodput else None


def _curves(groups: dict[CacheState, list[RequestRecord]], figure: Callable[[RequestRecord], float | None]) -> Curves:
    curves = {
        state: sorted(t for record in group if (t := figure(record)) is not None) for state, group in groups.items()
    }
    return {state: times for state, times in curves.items() if times}


def _within(ordered: Sequence[float], share: float) -> float:
    """Where the curve of the times passes that share."""
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def _text(times: Sequence[float]) -> str:
    return f"half within {duration(percentile(times, 0.5))} and 90 % within {duration(percentile(times, 0.9))}"


def _table_row(name: str, times: Sequence[float]) -> tuple[str, ...]:
    return (name, *(duration(percentile(times, share)) for share in _SHARES))


def _draw(figure: "Figure", panels: Sequence[tuple[str, Curves, float | None]]) -> Tips:
    figure.set_figheight(HEIGHT_IN * 1.2)
    every = [
        time for _, curves, limit in panels for times in (*curves.values(), [limit or 0.0]) for time in times if time
    ]
    scale = Scale.of(every)
    for axes, (name, curves, limit) in zip(figure.subplots(len(panels), squeeze=False)[:, 0], panels, strict=True):
        set_durations(axes, scale, "x")
        axes.set_ylim(0, 1.02)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
        axes.set_title({"TTFT": "time to first token", "E2E": "whole request"}[name], loc="left")
        limit_line(axes, limit, f"limit {duration(limit)}")
        for place, (state, times) in enumerate(curves.items()):
            _draw_curve(axes, state, times, _LABEL_SHARES[place % len(_LABEL_SHARES)])
    return {}


def _draw_curve(axes: "Axes", state: CacheState, ordered: Sequence[float], label_share: float) -> None:
    colour = STATES[state].light
    axes.ecdf(ordered, color=colour, linewidth=2)
    axes.annotate(
        STATE_WORDS[state],
        (_within(ordered, label_share), label_share),
        xytext=(6, -3),
        textcoords="offset points",
        va="top",
        color=colour,
        fontweight="bold",
        gid=f"direct@{state}",
    )
