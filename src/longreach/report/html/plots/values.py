"""What a plot is to the page, and the words and scales that plots share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from longreach.measure.bench.values import CacheState, RequestRecord
from longreach.report.html.colours import BAD, Colour
from longreach.report.html.drawing import MAX_MARKS
from longreach.report.html.figures import duration_ticks, tick_duration, tick_tokens, token_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOG_SPREAD = 12.0  # between the least and the largest value, for a logarithmic axis


@dataclass(frozen=True, slots=True)
class Plot:
    """One drawing with what it says in words, and the figures that it shows as a table."""

    name: str
    title: str
    svg: Element
    sentence: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_tall: bool = False  # as high as two others


@dataclass(frozen=True, slots=True)
class NoPlot:
    """A plot that is left out, and why."""

    title: str
    reason: str


@dataclass(frozen=True, slots=True)
class Scale:
    """From `low` to `high` as an axis shows it."""

    low: float
    high: float
    logarithmic: bool

    @classmethod
    def of(cls, values: Sequence[float]) -> "Scale":
        """Room for all values; from zero, or logarithmic where they are far apart."""
        low, high = min(values, default=0.0), max(values, default=0.0)
        if low > 0 and high / low >= _LOG_SPREAD:
            return cls(low / 1.25, high * 1.25, logarithmic=True)
        return cls(0.0, high * 1.08 or 1.0, logarithmic=False)


def by_state(records: Sequence[RequestRecord]) -> dict[CacheState, list[RequestRecord]]:
    """The records of each cache state, in the order in which the states came."""
    groups: dict[CacheState, list[RequestRecord]] = {}
    for record in records:
        groups.setdefault(record.state, []).append(record)
    return groups


def prompt_tokens(record: RequestRecord) -> int | None:
    """By the server's count where there is one, else as asked for."""
    return record.prompt_tokens if record.prompt_tokens is not None else record.wanted_prompt_tokens


def set_durations(axes: "Axes", scale: Scale, axis: str) -> None:
    """Make `x` or `y` a duration in seconds with round ticks."""
    _set_scale(axes, scale, axis, duration_ticks(scale.low, scale.high, logarithmic=scale.logarithmic), tick_duration)


def set_tokens(axes: "Axes", scale: Scale, axis: str) -> None:
    """Make `x` or `y` a token count with round ticks."""
    _set_scale(axes, scale, axis, token_ticks(scale.low, scale.high, logarithmic=scale.logarithmic), tick_tokens)


def _set_scale(
    axes: "Axes", scale: Scale, axis: str, ticks: Sequence[float], write: Callable[[float, int | None], str]
) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    which = axes.xaxis if axis == "x" else axes.yaxis
    (axes.set_xscale if axis == "x" else axes.set_yscale)("log" if scale.logarithmic else "linear")
    (axes.set_xlim if axis == "x" else axes.set_ylim)(scale.low, scale.high)
    which.set_major_locator(FixedLocator(list(ticks)))
    which.set_minor_locator(NullLocator())
    which.set_major_formatter(FuncFormatter(write))


def scatter(axes: "Axes", colour: Colour, xs: Sequence[float], ys: Sequence[float], *, gid: str) -> bool:
    """The marks of one kind of request. Returns whether each of them can be pointed at."""
    single = len(xs) <= MAX_MARKS
    axes.plot(
        xs,
        ys,
        linestyle="none",
        marker=colour.marker,
        markersize=4.5 if single else 2.5,
        markeredgewidth=0,
        alpha=0.75 if single else 0.4,
        color=colour.light,
        gid=gid,
        rasterized=not single,
        clip_on=False,
    )
    return single


def limit_line(axes: "Axes", limit: float | None, text: str) -> None:
    """A vertical line at a limit that was asked for."""
    if limit is None or not axes.get_xlim()[0] < limit < axes.get_xlim()[1]:
        return
    axes.axvline(limit, color=BAD.light, linewidth=1.2, linestyle=(0, (4, 3)))
    left_of_it = is_right(axes, limit)
    axes.annotate(
        text,
        (limit, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if left_of_it else 4, -3),
        textcoords="offset points",
        ha="right" if left_of_it else "left",
        va="top",
        color=BAD.light,
        gid="direct@limit",
    )


def is_right(axes: "Axes", value: float) -> bool:
    """Whether a text that begins at this value of x would leave the axes."""
    return float((axes.transData + axes.transAxes.inverted()).transform((value, 0))[0]) > 0.65


def label_at_right(axes: "Axes", labels: Sequence[tuple[str, Colour, float]]) -> None:
    """Names right of the axes at the heights of their values, moved apart where they meet."""
    to_axes = axes.transData + axes.transAxes.inverted()
    heights = [float(to_axes.transform((axes.get_xlim()[1], value))[1]) for _, _, value in labels]
    for place, (label, height) in enumerate(zip(labels, apart(heights, 0.07), strict=True)):
        axes.text(
            1.025,
            height,
            label[0],
            transform=axes.transAxes,
            va="center",
            color=label[1].light,
            fontweight="bold",
            gid=f"direct@{place}",
        )


def apart(values: Sequence[float], gap: float) -> list[float]:
    """Places of labels near `values`, in the same order, no two closer than `gap`."""
    order = sorted(range(len(values)), key=values.__getitem__)
    placed = list(values)
    for before, this in pairwise(order):
        placed[this] = max(placed[this], placed[before] + gap)
    overshoot = max(0.0, max(placed, default=0.0) - max([1.0, *values]))
    return [place - overshoot for place in placed]
