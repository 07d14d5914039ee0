"""What was measured beside what the plan said. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from longreach.forecast.values import Span
from longreach.measure.bench.selection import came_in_one_piece, itl_s, known
from longreach.measure.bench.statistics import percentile
from longreach.measure.bench.summary_values import ForecastComparison
from longreach.measure.bench.values import BenchResult, RequestRecord
from longreach.measure.target import ExpectedSpeed
from longreach.units import format_duration

Verdict = Literal["inside", "faster", "slower", "beats_bound", "no_forecast"]

_NEXT_TO_NOTHING = 0.01  # a chat template's own tokens may be hit by every prompt


@dataclass(frozen=True, slots=True)
class _Row:
    """One promised figure: which requests show it, how it is read, and whether more of it is better."""

    figure: Literal["ttft_cold_s", "ttft_warm_s", "decode_tokens_per_s"]
    shows: Callable[[RequestRecord], bool]
    read: Callable[[RequestRecord], float | None]
    is_rate: bool = False


def _met_no_cache(record: RequestRecord) -> bool:
    """By the server's count, or by the claim where it does not count and nothing of the prompt was sent before."""
    if record.cached_tokens is None:
        return record.state == "cold" and not record.reusable_tokens
    return record.cached_tokens <= _NEXT_TO_NOTHING * (record.prompt_tokens or 0)


_ROWS = (
    _Row("ttft_cold_s", _met_no_cache, lambda r: r.ttft_s),
    _Row("ttft_warm_s", lambda r: r.state == "warm", lambda r: r.ttft_s),
    _Row("decode_tokens_per_s", lambda _: True, lambda r: 1 / gap_s if (gap_s := itl_s(r)) else None, is_rate=True),
)


def compare_forecast(result: BenchResult, speeds: Sequence[ExpectedSpeed]) -> tuple[ForecastComparison, ...]:
    """The median of all requests of the forecast's prompt length, figure by figure. A request whose cache was not what it was
    meant to be counts nowhere. The forecast is of one request alone: with several at once only its bound is held against it.
    """
    together = result.header.load.concurrency != 1
    found = []
    for speed in speeds:
        records = [
            r
            for r in result.counted
            if r.ok
            and r.prompt_tokens == speed.prompt_tokens
            and r.proof != "disproven"
            and not came_in_one_piece(r)  # its times are bounds, which another bound cannot be held against
        ]
        for row in _ROWS:
            values = known(row.read(record) for record in records if row.shows(record))
            if values:
                span: Span = getattr(speed, row.figure)
                found.append(_compare(row, speed.prompt_tokens, percentile(values, 0.5), span, together=together))
    return tuple(found)


def _compare(row: _Row, prompt_tokens: int, measured: float, span: Span, *, together: bool) -> ForecastComparison:
    bound = span.upper_bound if row.is_rate else span.lower_bound
    verdict = _judge(measured, bound, None if together else span, is_rate=row.is_rate)
    return ForecastComparison(
        figure=row.figure,
        prompt_tokens=prompt_tokens,
        measured=measured,
        bound=bound,
        low=span.low,
        high=span.high,
        verdict=verdict,
        text=_render(row, measured, bound, span, together=together),
    )


def _judge(measured: float, bound: float | None, span: Span | None, *, is_rate: bool) -> Verdict:
    if bound is not None and (measured > bound if is_rate else measured < bound):
        return "beats_bound"
    if span is None or span.low is None or span.high is None:
        return "no_forecast"
    if span.low <= measured <= span.high:
        return "inside"
    return "faster" if (measured > span.high) == is_rate else "slower"


def _render(row: _Row, measured: float, bound: float | None, span: Span, *, together: bool) -> str:
    """`measured 61 s, bound 41 s, range 55-80 s`."""
    show = _show_rate if row.is_rate else format_duration
    parts = [f"measured {show(measured)}{' with others at the same time; alone' if together else ''}"]
    parts += [f"bound {show(bound)}"] if bound is not None else []
    if span.low is not None and span.high is not None:
        parts.append(f"range {show(span.low)} to {show(span.high)}")
    elif span.reason:
        parts.append(f"no range: {span.reason}")
    return (": " if together else ", ").join([parts[0], ", ".join(parts[1:])]) if parts[1:] else parts[0]


def _show_rate(tokens_per_s: float) -> str:
    return f"{tokens_per_s:,.1f} tokens/s"
