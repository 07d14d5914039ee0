"""When each request was sent, brought its first token and ended; below it what the server said of itself meanwhile."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from longreach.measure.bench.values import BenchResult, PhaseReport, RequestRecord, ServerSample
from longreach.report.html.colours import ACCENT, BAD, DOUBT, GOOD, MUTED, STATES
from longreach.report.html.drawing import HEIGHT_IN, Tips, drawn
from longreach.report.html.figures import duration, percent
from longreach.report.html.plots.values import NoPlot, Plot, Scale, set_durations
from longreach.units import format_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = "Timeline"
_MAX_BARS = 200
"""More requests than this are counted over time instead: a bar would be thinner than what a screen shows."""
_NUM_SLOTS = 240
_LETTER_SHARE = 0.018  # of the width; names of phases alternate between two lines, and one without room is left out


def plot_timeline(result: BenchResult) -> Plot | NoPlot:
    """Every request as a bar, or their numbers over time."""
    if not result.records:
        return NoPlot(_TITLE, "no request was sent")
    end_s = max(record.sent_s + record.e2e_latency_s for record in result.records)
    failed = [record for record in result.records if not record.ok]
    names = dict.fromkeys(record.phase for record in result.records)
    phases = {name: [record for record in result.records if record.phase == name] for name in names}
    single = len(result.records) <= _MAX_BARS
    how = (
        "Each bar is a request: pale until its first token, full until its end"
        if single
        else f"Requests under way, the mean of each {duration(end_s / _NUM_SLOTS)}"
    )
    server = _server_text(result.samples)
    return Plot(
        "timeline",
        _TITLE,
        drawn("timeline", lambda figure: _draw(figure, result, end_s, single=single)),
        f"{format_count(len(result.records), 'request')} in {duration(end_s)}, {len(failed)} failed. {how}.{server}",
        ("phase", "began", "ended", "requests sent", "failed"),
        tuple(_phase_row(name, records) for name, records in phases.items()),
        is_tall=True,
    )


def _server_text(samples: Sequence[ServerSample]) -> str:
    texts = []
    for what, values in (
        ("requests running", [sample.num_running for sample in samples]),
        ("waiting", [sample.num_waiting for sample in samples]),
    ):
        known = [value for value in values if value is not None]
        texts += [f"at most {max(known):.0f} {what}"] if known else []
    usages = [sample.kv_cache_usage for sample in samples if sample.kv_cache_usage is not None]
    texts += [f"at most {percent(max(usages))} of the KV cache in use"] if usages else []
    if not texts:
        return " The server told nothing of its load meanwhile."
    return f" The server, {format_count(len(samples), 'reading')}: {', '.join(texts)}."


def _phase_row(name: str, records: Sequence[RequestRecord]) -> tuple[str, ...]:
    began_s = min(record.sent_s for record in records)
    ended_s = max(record.sent_s + record.e2e_latency_s for record in records)
    num_failed = sum(not record.ok for record in records)
    return (name, duration(began_s), duration(ended_s), f"{len(records):,}", f"{num_failed:,}")


def _draw(figure: "Figure", result: BenchResult, end_s: float, *, single: bool) -> Tips:
    loads = any(sample.num_running is not None or sample.num_waiting is not None for sample in result.samples)
    usages = any(sample.kv_cache_usage is not None for sample in result.samples)
    heights = [3.4, *[1.1] * (loads + usages)]
    figure.set_figheight(HEIGHT_IN + 0.95 * (loads + usages) + 0.3 * (len(result.phases) - 1))
    first, *others = figure.subplots(len(heights), sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights})[
        :, 0
    ]
    set_durations(first, Scale(0.0, end_s or 1.0, logarithmic=False), "x")
    (_draw_bars if single else _draw_numbers)(first, result.records, end_s)
    _draw_phases(first, result.phases)
    if loads:
        _draw_loads(others[0], result.samples)
    if usages:
        _draw_usage(others[-1], result.samples)
    (others[-1] if others else first).set_xlabel("time since the beginning")
    return {}


def _draw_bars(axes: "Axes", records: Sequence[RequestRecord], _end_s: float) -> None:
    ordered = sorted(records, key=lambda record: record.sent_s)
    width = min(6.0, 150.0 / len(ordered))
    for state in dict.fromkeys(record.state for record in ordered):
        mine = [(place, record) for place, record in enumerate(ordered) if record.state == state]
        colour = STATES[state].light
        firsts = [_first_token_s(record) for _, record in mine]
        ends = [record.sent_s + record.e2e_latency_s for _, record in mine]
        places = [place for place, _ in mine]
        axes.hlines(places, [record.sent_s for _, record in mine], firsts, color=colour, linewidth=width, alpha=0.4)
        axes.hlines(places, firsts, ends, color=colour, linewidth=width)
    failed = [(place, record) for place, record in enumerate(ordered) if not record.ok]
    axes.plot(
        [record.sent_s + record.e2e_latency_s for _, record in failed],
        [place for place, _ in failed],
        linestyle="none",
        marker="x",
        markersize=7,
        markeredgewidth=2,
        color=BAD.light,
    )
    axes.set_ylim(len(ordered) - 0.25, -0.75)
    axes.set_yticks([])
    axes.grid(visible=False, axis="y")
    axes.set_title("requests in the order they were sent" + ("; crossed: failed" if failed else ""), loc="left", pad=30)


def _first_token_s(record: RequestRecord) -> float:
    """Where the pale part of a bar ends: with the request itself where no token came."""
    return record.sent_s + (record.e2e_latency_s if record.ttft_s is None else record.ttft_s)


def _draw_numbers(axes: "Axes", records: Sequence[RequestRecord], end_s: float) -> None:
    """Stacked: requests that wait for their first token, requests that receive tokens."""
    import numpy as np

    sent = np.array([record.sent_s for record in records])
    first = np.array([_first_token_s(record) for record in records])
    ended = np.array([record.sent_s + record.e2e_latency_s for record in records])
    edges = np.linspace(0.0, end_s, _NUM_SLOTS + 1)

    def mean_number(begins: "np.typing.NDArray[np.float64]", ends: "np.typing.NDArray[np.float64]") -> list[float]:
        spent = np.array([np.clip(edge - begins, 0.0, ends - begins).sum() for edge in edges])
        return [float(number) for number in np.diff(spent) / (end_s / _NUM_SLOTS)]

    waiting, receiving = mean_number(sent, first), mean_number(first, ended)
    axes.stairs(receiving, edges, fill=True, color=ACCENT.light)
    both = [a + b for a, b in zip(waiting, receiving, strict=True)]
    axes.stairs(both, edges, baseline=receiving, fill=True, color=ACCENT.light, alpha=0.35)
    axes.set_ylim(0, None)
    axes.set_title("requests under way: full, receiving tokens; pale, waiting for the first", loc="left", pad=30)


def _draw_phases(axes: "Axes", phases: Sequence[PhaseReport]) -> None:
    if len(phases) < 2:
        return
    free_from_s = [0.0, 0.0]
    for place, phase in enumerate(phases):
        axes.axvline(phase.began_s, color=MUTED.light, linewidth=0.8, linestyle=(0, (2, 2)))
        level = place % 2
        if phase.began_s < free_from_s[level]:
            continue
        name = phase.name[:12]
        free_from_s[level] = phase.began_s + (0.03 + _LETTER_SHARE * len(name)) * axes.get_xlim()[1]
        axes.annotate(
            name,
            (phase.began_s, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(2, 2 + 12 * level),
            textcoords="offset points",
            color=MUTED.light if phase.state == "flood" else STATES[phase.state].light,
            fontweight="bold",
            gid=f"direct@{place}",
        )


def _draw_loads(axes: "Axes", samples: Sequence[ServerSample]) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title("requests at the server", loc="left")
    for name, colour, place, values in (
        ("running", GOOD, 0.82, [sample.num_running for sample in samples]),
        ("waiting", DOUBT, 1.0, [sample.num_waiting for sample in samples]),
    ):
        axes.text(place, 1.06, name, transform=axes.transAxes, ha="right", color=colour.light, fontweight="bold")
        known = [(sample.at_s, value) for sample, value in zip(samples, values, strict=True) if value is not None]
        if known:
            axes.plot(*zip(*known, strict=True), drawstyle="steps-post", color=colour.light, linewidth=1.5)
    axes.set_ylim(0, None)
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))


def _draw_usage(axes: "Axes", samples: Sequence[ServerSample]) -> None:
    known = [(sample.at_s, sample.kv_cache_usage) for sample in samples if sample.kv_cache_usage is not None]
    times, usages = zip(*known, strict=True)
    axes.fill_between(times, usages, step="post", color=ACCENT.light, alpha=0.3, linewidth=0)
    axes.plot(times, usages, drawstyle="steps-post", color=ACCENT.light, linewidth=1.5)
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    axes.set_title("KV cache in use", loc="left")
