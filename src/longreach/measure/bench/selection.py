"""Which of a run's requests and phases a figure is made from, and what the run was in words. Pure."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from longreach.measure.bench.values import BenchResult, CacheState, Load, PhaseReport, RequestRecord
from longreach.units import format_tokens

Value = TypeVar("Value")
_MAX_WORDS = 500  # letters
_NO_TIME_S = 50e-6  # a token: no server generates 20,000 a second for one request


def counted_phases(result: BenchResult) -> tuple[PhaseReport, ...]:
    """The reports that belong to `result.counted`: no flood, of each state the last pass."""
    last = {phase.state: phase.name for phase in result.header.phases}
    return tuple(p for p in result.phases if p.state != "flood" and last.get(p.state) == p.name)


def answered(result: BenchResult) -> list[RequestRecord]:
    """The counted requests that went well."""
    return [record for record in result.counted if record.ok]


def came_in_one_piece(record: RequestRecord) -> bool:
    """No time between its tokens: something held them back (a proxy that buffers, a machine too busy to send), so that the
    first of them is known only to have come by then.
    """
    between = known((record.itl_s, record.chunk_gap_max_s))
    if between:
        return min(between) < _NO_TIME_S
    return record.num_chunks > 0 and (record.output_tokens or 0) >= 2


def itl_s(record: RequestRecord) -> float | None:
    """None also for an answer that came in one piece, which shows no time between tokens."""
    return None if came_in_one_piece(record) else record.itl_s


def states_of(result: BenchResult) -> tuple[CacheState, ...]:
    """The states that figures are given for, in the order they were measured in."""
    return tuple(dict.fromkeys(phase.state for phase in result.header.phases if phase.state != "flood"))


def busy_time_s(records: Sequence[RequestRecord], phases: Sequence[PhaseReport]) -> float:
    """Seconds from a phase's first request to the end of its last, over all phases. What lies between phases (floods, waits
    for the server's counters, the time until a run was resumed) is not in it.
    """
    groups: dict[tuple[str, int | None], list[RequestRecord]] = {}
    for record in records:
        groups.setdefault((record.phase, _sitting(record, phases)), []).append(record)
    return sum(_span_s(group) for group in groups.values())


def _sitting(record: RequestRecord, phases: Sequence[PhaseReport]) -> int | None:
    """Which report covers the record; a phase that was resumed has several."""
    places = (
        place
        for place, phase in enumerate(phases)
        if phase.name == record.phase and phase.began_s <= record.sent_s <= phase.ended_s
    )
    return next(places, None)


def _span_s(records: Sequence[RequestRecord]) -> float:
    return max(r.sent_s + r.e2e_latency_s for r in records) - min(r.sent_s for r in records)


def sources_of(phase: PhaseReport) -> tuple[tuple[str, int], ...]:
    """Tokens that were hit, by where they were. A server that does not split them (before 0.32) still tells its own cache
    from what lies outside it.
    """
    both = (("device", phase.prefix_hit_tokens or 0), ("outside the GPU", phase.external_hit_tokens or 0))
    return tuple((source, tokens) for source, tokens in phase.hits_by_source or both if tokens)


SOURCE_WORDS = {"device": "GPU", "host": "CPU", "disk": "disk"}


def describe_sources(sources: Iterable[tuple[str, int]]) -> str:
    """`CPU 3,000, disk 968`: in the words for the tiers, not those of the server's metrics."""
    return ", ".join(f"{SOURCE_WORDS.get(source, source)} {format_tokens(tokens)}" for source, tokens in sources)


def words_of(failed: RequestRecord) -> str:
    """What the server said of a request that failed, in a length that a line of a report bears."""
    words = failed.error or "the server gave no reason"
    return words if len(words) <= _MAX_WORDS else f"{words[:_MAX_WORDS]} ... ({len(words):,} letters in all)"


def known(values: Iterable[Value | None]) -> list[Value]:
    """Those that are not unknown."""
    return [value for value in values if value is not None]


def total(values: Iterable[int | None]) -> int | None:
    """The sum; None when one is unknown, or there is none."""
    items = list(values)
    numbers = known(items)
    return sum(numbers) if numbers and len(numbers) == len(items) else None


def describe_load(load: Load) -> str:
    """In words: `4 at once`, `0.5 a second (poisson), at most 8 at once`."""
    if load.arrivals == "closed":
        return f"{load.concurrency} at once" if load.concurrency != 1 else "one at a time"
    cap = f", at most {load.concurrency} at once" if load.concurrency else ""
    if load.arrivals == "trace":
        stretched = f", on a clock {load.time_scale:g} times as long" if load.time_scale != 1 else ""
        return f"at the trace's own times{stretched}{cap}"
    return f"{load.rate_per_s or 0:g} a second ({load.arrivals}){cap}"
