"""TTFT by how often a prompt was sent before: the first send is cold, the others show what a tier gives back."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from longreach.measure.tiers.values import VariantFigures
from longreach.report.html.colours import SERIES
from longreach.report.html.drawing import Tips, drawn
from longreach.report.html.figures import duration
from longreach.report.html.plots.values import NoPlot, Plot, Scale, label_at_right, set_durations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TITLE = "TTFT by send"


def plot_rounds(figures: Sequence[VariantFigures]) -> Plot | NoPlot:
    """A line for each variant: the mean over its n-th sends."""
    known = [one for one in figures if one.rounds]
    num_sends = max((item.round for one in known for item in one.rounds), default=0)
    if num_sends < 2:
        return NoPlot(_TITLE, "no prompt was sent twice")
    sends = range(1, num_sends + 1)
    rows = [(one.variant.title, *_means(one, sends)) for one in known]
    texts = [f"{name}: {', '.join(means)}" for name, *means in rows]
    return Plot(
        "rounds",
        _TITLE,
        drawn("rounds", lambda figure: _draw(figure, known, num_sends)),
        f"Mean TTFT of each send of a prompt, from the first to number {num_sends}. {'; '.join(texts)}.",
        ("variant", *(f"send {number}" for number in sends)),
        tuple(rows),
    )


def _means(one: VariantFigures, sends: range) -> tuple[str, ...]:
    means = {item.round: item.ttft_mean_s for item in one.rounds}
    return tuple(duration(means.get(number)) for number in sends)


def _draw(figure: "Figure", known: Sequence[VariantFigures], num_sends: int) -> Tips:
    axes = figure.add_subplot()
    set_durations(axes, Scale.of([item.ttft_mean_s for one in known for item in one.rounds]), "y")
    axes.set_xlim(0.9, num_sends + 0.1)
    axes.set_xticks(range(1, num_sends + 1, -(-num_sends // 10)))
    axes.set_xlabel("send of the same prompt")
    axes.set_title("mean time to first token", loc="left")
    tips = {}
    for place, one in enumerate(known):
        colour = SERIES[place % len(SERIES)]
        axes.plot(
            [item.round for item in one.rounds],
            [item.ttft_mean_s for item in one.rounds],
            color=colour.light,
            marker=colour.marker,
            gid=f"sends-{place}",
            clip_on=False,
        )
        tips[f"sends-{place}"] = [
            f"{one.variant.title}, send {item.round}: {duration(item.ttft_mean_s)}" for item in one.rounds
        ]
    label_at_right(
        axes,
        [
            (one.variant.title, SERIES[place % len(SERIES)], one.rounds[-1].ttft_mean_s)
            for place, one in enumerate(known)
        ],
    )
    return tips
