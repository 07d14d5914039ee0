"""What `bench compare` prints: the verdict, every figure of both runs with the interval of its difference, and what to do."""

import textwrap

from longreach.measure.bench.compare_values import ComparedRun, MetricComparison, RunComparison
from longreach.report.style import Paint, printable, table
from longreach.units import format_duration

_VERDICT = {
    "better": ("better", "green"),
    "equal": ("equal", "green"),
    "worse": ("WORSE", "red"),
    "not_enough_data": ("not enough data", "yellow"),
    "not_comparable": ("NOT COMPARABLE", "red"),
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
    "The intervals hold what differs from request to request and drifts within a run, not what changed on the machine between "
    "the two runs: repeat both before trusting a small difference."
)
NO_INTERVAL = "Without an interval (-): too few requests for one."


def render_comparison(comparison: RunComparison, paint: Paint) -> str:
    """One screen. Differences are of B from A."""
    word, colour = _VERDICT[comparison.verdict]
    a, b = printable(comparison.label_a), printable(comparison.label_b)
    title, *rest = textwrap.wrap(f"{b} against {a}: {count_verdicts(comparison)}", paint.width, subsequent_indent="  ")
    lines = [f"{paint(word, 'bold', colour)}  {title}", *rest]
    for sentence in (*describe_runs(comparison), *explain_verdict(comparison)):
        lines += _wrapped(printable(sentence), paint)
    lines += [""]
    lines += [line for warning in comparison.warnings for line in _wrapped(f"warning: {printable(warning)}", paint)]
    lines += [""] if comparison.warnings else []
    lines += _table(comparison, paint)
    return "\n".join([*lines, "", *_footer(comparison, paint)])


def count_verdicts(comparison: RunComparison) -> str:
    """`9 equal, 3 worse`; of runs that are not comparable, in what they differ."""
    if comparison.verdict == "not_comparable":
        return f"not the same {', '.join(obstacle.field for obstacle in comparison.obstacles)}"
    counts = {name: sum(item.verdict == name for item in comparison.metrics) for name in _VERDICT}
    return ", ".join(f"{count} {_VERDICT[name][0].lower()}" for name, count in counts.items() if count)


def describe_runs(comparison: RunComparison) -> list[str]:
    """What was compared: a line for each run, and what both were sent."""
    a, b = comparison.run_a, comparison.run_b
    if a is None or b is None:
        return []
    lines = [f"A = {_describe(comparison.label_a, a)}", f"B = {_describe(comparison.label_b, b)}"]
    return lines + (
        [f"both were sent {a.sent}"] if a.sent == b.sent else [f"A was sent {a.sent}", f"B was sent {b.sent}"]
    )


def _describe(label: str, run: ComparedRun) -> str:
    names = ", ".join(name for name in (label if label not in ("A", "B") else "", run.file or "") if name)
    server = f"vLLM {run.server_version} at {run.base_url}" if run.server_version else run.base_url
    answered = f"{run.num_ok:,} of {run.num_wanted:,} answered"
    what = f"{run.model}, {server}, {run.started_at}, {answered}, by longreach {run.longreach_version}"
    return f"{names}: {what}" if names else what


def explain_verdict(comparison: RunComparison) -> list[str]:
    """What stands in the way of a verdict."""
    lines = [f"not the same {o.field}: {o.a} in A, {o.b} in B" for o in comparison.obstacles]
    if comparison.verdict == "not_comparable":
        lines.append(
            "A difference would be one of the work, not of the server: the figures have no verdict. Measure B with A's "
            "options and seed; --anyway compares nevertheless."
        )
    if comparison.is_forced:
        lines.append("Compared anyway, as asked: a verdict may be of the work, not of the server.")
    if comparison.lone_better:
        names = ", ".join(name_metric(item) for item in comparison.lone_better)
        lines.append(f"Better in {names} alone: a run is better where two means, rates or shares are; one may be luck.")
    return lines


def _table(comparison: RunComparison, paint: Paint) -> list[str]:
    header = ("", "A", "B", "change", "interval", "")
    head, *rows = table([header, *(_row(item) for item in comparison.metrics)], frozenset(range(1, 5)))
    if comparison.verdict == "not_comparable":
        return [head, *rows]
    colours = [_VERDICT[item.verdict or "not_comparable"][1] for item in comparison.metrics]
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
        _VERDICT[item.verdict][0] if item.verdict else "",
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
    if comparison.verdict == "not_comparable":
        return _wrapped(f"Changes are from A to B; {how}. {NO_INTERVAL}", paint)
    margin = f"{100 * comparison.margin:g} %"
    lines = _wrapped(
        f"Changes are from A to B; {how}. All intervals together hold with 95 % (each with {comparison.level:.1%}). "
        f"Equal: the whole interval within +-{margin}. Better or worse: it excludes zero, and the change is larger. {NO_INTERVAL}",
        paint,
    )
    lines += _wrapped(HONESTY, paint)
    return [*lines, *_advice(comparison, paint)]


def _advice(comparison: RunComparison, paint: Paint) -> list[str]:
    """How many requests would decide what is not decided."""
    undecided = [item for item in comparison.metrics if item.verdict == "not_enough_data"]
    if not undecided:
        return []
    now = {min(item.num_a, item.num_b) for item in undecided}
    each = len(now) > 1
    needed = [
        f"{name_metric(item)} {write_needed(item)}{f' (now {min(item.num_a, item.num_b):,})' if each else ''}"
        for item in undecided
    ]
    so_far = "" if each else f" (now {min(now):,})"
    return ["", *_wrapped(f"Requests a run that would do{so_far}: {', '.join(needed)}.", paint)]


def write_needed(item: MetricComparison) -> str:
    """`342`; `at least 8` where there is no interval yet to tell from."""
    if item.num_needed is None:
        return "cannot be said"
    return f"{'' if item.interval else 'at least '}{item.num_needed:,}"


def _wrapped(text: str, paint: Paint) -> list[str]:
    return textwrap.wrap(text, paint.width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
