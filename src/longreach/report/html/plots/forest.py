"""Differences with their intervals, one below the other, against nothing and against a margin."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longreach.measure.bench.summary_values import Interval
from longreach.report.html.colours import FORECAST, INK, MUTED, Colour
from longreach.report.html.drawing import Tips, drawn
from longreach.report.html.plots.values import Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDEST = 3.0  # a difference beyond 300 % is drawn at the edge; the table has it


@dataclass(frozen=True, slots=True)
class Difference:
    """One line. `value` and `interval` are shares: 0.1 is 10 %."""

    label: str
    value: float
    interval: Interval | None
    verdict: str
    colour: Colour


def plot_differences(
    name: str, title: str, opening: str, axis: str, margin: float, differences: Sequence[Difference]
) -> Plot:
    """`opening` says of what, `axis` in which direction."""
    texts = [
        f"{one.label} {change_text(one.value)} ({interval_text(one.interval)}): {one.verdict}" for one in differences
    ]
    return Plot(
        name,
        title,
        drawn(name, lambda figure: _draw(figure, differences, margin, axis)),
        f"{opening} Band: a margin of {100 * margin:g} %. {'; '.join(texts)}.",
        ("what", "difference", "interval", "verdict"),
        tuple((one.label, change_text(one.value), interval_text(one.interval), one.verdict) for one in differences),
    )


def change_text(value: float) -> str:
    """`+12.5 %`."""
    return f"{100 * value:+,.1f} %"


def interval_text(interval: Interval | None) -> str:
    """`+10.1 % to +14.9 %`."""
    return "no interval" if interval is None else f"{change_text(interval[0])} to {change_text(interval[1])}"


def _draw(figure: "Figure", differences: Sequence[Difference], margin: float, axis: str) -> Tips:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    lines = 1 + max(", " in one.label for one in differences)
    figure.set_figheight(0.95 + (0.14 + 0.2 * lines) * len(differences))
    axes = figure.add_subplot()
    axes.axvspan(-margin, margin, color=FORECAST.light, alpha=0.22, linewidth=0)
    axes.axvline(0, color=MUTED.light, linewidth=1)
    for place, one in enumerate(differences):
        _draw_one(axes, place, one)
    ends = [end for one in differences for end in (one.value, *(one.interval or ()))]
    low, high = max(-_WIDEST, min([*ends, -margin])), min(_WIDEST, max([*ends, margin]))
    room = 0.06 * (high - low)
    axes.set_xlim(low - room, high + room)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:+.3g} %" if share else "0"))
    axes.set_xlabel(axis)
    axes.set_ylim(len(differences) - 0.4, -0.6)
    axes.set_yticks(range(len(differences)), [one.label.replace(", ", "\n") for one in differences], color=INK.light)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    return {f"difference-{place}": [_tip(one)] for place, one in enumerate(differences)}


def _tip(one: Difference) -> str:
    return f"{one.label}: {change_text(one.value)}, {interval_text(one.interval)}, {one.verdict}"


def _draw_one(axes: "Axes", place: int, one: Difference) -> None:
    colour = one.colour.light
    if one.interval is not None:
        axes.plot(one.interval, [place, place], color=colour, linewidth=2.4, solid_capstyle="round")
    value = max(-_WIDEST, min(_WIDEST, one.value))
    face = colour if one.interval is not None else "none"
    axes.plot(
        [value],
        [place],
        marker="o",
        markersize=7,
        markeredgecolor=colour,
        markerfacecolor=face,
        gid=f"difference-{place}",
    )
