"""What `tiers` prints: the variants side by side, a verdict on each tier, and what must be known to read them."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from longreach.measure.bench.summary_values import Interval
from longreach.measure.tiers.decide import MOST_REPEATS
from longreach.measure.tiers.values import TIER_WORDS, StepVerdict, TiersReport, TierStep, VariantFigures
from longreach.report.style import Paint, printable, table
from longreach.units import format_bytes, format_count, format_duration, format_tokens

_SOURCES = (("device", "GPU"), ("host", "CPU"), ("disk", "disk"), ("external_unspecified", "tiers"))
_MOST_SENDS = 6  # of a prompt, that a line has room for
_VERDICTS: dict[StepVerdict, tuple[str, str]] = {
    "keep": ("keep", "green"),
    "drop": ("drop", "red"),
    "not_enough_data": ("not enough data", "yellow"),
}


def render_tiers(report: TiersReport, paint: Paint) -> str:
    """One screen."""
    head = f"{report.model}, instance {report.instance}, vLLM {report.release}"
    lines = [
        paint(printable(head), "bold"),
        *_wrapped(f"workload: {report.workload_source or 'none was sent'}", paint),
        "",
    ]
    if report.figures:
        lines += [
            *_variants(report.figures),
            "",
            *_by_send(report.figures),
            *_traffic(report.figures, report.device_type),
            "",
        ]
    for step in report.steps:
        lines += [*_step(step, paint), ""]
    for run in report.failures:
        lines += [
            paint(f"{run.variant.title}, run {run.repeat} failed", "red"),
            f"  {printable(run.failure or '')}",
            "",
        ]
    lines += [line for note in report.notes for line in _wrapped(f"- {printable(note)}", paint)]
    lines += ["", _winner(report, paint)]
    return "\n".join(lines)


def _variants(figures: Sequence[VariantFigures]) -> list[str]:
    """Waits, and how much was hit. There is no room for the interval of P99; the document and the page have it."""
    header = ("variant", "runs", "failed", "hits", "TTFT P50", "TTFT P99", "prompt tokens/s")
    return table([header, *map(_variant, figures)], frozenset(range(1, len(header))))


def _variant(one: VariantFigures) -> tuple[str, ...]:
    ttft = one.ttft_s
    return (
        one.variant.title,
        str(one.num_runs),
        str(one.num_failed),
        "-" if one.hit_share is None else f"{one.hit_share:.1%}",
        "-" if ttft is None else _with_interval(ttft.p50, ttft.p50_interval),
        "-" if ttft is None else format_duration(ttft.p99),
        "-" if one.prompt_tokens_per_s is None else f"{one.prompt_tokens_per_s:,.0f}",
    )


def _by_send(figures: Sequence[VariantFigures]) -> list[str]:
    """Mean waits of the n-th send of each prompt, where there are several; with a blank line."""
    sends = range(1, min(max(len(one.rounds) for one in figures), _MOST_SENDS) + 1)
    if len(sends) < 2:
        return []
    rows = [("mean TTFT", *(f"send {number}" for number in sends))]
    for one in figures:
        waits = {item.round: format_duration(item.ttft_mean_s) for item in one.rounds}
        rows.append((one.variant.title, *(waits.get(number, "-") for number in sends)))
    return [*table(rows, frozenset(sends)), ""]


def _with_interval(seconds: float, interval: Interval | None) -> str:
    if interval is None:
        return format_duration(seconds)
    return f"{format_duration(seconds)} ({format_duration(interval[0])} to {format_duration(interval[1])})"


def _traffic(figures: Sequence[VariantFigures], device_type: str) -> list[str]:
    """Where prompt tokens came from and what was moved for it. On a CPU that is a copy within memory, not a transfer."""
    told = {source for one in figures for source, tokens in one.hits_by_source or () if tokens}
    sources = [(source, word) for source, word in _SOURCES if source in told or source == "device"]
    header = (
        "variant",
        *(f"from {word}" for _, word in sources),
        "stored",
        "loaded",
        "copy in memory" if device_type == "cpu" else "reload",
        "disk written",
        "disk read",
    )
    return table(
        [header, *(_traffic_row(one, [source for source, _ in sources]) for one in figures)], frozenset(range(1, 10))
    )


def _traffic_row(one: VariantFigures, sources: Sequence[str]) -> tuple[str, ...]:
    hits = None if one.hits_by_source is None else dict(one.hits_by_source)
    return (
        one.variant.title,
        *("-" if hits is None else format_tokens(hits.get(source, 0)) for source in sources),
        _bytes(one.stored_bytes),
        _bytes(one.loaded_bytes),
        "-" if one.reload_bytes_per_s is None else f"{format_bytes(one.reload_bytes_per_s)}/s",
        _bytes(one.disk_written_bytes),
        _bytes(one.disk_read_bytes),
    )


def _bytes(size: int | None) -> str:
    return "-" if size is None else format_bytes(size)


def _step(step: TierStep, paint: Paint) -> Iterator[str]:
    word, colour = _VERDICTS[step.verdict]
    name = "ARC in place of LRU" if step.is_policy else f"the {TIER_WORDS[step.variant.added]} tier"
    more = ""
    if step.verdict == "not_enough_data" and not step.is_mixed:
        wanted = f"more than {MOST_REPEATS}" if step.more_runs is None else f"{step.more_runs} more"
        more = f", {wanted} run{'' if step.more_runs == 1 else 's'} of each would tell"
    yield f"{paint(word + more, 'bold', colour)}: {name} ({step.variant.title} against {step.base.title})"
    yield from _wrapped(
        f"{step.why} ({format_count(step.num_pairs, 'request')} of {format_count(step.num_repeats, 'run')} compared one by one)",
        paint,
    )
    if len(step.gain_by_round) > 1:
        rounds = "  ".join(f"send {number}: {100 * gain:+.1f} %" for number, gain in step.gain_by_round[:_MOST_SENDS])
        yield f"  time to first token saved by send: {rounds}"


def _winner(report: TiersReport, paint: Paint) -> str:
    if report.interrupted:
        return paint("stopped early; --resume goes on", "bold", "yellow")
    if report.winner is None:
        return paint("nothing could be judged: the GPUs alone were not measured", "bold", "red")
    return paint(f"best: {report.winner.title}", "bold", "green")


def _wrapped(text: str, paint: Paint) -> list[str]:
    return wrap(text, paint.width, initial_indent="  ", subsequent_indent="    ", break_long_words=False)
