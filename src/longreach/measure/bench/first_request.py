"""Whether the first request paid for the engine's own start: kernels that compile, pools that fill. Pure."""

from statistics import median

from longreach.measure.bench.values import BenchResult, RequestRecord
from longreach.units import format_duration

_STANDS_OUT = 3.0  # times the slowest of the others
_LEAST_OTHERS = 3
_ALIKE = 0.9  # of its length


def describe_slow_first(result: BenchResult) -> str | None:
    """A line for people when the first cold request took far longer than all others of its length; None when it did not, or
    nothing can be said.
    """
    cold = [record for record in result.counted if record.state == "cold" and not record.reusable_tokens]
    if not cold or any(record.state == "flood" for record in result.records[:1]):
        return None
    first = min(cold, key=lambda record: record.sent_s)
    others = [
        ttft_s for record in cold if record is not first and _is_alike(record, first) and (ttft_s := record.ttft_s)
    ]
    if first.ttft_s is None or len(others) < _LEAST_OTHERS or first.ttft_s < _STANDS_OUT * max(others):
        return None
    times = first.ttft_s / median(others)
    return (
        f"the first request waited {format_duration(first.ttft_s)} for its first token, {times:.0f} times the median of the "
        "others: the engine may have compiled or allocated what it needs; it is in the figures (--warmup 1 keeps such out)"
    )


def _is_alike(record: RequestRecord, first: RequestRecord) -> bool:
    return record.ok and (record.wanted_prompt_tokens or 0) >= _ALIKE * (first.wanted_prompt_tokens or 0)
