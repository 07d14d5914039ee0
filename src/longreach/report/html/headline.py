"""The run in words: what was measured against whom, and what a reader must know before any figure."""

from datetime import datetime

from longreach.measure.bench.selection import describe_load
from longreach.measure.bench.summary_values import BenchSummary
from longreach.measure.bench.values import BenchHeader, BenchResult
from longreach.measure.verify_report import Verdict
from longreach.report.bench_tables import STATE_WORDS
from longreach.report.bench_text import SURVIVORS
from longreach.report.html.figures import duration
from longreach.report.html.page import Headline
from longreach.units import format_count


def bench_headline(result: BenchResult, summary: BenchSummary) -> Headline:
    """Failed requests first, then states that were not what they were meant to be, then all else."""
    failures, cut, doubts = _failures(result, summary), _cut_short(result, summary), _doubts(summary)
    level: Verdict = "fail" if failures else "cannot_tell" if cut or doubts else "pass"
    good = [] if failures else [_answered(summary.num_ok)]
    first, *others = [*failures, *cut, *good, *doubts]
    name = result.header.label or result.header.model
    return Headline(
        f"{name}: {_short_figures(summary)}", _what(result.header, summary), level, f"{first}.", tuple(others)
    )


def _answered(num_ok: int) -> str:
    if num_ok < 2:
        return "The one request was answered" if num_ok else "No request was answered"
    return f"All {num_ok:,} requests were answered"


def _failures(result: BenchResult, summary: BenchSummary) -> list[str]:
    counted_records = len(result.counted)
    lines = []
    if summary.num_failed:
        lines.append(f"{summary.num_failed:,} of {format_count(counted_records, 'request')} failed")
        lines += [SURVIVORS.rstrip(".")] if summary.num_ok else []
    lines += [
        f"{format_count(state.num_disproven, 'request')} meant to be {STATE_WORDS[state.state]} "
        f"{'was' if state.num_disproven == 1 else 'were'} not, by the server's own count of cached tokens"
        for state in summary.states
        if state.num_disproven
    ]
    failed = [item.title for item in summary.checks if item.verdict == "fail"]
    return lines + ([f"{format_count(len(failed), 'check')} failed: {'; '.join(failed)}"] if failed else [])


def _cut_short(result: BenchResult, summary: BenchSummary) -> list[str]:
    done = len(result.counted)
    early = f"Stopped early: {done:,} of {summary.num_wanted:,} requests were sent"
    return [early] if result.interrupted or done < summary.num_wanted else []


def _doubts(summary: BenchSummary) -> list[str]:
    lines = [
        f"{state.num_ok - state.num_proven - state.num_disproven:,} of {state.num_ok:,} {STATE_WORDS[state.state]} requests "
        "are not proven to be so: the server does not tell, or others used it"
        for state in summary.states
        if state.state != "as_it_comes" and state.num_ok > state.num_proven + state.num_disproven
    ]
    unsure = [item.title for item in summary.checks if item.verdict == "cannot_tell"]
    return lines + ([f"{format_count(len(unsure), 'check')} cannot be told: {'; '.join(unsure)}"] if unsure else [])


def _short_figures(summary: BenchSummary) -> str:
    times = [f"{STATE_WORDS[state.state]} {duration(state.ttft_s.p50)}" for state in summary.states if state.ttft_s]
    return f"median TTFT {', '.join(times)}" if times else "no request was answered"


def _what(header: BenchHeader, summary: BenchSummary) -> str:
    version = f" (vLLM {header.server.version})" if header.server.version else ""
    phases = " → ".join(phase.name for phase in header.phases)
    sent = f"{format_count(header.num_requests, 'request')} a phase ({phases}), {describe_load(header.load)}"
    against = f"{header.model} at {header.base_url}{version}, {_when(header.started_at)}"
    return f"{against}. {sent}, {duration(summary.duration_s)} under way. Workload: {header.workload_source}."


def _when(started_at: str) -> str:
    try:
        return datetime.fromisoformat(started_at).strftime("%d %B %Y, %H:%M %Z")
    except ValueError:
        return started_at
