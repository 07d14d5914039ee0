"""Everything that a run's figures are made of, from its records, its phases and its samples. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from longreach.measure.bench.checks import check_run
from longreach.measure.bench.forecast_comparison import compare_forecast
from longreach.measure.bench.selection import (
    busy_time_s,
    came_in_one_piece,
    counted_phases,
    itl_s,
    known,
    sources_of,
    states_of,
    total,
    words_of,
)
from longreach.measure.bench.slo import compute_goodput
from longreach.measure.bench.statistics import describe
from longreach.measure.bench.summary_values import BenchSummary, Distribution, LengthSummary, Slo, StateSummary
from longreach.measure.bench.values import BenchResult, CacheState, PhaseReport, RequestRecord
from longreach.measure.target import ExpectedSpeed

_ABOUT_AS_LONG = 1.05
_MAX_LENGTHS = 12


def summarise(result: BenchResult, slo: Slo | None = None, speeds: Sequence[ExpectedSpeed] = ()) -> BenchSummary:
    """All figures. Times are of requests that were answered to their end; rates are over the time in which requests of
    counted phases were under way; what the server counted is of counted phases.
    """
    records, phases = result.counted, counted_phases(result)
    answered = [record for record in records if record.ok]
    duration_s = busy_time_s(records, phases)
    return BenchSummary(
        num_ok=len(answered),
        num_failed=len(records) - len(answered),
        num_wanted=result.num_wanted,
        duration_s=duration_s,
        ttft_s=_describe(answered, lambda r: r.ttft_s),
        time_to_first_answer_s=_describe(answered, lambda r: r.time_to_first_answer_s),
        itl_s=_describe(answered, itl_s),
        chunk_gap_p99_s=_describe(answered, lambda r: None if came_in_one_piece(r) else r.chunk_gap_p99_s),
        e2e_latency_s=_describe(answered, lambda r: r.e2e_latency_s),
        output_tokens_per_s=_rate(total(r.output_tokens for r in answered), duration_s),
        prompt_tokens_per_s=_rate(total(r.prompt_tokens for r in answered), duration_s),
        requests_per_s=_rate(len(answered), duration_s),
        client_loop_lag_p99_s=_lag_s(result),
        states=tuple(_state(result, state) for state in states_of(result)),
        goodput=compute_goodput(records, slo, duration_s) if slo else None,
        acceptance_rate=_quotient(phases, lambda p: p.num_accepted_tokens, lambda p: p.num_draft_tokens),
        mean_acceptance_length=_acceptance_length(phases),
        num_preemptions=total(phase.num_preemptions for phase in phases),
        kv_cache_usage_max=max(known(sample.kv_cache_usage for sample in result.samples), default=None),
        queue_mean_s=_quotient(phases, lambda p: p.queue_sum_s, lambda p: p.queue_count),
        checks=check_run(result),
        forecasts=compare_forecast(result, speeds),
        errors=tuple(Counter(_failure(r) for r in result.records if not r.ok).most_common()),
        lengths=_lengths(answered),
    )


def _describe(records: Iterable[RequestRecord], figure: Callable[[RequestRecord], float | None]) -> Distribution | None:
    values = known(figure(record) for record in records)
    return describe(values) if values else None


def _rate(amount: int | None, duration_s: float) -> float | None:
    return amount / duration_s if amount is not None and duration_s > 0 else None


def _quotient(
    phases: Sequence[PhaseReport],
    dividend: Callable[[PhaseReport], float | None],
    divisor: Callable[[PhaseReport], float | None],
) -> float | None:
    """Sum by sum, over the phases where both are known."""
    pairs = [(above, below) for p in phases if (above := dividend(p)) is not None and (below := divisor(p)) is not None]
    of = sum(below for _, below in pairs)
    return sum(above for above, _ in pairs) / of if of else None


def _acceptance_length(phases: Sequence[PhaseReport]) -> float | None:
    accepted = _quotient(phases, lambda p: p.num_accepted_tokens, lambda p: p.num_drafts)
    return None if accepted is None else 1 + accepted


def _lag_s(result: BenchResult) -> float | None:
    """Of the whole run; of the worst request where the run kept none (it was cut short)."""
    if result.client_loop_lag_p99_s is not None:
        return result.client_loop_lag_p99_s
    return max(known(record.client_loop_lag_p99_s for record in result.records), default=None)


def _failure(record: RequestRecord) -> str:
    """`refused (HTTP 400): This model's maximum context length is ...`."""
    status = f" (HTTP {record.error_status})" if record.error_status else ""
    return f"{record.error_kind or 'failed'}{status}: {words_of(record)}"


def _state(result: BenchResult, state: CacheState) -> StateSummary:
    records = [record for record in result.counted if record.ok and record.state == state]
    phases = [phase for phase in counted_phases(result) if phase.state == state]
    return StateSummary(
        state=state,
        num_ok=len(records),
        num_proven=sum(record.proof == "proven" for record in records),
        num_disproven=sum(record.proof == "disproven" for record in records),
        ttft_s=_describe(records, lambda r: r.ttft_s),
        itl_s=_describe(records, itl_s),
        e2e_latency_s=_describe(records, lambda r: r.e2e_latency_s),
        prompt_tokens=sum(record.prompt_tokens or 0 for record in records),
        cached_tokens=total(record.cached_tokens for record in records),
        hits_by_source=hits_by_source(phases, records),
    )


def hits_by_source(phases: Sequence[PhaseReport], records: Sequence[RequestRecord]) -> tuple[tuple[str, int], ...]:
    """Cached prompt tokens by where they were: as the phases counted them when these counts are ours alone, else as the
    requests did.
    """
    found: Counter[str] = Counter()
    if phases and all(phase.attributed for phase in phases):
        for phase in phases:
            found.update(dict(sources_of(phase)))
    else:
        for record in records:
            found.update(dict(record.hits_by_source))
    return tuple((source, tokens) for source, tokens in found.items() if tokens)


def _lengths(records: Sequence[RequestRecord]) -> tuple[LengthSummary, ...]:
    """Requests by state and length of prompt: each length for itself, or from one power of two to the next when there are
    too many. Nothing when all are about as long.
    """
    timed = [(r, r.prompt_tokens or r.wanted_prompt_tokens or 0) for r in records if r.ttft_s is not None]
    lengths = {length for _, length in timed}
    if not lengths or max(lengths) <= _ABOUT_AS_LONG * min(lengths):
        return ()
    few = len(lengths) <= _MAX_LENGTHS

    def group_of(pair: tuple[RequestRecord, int]) -> tuple[str, int]:
        return pair[0].state, pair[1] if few else pair[1].bit_length()

    order = list(dict.fromkeys(r.state for r in records))
    timed.sort(key=lambda pair: (order.index(pair[0].state), group_of(pair)[1]))
    return tuple(_length(list(group)) for _, group in groupby(timed, key=group_of))


def _length(pairs: Sequence[tuple[RequestRecord, int]]) -> LengthSummary:
    records = [record for record, _ in pairs]
    return LengthSummary(
        state=records[0].state,
        low_tokens=min(length for _, length in pairs),
        high_tokens=max(length for _, length in pairs),
        ttft_s=describe(known(record.ttft_s for record in records)),
        itl_s=_describe(records, itl_s),
    )
