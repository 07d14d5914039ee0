"""The tables of a benchmark run: times with their intervals, figures by what the cache held and by prompt length."""

from collections.abc import Callable, Sequence

from longreach.measure.bench.selection import describe_sources
from longreach.measure.bench.summary_values import BenchSummary, Distribution, LengthSummary, StateSummary
from longreach.measure.bench.values import CacheState
from longreach.report.style import Paint, printable, table
from longreach.units import format_duration, format_tokens

STATE_WORDS: dict[CacheState, str] = {
    "cold": "cold",
    "warm": "warm",
    "evicted": "evicted",
    "as_it_comes": "as it comes",
    "flood": "flood",
}


NEAR_MAX = "* too few requests (P90 takes 10, P99 takes 100): close to the largest"


def mark_p90(values: Distribution) -> str:
    """A star where no request lies beyond the percentile."""
    return "*" if values.num_samples < 10 else ""


def mark_p99(values: Distribution) -> str:
    """As above."""
    return "*" if values.num_samples < 100 else ""


def time_table(summary: BenchSummary, paint: Paint) -> list[str]:
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
    has_intervals = any(not cell[0] for cell in cells)
    note = "  second lines: 95 % intervals, where the number of requests carries one"
    return [*_mixed(summary, paint), *_dim_intervals(lines, paint), *([paint(note, "dim")] if has_intervals else [])]


def _mixed(summary: BenchSummary, paint: Paint) -> list[str]:
    """What the table mixes: cold and warm together are a figure of neither."""
    if len(summary.states) < 2:
        return []
    states = ", ".join(STATE_WORDS[state.state] for state in summary.states)
    return [f"{paint('All requests together', 'bold')} ({states}): a mix that no user meets"]


def _time_rows(name: str, values: Distribution) -> list[tuple[str, ...]]:
    """The figures in one unit, and below them their intervals."""
    scale, unit = (1000.0, "ms") if values.mean < 1 else (1.0, "s")
    figures = (values.mean, values.p50, values.p90, values.p99, values.max)
    marks = ("", "", mark_p90(values), mark_p99(values), "")
    intervals = (values.mean_interval, values.p50_interval, values.p90_interval, values.p99_interval)
    rows = [
        (
            f"{name}, {unit}",
            str(values.num_samples),
            *(_figure(scale * figure) + mark for figure, mark in zip(figures, marks, strict=True)),
        )
    ]
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


def state_table(summary: BenchSummary, paint: Paint) -> list[str]:
    states = [state for state in summary.states if state.num_ok]
    if not states:
        return []
    header = ("cache", "ok", "proven", "TTFT P50", "P99", "ITL P50", "prompt", "cached", "")
    lines = table([header, *(_state_row(state) for state in states)], frozenset(range(1, 9)))
    where = [f"  {STATE_WORDS[state.state]} hits from: {_sources(state)}" for state in states if state.hits_by_source]
    return [paint("By what the cache held", "bold"), *lines, *where]


def _state_row(state: StateSummary) -> tuple[str, ...]:
    claimed = state.num_proven + state.num_disproven
    share = f"{state.cached_tokens / state.prompt_tokens:.1%}" if state.cached_tokens and state.prompt_tokens else ""
    return (
        STATE_WORDS[state.state],
        str(state.num_ok),
        str(state.num_proven) if claimed or state.state != "as_it_comes" else "-",
        _p(state.ttft_s, lambda d: d.p50),
        _p(state.ttft_s, lambda d: d.p99, mark_p99),
        _p(state.itl_s, lambda d: d.p50),
        format_tokens(state.prompt_tokens),
        "-" if state.cached_tokens is None else format_tokens(state.cached_tokens),
        share,
    )


def _p(
    values: Distribution | None,
    figure: Callable[[Distribution], float],
    mark: Callable[[Distribution], str] = lambda _: "",
) -> str:
    return "-" if values is None else format_short(figure(values)) + mark(values)


def format_short(seconds: float) -> str:
    """`5.3 ms`, `840 ms`, `4.2 s`: as `format_duration`, with a digit more where it matters."""
    return f"{1000 * seconds:.1f} ms" if seconds < 0.1 else format_duration(seconds)


def _sources(state: StateSummary) -> str:
    return printable(describe_sources(state.hits_by_source))


def length_table(summary: BenchSummary, paint: Paint) -> list[str]:
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
        STATE_WORDS[length.state],
        str(length.ttft_s.num_samples),
        _p(length.ttft_s, lambda d: d.p50),
        _p(length.ttft_s, lambda d: d.p90, mark_p90),
        _p(length.ttft_s, lambda d: d.max),
        _p(length.itl_s, lambda d: d.p50),
    )
