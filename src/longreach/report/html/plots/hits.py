"""Where the prompt tokens came from: computed, or out of a tier of the cache."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from longreach.measure.bench.summary_values import BenchSummary
from longreach.report.bench_tables import STATE_WORDS
from longreach.report.html.colours import CARD, INK, ON_TIER, TIERS
from longreach.report.html.drawing import Tips, drawn
from longreach.report.html.figures import percent, tokens
from longreach.report.html.plots.values import NoPlot, Plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TITLE = "Prompt tokens by source"
_LABELLED_SHARE = 0.12  # a narrower part has no room for its share
_WORDS = {
    "computed": "computed",
    "device": "GPU cache",
    "host": "CPU tier",
    "disk": "disk tier",
    "elsewhere": "outside the GPU",
    "unattributed": "cached, not told where",
    "unknown": "not told",
}
Parts = Mapping[str, int]


def plot_hits(summary: BenchSummary) -> Plot | NoPlot:
    """One bar a cache state, each the whole of its prompt tokens."""
    bars = {
        STATE_WORDS[state.state]: split_sources(state.prompt_tokens, state.cached_tokens, state.hits_by_source)
        for state in summary.states
        if state.prompt_tokens
    }
    if not bars:
        return NoPlot(_TITLE, "the server counted no prompt tokens")
    if all(set(parts) == {"unknown"} for parts in bars.values()):
        return NoPlot(_TITLE, "the server does not tell cached tokens, neither in usage nor in its metrics")
    return plot_sources("hits", _TITLE, "cache", bars)


def split_sources(
    prompt_tokens: int, cached_tokens: int | None, hits_by_source: Sequence[tuple[str, int]]
) -> dict[str, int]:
    """Prompt tokens by where they came from. A source that only says that it is not the GPU is elsewhere."""
    if cached_tokens is None:
        return {"unknown": prompt_tokens}
    found: Counter[str] = Counter()
    for name, count in hits_by_source:
        found[name if name in ("device", "host", "disk") else "elsewhere"] += count
    found["unattributed"] = max(0, cached_tokens - found.total())
    parts = {"computed": prompt_tokens - found.total(), **found}
    return {name: count for name, count in parts.items() if count > 0}


def plot_sources(name: str, title: str, what: str, bars: Mapping[str, Parts]) -> Plot:
    """A bar for each of `bars`: tokens by source."""
    sources = [source for source in _WORDS if any(source in parts for parts in bars.values())]
    return Plot(
        name,
        title,
        drawn(name, lambda figure: _draw(figure, bars, sources)),
        f"{'; '.join(f'{bar}: {_text(parts)}' for bar, parts in bars.items())}.",
        (what, "prompt tokens", *(_WORDS[source] for source in sources)),
        tuple(_table_row(bar, parts, sources) for bar, parts in bars.items()),
    )


def _text(parts: Parts) -> str:
    total = sum(parts.values())
    shares = ", ".join(f"{percent(parts[source] / total)} {_WORDS[source]}" for source in _WORDS if source in parts)
    return f"{shares} of {tokens(total)} prompt tokens"


def _table_row(bar: str, parts: Parts, sources: Sequence[str]) -> tuple[str, ...]:
    return (bar, tokens(sum(parts.values())), *(tokens(parts.get(source, 0)) for source in sources))


def _draw(figure: "Figure", bars: Mapping[str, Parts], sources: Sequence[str]) -> Tips:
    figure.set_figheight(1.1 + 0.6 * len(bars))
    axes = figure.add_subplot()
    begins = dict.fromkeys(bars, 0.0)
    for source in sources:
        shares = {bar: parts.get(source, 0) / sum(parts.values()) for bar, parts in bars.items()}
        drawn_bars = axes.barh(
            list(bars),
            list(shares.values()),
            left=list(begins.values()),
            height=0.62,
            color=TIERS[source].light,
            hatch="//" if source in {"unattributed", "unknown"} else None,
            edgecolor=CARD.light,  # of the hatching
            label=_WORDS[source],
            linewidth=0,
        )
        labels = [percent(share) if share >= _LABELLED_SHARE else "" for share in shares.values()]
        for text in axes.bar_label(drawn_bars, labels, label_type="center", color=ON_TIER):
            text.set_gid(f"on-tier@{source}{text.get_position()}")
        begins = {bar: begins[bar] + share for bar, share in shares.items()}
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
    axes.tick_params(axis="y", length=0, labelcolor=INK.light)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("share of the prompt tokens")
    figure.legend(loc="outside upper left", ncols=4, frameon=False, handlelength=1, columnspacing=1.2)
    return {}
