"""Benchmark results as they are handed to figures, checks and screens, without a server."""

from dataclasses import replace
from typing import Any

from longreach.measure.bench.values import (
    BenchHeader,
    BenchResult,
    CacheState,
    Load,
    PhaseReport,
    PhaseSpec,
    RequestRecord,
    ServerSample,
)
from longreach.measure.verify_report import ServerState

BLOCK = 16
HEADER = BenchHeader(
    started_at="2026-11-30T21:00:00+00:00",
    base_url="http://127.0.0.1:8000",
    model="tiny",
    server=ServerState(version="0.32.0", block_size=BLOCK),
    workload_digest="d" * 64,
    workload_source="synthetic text",
    seed="longreach",
    tokenizer="tokenizer.json",
    template_tokens=10,
    num_requests=4,
    load=Load(),
    phases=(PhaseSpec("cold", "cold"),),
    api="chat",
    longreach_version="0.1.0",
)


def record(index: int = 0, state: CacheState = "cold", **changes: Any) -> RequestRecord:
    """A request of 1,000 prompt and 11 output tokens that went well: TTFT 2 s, then a token each 100 ms."""
    cached = 0 if state == "cold" else 992
    whole = RequestRecord(
        phase=state,
        index=index,
        state=state,
        ok=True,
        error=None,
        error_kind=None,
        error_status=None,
        wanted_prompt_tokens=1000,
        prompt_tokens=1000,
        cached_tokens=cached,
        cached_tokens_source="usage",
        reusable_tokens=0,
        wanted_output_tokens=11,
        output_tokens=11,
        finish_reason="length",
        due_s=None,
        sent_s=3.0 * index,
        ttft_s=2.0,
        time_to_first_answer_s=2.0,
        itl_s=0.1,
        e2e_latency_s=3.0,
        num_chunks=11,
        chunk_gap_p50_s=0.1,
        chunk_gap_p99_s=0.12,
        chunk_gap_max_s=0.12,
        client_loop_lag_p99_s=0.002,
        answer_digest=f"answer {index}",
        proof="proven" if state in ("cold", "warm", "evicted") else None,
    )
    return replace(whole, **changes)


def failed(index: int = 0, state: CacheState = "cold", **changes: Any) -> RequestRecord:
    """One that the server refused."""
    nothing = dict.fromkeys(
        (
            "prompt_tokens",
            "cached_tokens",
            "output_tokens",
            "finish_reason",
            "ttft_s",
            "time_to_first_answer_s",
            "itl_s",
        )
    )
    words = {
        "error": "This model's maximum context length is 512 tokens.",
        "error_kind": "refused",
        "error_status": 400,
    }
    end = {"ok": False, "e2e_latency_s": 0.01, "num_chunks": 0, "answer_digest": None, "proof": None}
    return record(index, state, **{**nothing, **words, **end, **changes})


def phase(state: CacheState = "cold", num_sent: int = 4, **changes: Any) -> PhaseReport:
    """What a server counts of `num_sent` requests as `record` makes them, and of nothing else."""
    whole = PhaseReport(
        name=state,
        state=state,
        began_s=0.0,
        ended_s=3.0 * num_sent + 0.5,
        num_sent=num_sent,
        attributed=True,
        prompt_tokens=1000 * num_sent,
        generation_tokens=11 * num_sent,
        prefix_query_tokens=1000 * num_sent,
        prefix_hit_tokens=0,
        external_hit_tokens=0,
        num_preemptions=0,
        ttft_sum_s=1.99 * num_sent,
        ttft_count=num_sent,
        queue_sum_s=0.02 * num_sent,
        queue_count=num_sent,
    )
    return replace(whole, **changes)


def result(
    *records: RequestRecord, phases: tuple[PhaseReport, ...] = (), lag_s: float | None = 0.002, **header: Any
) -> BenchResult:
    """A run of these records; the phases of its header are theirs in order, unless given."""
    specs = tuple(dict.fromkeys(PhaseSpec(item.phase, item.state) for item in records))
    num_requests = len({item.index for item in records})
    given = {"phases": specs, "num_requests": num_requests, **header}
    sample = ServerSample(1.0, num_running=1.0, num_waiting=0.0, kv_cache_usage=0.25)
    return BenchResult(replace(HEADER, **given), records, phases, (sample,), lag_s)


def cold_run(num_requests: int = 4, **header: Any) -> BenchResult:
    """Requests one after the other, all cold, counted by the server as well."""
    records = [record(index) for index in range(num_requests)]
    return result(*records, phases=(phase(num_sent=num_requests),), **header)
