"""How the page writes numbers, and where an axis has its ticks."""

import math
from collections.abc import Sequence

from longreach.measure.bench.summary_values import Distribution, Interval
from longreach.units import format_bytes, format_duration, format_tokens

_NICE_S = (
    *(factor * 10.0**power for power in range(-6, 0) for factor in (1, 2, 5)),
    *(
        1.0,
        2.0,
        5.0,
        10.0,
        20.0,
        30.0,
        60.0,
        120.0,
        300.0,
        600.0,
        1200.0,
        1800.0,
        3600.0,
        7200.0,
        18000.0,
        36000.0,
        86400.0,
        172800.0,
        432000.0,
    ),
)
_NICE_TOKENS = tuple(factor * 10.0**power for power in range(9) for factor in (1, 2, 5))
_MAX_TICKS = 6

UNKNOWN = "-"
DISTRIBUTION_HEADER = ("requests", "mean", "P50", "95 % interval of P50", "P90", "P99", "largest")


def duration(seconds: float | None) -> str:
    """`4.32 ms`, `43.2 ms`, `840 ms`, `4.2 s`, `3 min 35 s`; a dash for what is not known."""
    if seconds is None:
        return UNKNOWN
    if 0 < seconds < 0.1:
        return f"{1000 * seconds:.3g} ms"
    return format_duration(seconds)


def interval(bounds: Interval | None) -> str:
    """`4.1 s to 4.6 s`; a dash where the sample is too small for one."""
    return UNKNOWN if bounds is None else f"{duration(bounds[0])} to {duration(bounds[1])}"


def tokens(count: float | None) -> str:
    """`1,194,731`; a dash for what is not known."""
    return UNKNOWN if count is None else format_tokens(round(count))


def rate(per_s: float | None, unit: str) -> str:
    """Three figures: `1,240 tokens/s`, `0.532 requests/s`."""
    if per_s is None:
        return UNKNOWN
    return f"{per_s:,.0f} {unit}" if per_s >= 1000 else f"{per_s:.3g} {unit}"


def percent(share: float | None) -> str:
    """`12.5 %`, `75 %`; what is neither nothing nor all stays so: `< 0.1 %`, `> 99.9 %`."""
    if share is None:
        return UNKNOWN
    if 0 < share < 0.001 or 0.999 < share < 1:
        return "< 0.1 %" if share < 0.5 else "> 99.9 %"
    return f"{round(100 * share, 1):g} %"


def size(size_bytes: float | None) -> str:
    """`10.5 GiB`."""
    return UNKNOWN if size_bytes is None else format_bytes(size_bytes)


def quantiles_text(values: Distribution) -> str:
    """`median 4.2 s, P90 5.1 s, P99 6.0 s (n = 40)`."""
    parts = ((name, getattr(values, name.lower())) for name in ("P50", "P90", "P99"))
    return f"{', '.join(f'{name} {duration(value)}' for name, value in parts)} (n = {values.num_samples:,})"


def distribution_cells(values: Distribution) -> tuple[str, ...]:
    """The cells under DISTRIBUTION_HEADER."""
    figures = (values.p90, values.p99, values.max)
    middle = (duration(values.mean), duration(values.p50), interval(values.p50_interval))
    return (f"{values.num_samples:,}", *middle, *(duration(value) for value in figures))


def tick_duration(seconds: float, _position: int | None = None) -> str:
    """A duration as an axis writes it: `0`, `50 ms`, `2 s`, `90 s`, `80 min`, `2 h`."""
    for scale, unit in ((3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        count = seconds / scale
        if count > 0.999 and (scale <= 1 or abs(count - round(count)) < 1e-6):
            return f"{count:.3g} {unit}"
    return "0"


def tick_tokens(count: float, _position: int | None = None) -> str:
    """A token count as an axis writes it: `500`, `32k`, `1.2M`."""
    for scale, unit in ((1e6, "M"), (1e3, "k")):
        if count >= scale:
            return f"{count / scale:.3g}{unit}"
    return f"{count:.3g}"


def duration_ticks(low: float, high: float, *, logarithmic: bool) -> list[float]:
    """At most seven round moments from `low` to `high` seconds."""
    return _log_ticks(_NICE_S, low, high) if logarithmic else _even_ticks(_NICE_S, high)


def token_ticks(low: float, high: float, *, logarithmic: bool) -> list[float]:
    """At most seven round counts from `low` to `high` tokens."""
    return _log_ticks(_NICE_TOKENS, low, high) if logarithmic else _even_ticks(_NICE_TOKENS, high)


def _log_ticks(nice: Sequence[float], low: float, high: float) -> list[float]:
    inside = [value for value in nice if low <= value <= high]
    return inside[:: math.ceil(len(inside) / _MAX_TICKS)] if inside else [low, high]


def _even_ticks(nice: Sequence[float], high: float) -> list[float]:
    step = next((value for value in nice if high / value <= _MAX_TICKS), high / _MAX_TICKS)
    return [step * count for count in range(math.floor(high / step) + 1)]
