"""What `bench` prints: the outcome in words, the figures with their intervals, then what is proven of them."""

import textwrap
from collections.abc import Callable, Sequence

from longreach.measure.bench.selection import describe_load
from longreach.measure.bench.summary_values import BenchSummary, Distribution, Interval, LengthSummary, StateSummary
from longreach.measure.bench.values import BenchResult
from longreach.report.checklist_text import render_checklist
from longreach.report.style import Paint, printable, table
from longreach.units import format_duration, format_tokens

_MAX_ERRORS = 5
_STATE = {"cold": "cold", "warm": "warm", "evicted": "evicted", "as_it_comes": "as it comes", "flood": "flood"}
_FORECAST = {
    "ttft_cold_s": "first token, cold",
    "ttft_warm_s": "first token, warm",
    "decode_tokens_per_s": "decode rate",
}
_FORECAST_COLOUR = {
    "inside": "green",
    "faster": "green",
    "slower": "yellow",
    "beats_bound": "red",
    "no_forecast": "dim",
}


def render_bench(result: BenchResult, summary: BenchSummary, paint: Paint) -> str:
    """One screen; its tables take 80 columns, its sentences the terminal's."""
    sections = (
        _headline(result, summary, paint),
        _times(summary, paint),
        _by_state(summary, paint),
        _by_length(summary, paint),
        _server(summary, paint),
        _forecasts(summary, paint),
        _errors(summary, paint),
        render_checklist(summary.checks, paint, interrupted=result.interrupted),
    )
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _headline(result: BenchResult, summary: BenchSummary, paint: Paint) -> list[str]:
    header = result.header
    version = f" by vLLM {header.server.version}" if header.server.version else ""
    label = f"{header.label}: " if header.label else ""
    title = printable(f"{label}{header.model} at {header.base_url}{version}")
    states = ", then ".join(_STATE[state.state] for state in summary.states)
    sent = (
        f"{header.num_requests} requests, {states}; {describe_load(header.load)}; {printable(header.workload_source)}"
    )
    lines = [paint(title, "bold"), *_wrapped(sent, paint), ""]
    missing = summary.num_wanted - summary.num_ok - summary.num_failed
    parts = [f"{summary.num_ok} of {summary.num_wanted} requests answered in {format_duration(summary.duration_s)}"]
    parts += [f"{summary.num_failed} failed"] if summary.num_failed else []
    parts += [f"{missing} not made"] if missing > 0 else []
    colour = "red" if summary.num_failed else "yellow" if missing > 0 else "green"
    lines.append(paint(", ".join(parts), "bold", colour))
    return [
        *lines,
        *_rates(summary),
        *_goodput(summary, paint),
        *(line for note in header.notes for line in _wrapped(note, paint)),
    ]


def _rates(summary: BenchSummary) -> list[str]:
    rows = (
        ("tokens/s generated", summary.output_tokens_per_s),
        ("tokens/s of prompts", summary.prompt_tokens_per_s),
        ("requests/s", summary.requests_per_s),
    )
    known = [f"{value:,.{1 if value >= 1 else 3}f} {what}" for what, value in rows if value is not None]
    return [f"  {', '.join(known)}"] if known else []


def _goodput(summary: BenchSummary, paint: Paint) -> list[str]:
    goodput = summary.goodput
    if goodput is None:
        return []
    slo = goodput.slo
    limits = (("TTFT", slo.ttft_s), ("ITL", slo.itl_s), ("E2E", slo.e2e_latency_s))
    within = ", ".join(f"{name} {format_duration(limit)}" for name, limit in limits if limit is not None)
    sure = f" ({_percent(goodput.share_interval)})" if goodput.share_interval else ""
    return _wrapped(
        f"goodput {goodput.share:.1%}{sure} within {within}: {goodput.requests_per_s:.3g} requests/s", paint
    )


def _percent(interval: Interval) -> str:
    return f"{interval[0]:.1%} to {interval[1]:.1%}"


def _times(summary: BenchSummary, paint: Paint) -> list[str]:
    rows = (
        ("TTFT", summary.ttft_s),
        ("first answer", summary.time_to_first_answer_s),
        ("ITL", summary.itl_s),
        ("chunk gap P99", summary.chunk_gap_p99_s),
        ("E2E", summary.e2e_latency_s),
    )
    measured = [(name, values) for name, values in rows if values is not None]
    if summary.time_to_first_answer_s == summary.ttft_s:
        measured = [(name, values) for name, values in measured if name != "first answer"]
    if not measured:
        return []
    cells = [line for name, values in measured for line in _time_rows(name, values)]
    lines = table([("", "n", "mean", "P50", "P90", "P99", "max"), *cells], frozenset(range(1, 7)))
    note = "  second lines: 95 % intervals, where the number of requests carries one"
    return [*_dim_intervals(lines, paint), paint(note, "dim")]


def _time_rows(name: str, values: Distribution) -> list[tuple[str, ...]]:
    """The figures in one unit, and below them their intervals."""
    scale, unit = (1000.0, "ms") if values.mean < 1 else (1.0, "s")
    figures = (values.mean, values.p50, values.p90, values.p99, values.max)
    intervals = (values.mean_interval, values.p50_interval, values.p90_interval, values.p99_interval)
    rows = [(f"{name}, {unit}", str(values.num_samples), *(_figure(scale * figure) for figure in figures))]
    if any(intervals):
        rows.append(
            ("", "", *("" if i is None else f"{_figure(scale * i[0])}-{_figure(scale * i[1])}" for i in intervals), "")
        )
    return rows


def _figure(value: float) -> str:
    """Three digits or more: `0.842`, `6.83`, `61.2`, `1,412`."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{digits}f}"


def _dim_intervals(lines: Sequence[str], paint: Paint) -> list[str]:
    return [paint(line, "dim") if line.startswith("   ") and line.strip()[0].isdigit() else line for line in lines]


def _by_state(summary: BenchSummary, paint: Paint) -> list[str]:
    states = [state for state in summary.states if state.num_ok]
    if not states:
        return []
    header = ("cache", "ok", "proven", "TTFT P50", "P99", "ITL P50", "prompt", "cached", "")
    lines = table([header, *(_state_row(state) for state in states)], frozenset(range(1, 9)))
    where = [f"  {_STATE[state.state]} hits from: {_sources(state)}" for state in states if state.hits_by_source]
    return [paint("By what the cache held", "bold"), *lines, *where]


def _state_row(state: StateSummary) -> tuple[str, ...]:
    claimed = state.num_proven + state.num_disproven
    share = f"{state.cached_tokens / state.prompt_tokens:.1%}" if state.cached_tokens and state.prompt_tokens else ""
    return (
        _STATE[state.state],
        str(state.num_ok),
        str(state.num_proven) if claimed or state.state != "as_it_comes" else "-",
        _p(state.ttft_s, lambda d: d.p50),
        _p(state.ttft_s, lambda d: d.p99),
        _p(state.itl_s, lambda d: d.p50),
        format_tokens(state.prompt_tokens),
        "-" if state.cached_tokens is None else format_tokens(state.cached_tokens),
        share,
    )


def _p(values: Distribution | None, figure: Callable[[Distribution], float]) -> str:
    if values is None:
        return "-"
    seconds = figure(values)
    return f"{1000 * seconds:.1f} ms" if seconds < 0.1 else format_duration(seconds)


def _sources(state: StateSummary) -> str:
    return ", ".join(f"{source} {format_tokens(tokens)}" for source, tokens in state.hits_by_source)


def _by_length(summary: BenchSummary, paint: Paint) -> list[str]:
    if not summary.lengths:
        return []
    rows = [_length_row(length) for length in summary.lengths]
    header = ("prompt tokens", "cache", "n", "TTFT P50", "P90", "max", "ITL P50")
    lines = table([header, *rows], frozenset({0, 2, 3, 4, 5, 6}))
    return [paint("By prompt length", "bold"), *lines]


def _length_row(length: LengthSummary) -> tuple[str, ...]:
    low, high = format_tokens(length.low_tokens), format_tokens(length.high_tokens)
    return (
        low if low == high else f"{low} to {high}",
        _STATE[length.state],
        str(length.ttft_s.num_samples),
        _p(length.ttft_s, lambda d: d.p50),
        _p(length.ttft_s, lambda d: d.p90),
        _p(length.ttft_s, lambda d: d.max),
        _p(length.itl_s, lambda d: d.p50),
    )


def _server(summary: BenchSummary, paint: Paint) -> list[str]:
    """What the server and this client counted meanwhile."""
    facts = []
    if summary.queue_mean_s is not None:
        facts.append(f"queued {_seconds(summary.queue_mean_s)} on average")
    if summary.kv_cache_usage_max is not None:
        facts.append(f"KV cache at most {summary.kv_cache_usage_max:.1%} full")
    if summary.num_preemptions is not None:
        facts.append(f"{summary.num_preemptions:,} preemption{'' if summary.num_preemptions == 1 else 's'}")
    if summary.acceptance_rate is not None:
        length = summary.mean_acceptance_length
        a_step = f", {length:.2f} tokens a step" if length is not None else ""
        facts.append(f"{summary.acceptance_rate:.1%} of draft tokens accepted{a_step}")
    if summary.client_loop_lag_p99_s is not None:
        facts.append(f"this client late by {_seconds(summary.client_loop_lag_p99_s)} at P99")
    return _wrapped("; ".join(facts), paint) if facts else []


def _seconds(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms" if seconds < 0.1 else format_duration(seconds)


def _forecasts(summary: BenchSummary, paint: Paint) -> list[str]:
    if not summary.forecasts:
        return []
    lines = [paint("Beside the plan's forecast", "bold")]
    for item in summary.forecasts:
        what = f"{_FORECAST[item.figure]}, {format_tokens(item.prompt_tokens)} tokens"
        word = item.verdict.replace("_", " ")
        lines += [f"  {what}: {paint(word, _FORECAST_COLOUR[item.verdict])}", *_wrapped(item.text, paint, "    ")]
    return lines


def _errors(summary: BenchSummary, paint: Paint) -> list[str]:
    if not summary.errors:
        return []
    lines = [paint("What failed, in the server's words where it had any", "bold", "red")]
    for words, count in summary.errors[:_MAX_ERRORS]:
        lines += _wrapped(f"{count} x {' '.join(printable(words).split())}", paint)
    rest = sum(count for _, count in summary.errors[_MAX_ERRORS:])
    return [*lines, f"  and {rest} more; the results file holds all of them"] if rest else lines


def _wrapped(text: str, paint: Paint, indent: str = "  ") -> list[str]:
    return textwrap.wrap(
        text,
        paint.width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=True,
        break_on_hyphens=False,
    )
