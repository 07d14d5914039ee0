"""One row a kind of request: every value as a mark, its percentiles with the interval of the median."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longreach.measure.bench.summary_values import Distribution
from longreach.report.html.colours import INK, Colour
from longreach.report.html.drawing import HEIGHT_IN, Tips, drawn
from longreach.report.html.figures import DISTRIBUTION_HEADER, distribution_cells, duration, quantiles_text
from longreach.report.html.plots.values import Plot, Scale, is_right, limit_line, scatter, set_durations

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GOLDEN = 0.6180339887498949  # multiples of it spread evenly over 0..1, and are the same in each drawing


@dataclass(frozen=True, slots=True)
class Row:
    """Values in seconds, and their percentiles as the summary has them."""

    colour: Colour
    label: str
    values: Sequence[float]
    figures: Distribution | None


def plot_rows(name: str, title: str, opening: str, rows: Sequence[Row], limit_s: float | None) -> Plot:
    """The rows with their percentiles in words; `opening` says what they are."""
    texts = [f"{row.label}: {quantiles_text(row.figures)}" for row in rows if row.figures]
    limit = "" if limit_s is None else f" The limit asked for is {duration(limit_s)}."
    return Plot(
        name,
        title,
        drawn(name, lambda figure: _draw(figure, rows, limit_s)),
        f"{opening} {'; '.join(texts)}.{limit}",
        ("figure", *DISTRIBUTION_HEADER),
        tuple((row.label, *distribution_cells(row.figures)) for row in rows if row.figures),
    )


def _draw(figure: "Figure", rows: Sequence[Row], limit_s: float | None) -> Tips:
    figure.set_figheight(max(2.0, min(HEIGHT_IN + 1, 1.0 + 0.8 * len(rows))))
    axes = figure.add_subplot()
    limits = [limit_s] if limit_s is not None else []
    set_durations(axes, Scale.of([*(value for row in rows for value in row.values), *limits]), "x")
    axes.set_ylim(len(rows) - 0.45, -0.75)
    axes.set_yticks(range(len(rows)), [row.label.replace(", ", "\n") for row in rows], color=INK.light)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    limit_line(axes, limit_s, f"limit {duration(limit_s)}")
    tips: dict[str, list[str]] = {}
    for place, row in enumerate(rows):
        offsets = [place + 0.46 * ((index * _GOLDEN) % 1.0) - 0.12 for index in range(len(row.values))]
        if scatter(axes, row.colour, row.values, offsets, gid=f"marks-{place}"):
            tips[f"marks-{place}"] = [f"{row.label}: {duration(value)}" for value in row.values]
        if row.figures is not None:
            _draw_figures(axes, place, row, row.figures)
    return tips


def _draw_figures(axes: "Axes", place: int, row: Row, figures: Distribution) -> None:
    height = place - 0.24
    colour = row.colour.light
    axes.plot([figures.p50, figures.p99], [height, height], color=colour, linewidth=1.4)
    if figures.p50_interval is not None:
        axes.plot(figures.p50_interval, [height, height], color=colour, linewidth=5, alpha=0.45, solid_capstyle="butt")
    for value in (figures.p50, figures.p90, figures.p99):
        axes.plot([value], [height], marker="|", markersize=11, markeredgewidth=2, color=colour)
    left_of_it = is_right(axes, figures.p50)
    axes.annotate(
        f"P50 {duration(figures.p50)} · P99 {duration(figures.p99)}",
        (figures.p99 if left_of_it else figures.p50, height),
        xytext=(0, 7),
        textcoords="offset points",
        ha="right" if left_of_it else "left",
        va="bottom",
        color=INK.light,
        fontsize=9,
        gid=f"direct@{place}",
    )
