"""From a streamed answer to the record that is kept of it. Texts are digested, not kept."""

from dataclasses import dataclass
from hashlib import sha256
from statistics import median

from longreach.measure.bench.proof import judge_state
from longreach.measure.bench.values import PhaseSpec, RequestRecord
from longreach.measure.loop_lag import compute_p99
from longreach.measure.sending import find_cached_tokens
from longreach.measure.stream import StreamFailure, StreamResult, StreamTiming
from longreach.measure.verify_report import Counters
from longreach.measure.workload.values import WorkloadRequest
from longreach.wire.refusals import ApiError


@dataclass(frozen=True, slots=True)
class Sent:
    """A request on its way. Moments are seconds after the beginning of the run; `due_s` is None in a closed loop."""

    phase: PhaseSpec
    request: WorkloadRequest
    due_s: float | None
    sent_s: float


def make_record(
    sent: Sent,
    result: StreamResult,
    counters: Counters | None = None,
    *,
    template_tokens: int = 0,
    block_size: int | None = None,
) -> RequestRecord:
    """The record of one request; `counters` is what the server counted meanwhile, None when nobody looked."""
    request, timing, failure = sent.request, result.timing, result.failure
    prompt_tokens = result.usage.prompt_tokens if result.usage else None
    cached_tokens, source = find_cached_tokens(result, counters)
    proof = None
    if failure is None:
        proof = judge_state(
            sent.phase.state,
            request,
            cached_tokens,
            counters,
            prompt_tokens=prompt_tokens,
            template_tokens=template_tokens,
            block_size=block_size,
        )
    gaps = timing.chunk_gaps_s
    return RequestRecord(
        phase=sent.phase.name,
        index=request.index,
        state=sent.phase.state,
        ok=failure is None,
        error=None if failure is None else failure.error.message or "the server gave no reason",
        error_kind=None if failure is None else failure.kind,
        error_status=None if failure is None else failure.status,
        wanted_prompt_tokens=request.prompt_tokens,
        prompt_tokens=prompt_tokens,
        cached_tokens=cached_tokens,
        cached_tokens_source=source,
        reusable_tokens=request.reusable_tokens,
        wanted_output_tokens=request.output_tokens,
        output_tokens=result.usage.completion_tokens if result.usage else None,
        finish_reason=result.finish_reason,
        due_s=sent.due_s,
        sent_s=sent.sent_s,
        ttft_s=timing.ttft_s,
        time_to_first_answer_s=timing.first_answer_s,
        itl_s=result.itl_s,
        e2e_latency_s=timing.e2e_latency_s,
        num_chunks=result.num_chunks,
        chunk_gap_p50_s=median(gaps) if gaps else None,
        chunk_gap_p99_s=compute_p99(list(gaps)),
        chunk_gap_max_s=max(gaps, default=None),
        client_loop_lag_p99_s=result.event_loop_lag_p99_s,
        answer_digest=digest_answer(result) if failure is None else None,
        proof=proof,
        hits_by_source=counters.hits_by_source if counters is not None and counters.attributed else (),
        session=request.session,
    )


def digest_answer(result: StreamResult) -> str:
    """The same reasoning and content have the same digest."""
    return sha256(f"{result.reasoning}\0{result.content}".encode(errors="surrogatepass")).hexdigest()[:16]


def unsent(reason: str) -> StreamResult:
    """The result of a request that was not even tried, since nothing would have answered."""
    failure = StreamFailure("unreachable", ApiError(f"not sent: {reason}"))
    return StreamResult(StreamTiming(None, None, None, 0.0, ()), "", "", None, None, failure)
