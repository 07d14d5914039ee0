"""What `bench compare` prints: the verdict, every figure of both runs with the interval of its difference, and what to do."""

import textwrap

from longreach.measure.bench.compare_values import MetricComparison, RunComparison
from longreach.report.style import Paint, printable, table
from longreach.units import format_duration

_VERDICT = {
    "better": ("better", "green"),
    "equal": ("equal", "green"),
    "worse": ("WORSE", "red"),
    "not_enough_data": ("not enough data", "yellow"),
}
_METRIC = {
    "ttft_s": "TTFT",
    "itl_s": "ITL",
    "e2e_latency_s": "E2E",
    "output_tokens_per_s": "tokens/s",
    "success_rate": "answered",
    "goodput": "goodput",
}
HONESTY = (
    "The intervals hold what differs from request to request, not what changed on the machine between the two runs: "
    "repeat both before trusting a small difference."
)


def render_comparison(comparison: RunComparison, paint: Paint) -> str:
    """One screen. Differences are of B from A."""
    word, colour = _VERDICT[comparison.verdict]
    a, b = printable(comparison.label_a), printable(comparison.label_b)
    counts = {name: sum(item.verdict == name for item in comparison.metrics) for name in _VERDICT}
    told = ", ".join(f"{count} {_VERDICT[name][0].lower()}" for name, count in counts.items() if count)
    title, *rest = textwrap.wrap(f"{b} against {a}: {told}", paint.width, subsequent_indent="  ")
    lines = [f"{paint(word, 'bold', colour)}  {title}", *rest, ""]
    lines += [line for warning in comparison.warnings for line in _wrapped(f"warning: {printable(warning)}", paint)]
    lines += [""] if comparison.warnings else []
    lines += _table(comparison, paint)
    return "\n".join([*lines, "", *_footer(comparison, paint)])


def _table(comparison: RunComparison, paint: Paint) -> list[str]:
    header = ("", "A", "B", "change", "interval", "")
    head, *rows = table([header, *(_row(item) for item in comparison.metrics)], frozenset(range(1, 5)))
    colours = [_VERDICT[item.verdict][1] for item in comparison.metrics]
    return [head, *(_coloured(row, colour, paint) for row, colour in zip(rows, colours, strict=True))]


def _coloured(row: str, colour: str, paint: Paint) -> str:
    """Only the last cell, which is the verdict."""
    figures, gap, verdict = row.rpartition("  ")
    return f"{figures}{gap}{paint(verdict, colour)}"


def _row(item: MetricComparison) -> tuple[str, ...]:
    low, high = item.interval or (None, None)
    between = "-" if low is None or high is None else f"{_change(low)} to {_change(high)}"
    return (
        name_metric(item),
        write_figure(item.a, item),
        write_figure(item.b, item),
        _change(item.difference) + (" pt" if item.unit == "share" else " %"),
        between,
        _VERDICT[item.verdict][0],
    )


def name_metric(item: MetricComparison) -> str:
    """`TTFT cold P50`."""
    state = (item.state or "").replace("_", " ")
    figure = {"mean": "mean", "p50": "P50", "p90": "P90", "p99": "P99"}.get(item.figure or "", "")
    return " ".join(part for part in (_METRIC[item.metric], state, figure) if part)


def write_figure(value: float, item: MetricComparison) -> str:
    if item.unit == "share":
        return f"{value:.1%}"
    if item.unit == "tokens_per_s":
        return f"{value:,.1f}" if value >= 10 else f"{value:.3g}"
    return f"{1000 * value:.1f} ms" if value < 0.1 else format_duration(value)


def _change(value: float) -> str:
    """Percent, or points of a share."""
    return f"{100 * value:+.1f}" if abs(value) < 10 else f"{100 * value:+,.0f}"


def _footer(comparison: RunComparison, paint: Paint) -> list[str]:
    times = [item for item in comparison.metrics if item.unit != "share"]
    pairs = "the same requests are compared with each other" if any(item.paired for item in times) else ""
    how = pairs or ("the runs sent different requests" if times else "one of the runs answered nothing")
    margin = f"{100 * comparison.margin:g} %"
    lines = _wrapped(
        f"Changes are from A to B; {how}. All intervals together hold with 95 % (each with {comparison.level:.1%}). "
        f"Equal: the whole interval within +-{margin}. Better or worse: it excludes zero, and the change is larger.",
        paint,
    )
    lines += _wrapped(HONESTY, paint)
    return [*lines, *_advice(comparison, paint)]


def _advice(comparison: RunComparison, paint: Paint) -> list[str]:
    """How many requests would decide what is not decided."""
    undecided = [item for item in comparison.metrics if item.verdict == "not_enough_data"]
    if not undecided:
        return []
    needed = [f"{name_metric(item)} {write_needed(item)}" for item in undecided]
    now = min(min(item.num_a, item.num_b) for item in undecided)
    return ["", *_wrapped(f"Requests a run that would do (now {now:,}): {', '.join(needed)}.", paint)]


def write_needed(item: MetricComparison) -> str:
    """`342`; `at least 8` where there is no interval yet to tell from."""
    if item.num_needed is None:
        return "cannot be said"
    return f"{'' if item.interval else 'at least '}{item.num_needed:,}"


def _wrapped(text: str, paint: Paint) -> list[str]:
    return textwrap.wrap(text, paint.width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
