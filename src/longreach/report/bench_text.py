"""What `bench` prints: the outcome in words, the figures with their intervals, then what is proven of them."""

import textwrap

from longreach.measure.bench.selection import describe_load
from longreach.measure.bench.summary_values import BenchSummary, Interval
from longreach.measure.bench.values import BenchResult
from longreach.report.bench_tables import (
    NEAR_MAX,
    STATE_WORDS,
    format_short,
    length_table,
    mark_p90,
    mark_p99,
    state_table,
    time_table,
)
from longreach.report.checklist_text import render_checklist
from longreach.report.style import Paint, printable
from longreach.units import format_count, format_duration, format_tokens

_MAX_ERRORS = 5
UNCOUNTED = "the server does not count the tokens"
SURVIVORS = "Times are of answered requests alone: a server that fails its slow requests looks faster than it is."
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
        state_table(summary, paint),
        time_table(summary, paint),
        length_table(summary, paint),
        _near_max(summary, paint),
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
    states = ", then ".join(STATE_WORDS[state.state] for state in summary.states)
    num_requests = format_count(header.num_requests, "request")
    sent = f"{num_requests}, {states}; {describe_load(header.load)}; {printable(header.workload_source)}"
    early = f"stopped early: {len(result.counted):,} of {format_count(result.num_wanted, 'request')} were made"
    lines = [paint(early, "bold", "red")] if result.interrupted else []
    lines += [*(paint(line, "bold") for line in _wrapped(title, paint, "")), *_wrapped(sent, paint), ""]
    missing = summary.num_wanted - summary.num_ok - summary.num_failed
    done = f"{summary.num_ok:,} of {format_count(summary.num_wanted, 'request')} answered"
    parts = [f"{done} in {format_duration(summary.duration_s)}"]
    parts += [f"{summary.num_failed:,} failed"] if summary.num_failed else []
    parts += [f"{missing:,} not made"] if missing > 0 else []
    colour = "red" if summary.num_failed else "yellow" if missing > 0 else "green"
    lines.append(paint(", ".join(parts), "bold", colour))
    lines += _wrapped(SURVIVORS, paint) if summary.num_failed and summary.num_ok else []
    return [
        *lines,
        *_rates(summary),
        *_goodput(summary, paint),
        *(line for note in header.notes for line in _wrapped(printable(note), paint)),
    ]


def _near_max(summary: BenchSummary, paint: Paint) -> list[str]:
    """What the stars of the tables above say, if there are any."""
    all_of_a_table = (*(state.ttft_s for state in summary.states), summary.ttft_s, summary.itl_s)
    marked = any(mark_p99(values) for values in all_of_a_table if values is not None)
    marked = marked or any(mark_p90(length.ttft_s) for length in summary.lengths)
    return [paint(f"  {NEAR_MAX}", "dim")] if marked else []


def _rates(summary: BenchSummary) -> list[str]:
    rows = (
        ("tokens/s generated", summary.output_tokens_per_s),
        ("tokens/s of prompts", summary.prompt_tokens_per_s),
        ("requests/s", summary.requests_per_s),
    )
    known = [f"{value:,.1f} {what}" if value >= 1 else f"{value:.3g} {what}" for what, value in rows if value]
    return [f"  {', '.join(known)}"] if known else []


def _goodput(summary: BenchSummary, paint: Paint) -> list[str]:
    goodput = summary.goodput
    if goodput is None:
        return []
    slo = goodput.slo
    limits = (("TTFT", slo.ttft_s), ("ITL", slo.itl_s), ("E2E", slo.e2e_latency_s))
    within = ", ".join(f"{name} {format_duration(limit)}" for name, limit in limits if limit is not None)
    if goodput.num_unknown:
        untold = format_count(goodput.num_unknown, "request")
        return _wrapped(f"goodput within {within} cannot be told: {UNCOUNTED} of {untold}", paint)
    sure = f" ({_percent(goodput.share_interval)})" if goodput.share_interval else ""
    return _wrapped(
        f"goodput {goodput.share:.1%}{sure} within {within}: {goodput.requests_per_s:.3g} requests/s", paint
    )


def _percent(interval: Interval) -> str:
    return f"{interval[0]:.1%} to {interval[1]:.1%}"


def _server(summary: BenchSummary, paint: Paint) -> list[str]:
    """What the server and this client counted meanwhile."""
    facts = []
    if summary.queue_mean_s is not None:
        facts.append(f"queued {format_short(summary.queue_mean_s)} on average")
    if summary.kv_cache_usage_max:  # 0: no sample fell into a request
        facts.append(f"KV cache at most {summary.kv_cache_usage_max:.1%} full")
    if summary.num_preemptions is not None:
        facts.append(format_count(summary.num_preemptions, "preemption"))
    if summary.acceptance_rate is not None:
        length = summary.mean_acceptance_length
        a_step = f", {length:.2f} tokens a step" if length is not None else ""
        facts.append(f"{summary.acceptance_rate:.1%} of draft tokens accepted{a_step}")
    if summary.client_loop_lag_p99_s is not None:
        facts.append(f"this client late by {format_short(summary.client_loop_lag_p99_s)} at P99")
    return _wrapped("; ".join(facts), paint) if facts else []


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
