"""Runs as they could have been, made from a seed: what the tests of the page draw."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from longreach.measure.bench.summary_values import (
    BenchSummary,
    Distribution,
    ForecastComparison,
    Goodput,
    Interval,
    Slo,
    StateSummary,
)
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
from longreach.measure.verify_report import ChecklistItem, ServerState

_PHASES = (
    PhaseSpec("cold", "cold"),
    PhaseSpec("warm 1", "warm"),
    PhaseSpec("flood", "flood"),
    PhaseSpec("evicted", "evicted"),
)
_LENGTHS = (1_000, 4_000, 16_000, 32_000, 64_000, 128_000)
_TTFT_PER_TOKEN_S: dict[CacheState, float] = {"cold": 3.0e-4, "warm": 0.4e-5, "evicted": 3.0e-5, "flood": 3.0e-4}
_CONCURRENCY = 4


def header(**changes: object) -> BenchHeader:
    """A run against a server of vLLM 0.32.0, at temperature 0."""
    made = BenchHeader(
        started_at="2026-11-30T20:51:07+00:00",
        base_url="http://127.0.0.1:8000",
        model="Qwen/Qwen3.6-27B",
        server=ServerState(version="0.32.0", max_model_len=262_144, kv_capacity_tokens=327_680, block_size=16),
        workload_digest="5f0c7c1e9a",
        workload_source="24 synthetic prompts of 1,000 to 128,000 tokens",
        seed="7",
        tokenizer="Qwen/Qwen3.6-27B",
        template_tokens=10,
        num_requests=24,
        load=Load(concurrency=_CONCURRENCY),
        phases=_PHASES,
        api="chat",
        longreach_version="0.1.0",
        label="GPU and CPU tier",
        cache_salt="a8f1",
        is_deterministic=True,
        notes=("the prompts of 128,000 tokens fill 39 % of the KV cache",),
    )
    return replace(made, **changes)  # type: ignore[arg-type] # the caller names fields of the header


def run(seed: int = 1, num_requests: int = 24) -> BenchResult:
    """Cold, warm, flood, evicted; one request of the warm phase fails, one is not warm after all."""
    rng = random.Random(seed)
    records: list[RequestRecord] = []
    phases: list[PhaseReport] = []
    now = 0.0
    for phase in _PHASES:
        made, ended = _one_phase(rng, phase, num_requests, now)
        records += made
        phases.append(PhaseReport(phase.name, phase.state, now, ended, num_requests, attributed=True))
        now = ended
    records[num_requests + 3] = _failed(records[num_requests + 3])
    records[num_requests + 5] = replace(records[num_requests + 5], cached_tokens=0, proof="disproven")
    samples = tuple(_sample(records, now * step / 200) for step in range(201))
    made_header = header(num_requests=num_requests)
    return BenchResult(made_header, tuple(records), tuple(phases), samples, client_loop_lag_p99_s=0.0013)


def plain_run(num_requests: int = 12) -> BenchResult:
    """One phase, one prompt length, no metrics, no samples, no usage of cached tokens."""
    rng = random.Random(3)
    spec = PhaseSpec("as it comes", "as_it_comes")
    records, _ = _one_phase(rng, PhaseSpec("cold", "cold"), num_requests, 0.0, lengths=(2_000,))
    plain = [
        replace(record, phase=spec.name, state=spec.state, cached_tokens=None, proof=None, hits_by_source=())
        for record in records
    ]
    return BenchResult(header(num_requests=num_requests, phases=(spec,), label="", notes=()), tuple(plain))


def _one_phase(
    rng: random.Random, phase: PhaseSpec, num_requests: int, began_s: float, lengths: Sequence[int] = _LENGTHS
) -> tuple[list[RequestRecord], float]:
    free_at = [began_s] * _CONCURRENCY
    records = []
    for index in range(num_requests):
        lane = free_at.index(min(free_at))
        record = _record(rng, phase, index, lengths[index % len(lengths)], free_at[lane])
        free_at[lane] += record.e2e_latency_s
        records.append(record)
    return records, max(free_at)


def _record(rng: random.Random, phase: PhaseSpec, index: int, prompt: int, sent_s: float) -> RequestRecord:
    output = 128
    ttft = (0.05 + prompt * _TTFT_PER_TOKEN_S[phase.state]) * rng.lognormvariate(0, 0.12)
    itl = 0.021 * rng.lognormvariate(0, 0.15) * (1 + prompt / 500_000)
    cached = {"cold": 0, "flood": 0}.get(phase.state, prompt // 16 * 16)
    sources = {
        "warm": (("device", cached),),
        "evicted": (("host", cached * 3 // 4), ("disk", cached - cached * 3 // 4)),
    }
    return RequestRecord(
        phase=phase.name,
        index=index,
        state=phase.state,
        ok=True,
        error=None,
        error_kind=None,
        error_status=None,
        wanted_prompt_tokens=prompt,
        prompt_tokens=prompt,
        cached_tokens=cached,
        cached_tokens_source="usage",
        reusable_tokens=0,
        wanted_output_tokens=output,
        output_tokens=output,
        finish_reason="length",
        due_s=None,
        sent_s=sent_s,
        ttft_s=ttft,
        time_to_first_answer_s=ttft + 8 * itl,
        itl_s=itl,
        e2e_latency_s=ttft + (output - 1) * itl,
        num_chunks=output,
        chunk_gap_p50_s=itl * 0.97,
        chunk_gap_p99_s=itl * rng.uniform(1.2, 2.6),
        chunk_gap_max_s=itl * 4,
        client_loop_lag_p99_s=0.0012,
        answer_digest=f"{index:08x}",
        proof="proven",
        hits_by_source=sources.get(phase.state, ()),
    )


def _failed(record: RequestRecord) -> RequestRecord:
    return replace(
        record,
        ok=False,
        error="EngineDeadError: <script>alert('x')</script> & \x1b[31mred",
        error_kind="error_event",
        error_status=200,
        output_tokens=None,
        finish_reason=None,
        itl_s=None,
        proof=None,
        cached_tokens=None,
        hits_by_source=(),
    )


def _sample(records: Sequence[RequestRecord], at_s: float) -> ServerSample:
    under_way = [record for record in records if record.sent_s <= at_s < record.sent_s + record.e2e_latency_s]
    held = sum(record.prompt_tokens or 0 for record in under_way)
    return ServerSample(at_s, len(under_way), max(0, len(under_way) - 3), min(1.0, held / 327_680))


def distribution(values: Sequence[float]) -> Distribution | None:
    """Of the values, with an interval as wide as its standard error suggests."""
    if not values:
        return None
    ordered = sorted(values)

    def at(share: float) -> float:
        return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]

    mean = sum(ordered) / len(ordered)
    half = 2 * math.sqrt(sum((value - mean) ** 2 for value in ordered)) / len(ordered)

    def around(value: float) -> Interval | None:
        return (max(0.0, value - half), value + half) if len(ordered) > 4 else None

    p50, p90, p99 = at(0.5), at(0.9), at(0.99)
    ends = ordered[0], ordered[-1]
    return Distribution(
        len(ordered),
        mean,
        p50,
        p90,
        p99,
        *ends,
        around(mean),
        around(p50),
        around(p90),
        around(p99) if len(ordered) > 99 else None,
    )


def summary(result: BenchResult) -> BenchSummary:
    """The figures of a made-up run, as the statistics would give them."""
    good = [record for record in result.counted if record.ok]
    states = tuple(dict.fromkeys(record.state for record in result.counted))
    duration_s = max(record.sent_s + record.e2e_latency_s for record in result.records)
    limits = Slo(ttft_s=10.0, itl_s=0.03)
    met = sum((record.ttft_s or 0) <= 10 and (record.itl_s or 0) <= 0.03 for record in good)
    return BenchSummary(
        num_ok=len(good),
        num_failed=len(result.counted) - len(good),
        num_wanted=result.num_wanted,
        duration_s=duration_s,
        ttft_s=_of(good, lambda record: record.ttft_s),
        time_to_first_answer_s=_of(good, lambda record: record.time_to_first_answer_s),
        itl_s=_of(good, lambda record: record.itl_s),
        chunk_gap_p99_s=_of(good, lambda record: record.chunk_gap_p99_s),
        e2e_latency_s=_of(good, lambda record: record.e2e_latency_s),
        output_tokens_per_s=sum(record.output_tokens or 0 for record in good) / duration_s,
        prompt_tokens_per_s=sum(record.prompt_tokens or 0 for record in good) / duration_s,
        requests_per_s=len(good) / duration_s,
        client_loop_lag_p99_s=result.client_loop_lag_p99_s,
        states=tuple(_state(state, [record for record in good if record.state == state]) for state in states),
        goodput=Goodput(limits, met, met / len(result.counted), (0.71, 0.89), met / duration_s),
        num_preemptions=2,
        kv_cache_usage_max=0.83,
        queue_mean_s=0.41,
        checks=_CHECKS,
        forecasts=_FORECASTS,
        errors=(("error event in the stream: EngineDeadError", 1),),
    )


def _of(records: Sequence[RequestRecord], figure: Callable[[RequestRecord], float | None]) -> Distribution | None:
    return distribution([value for record in records if (value := figure(record)) is not None])


def _state(state: CacheState, records: Sequence[RequestRecord]) -> StateSummary:
    known = [record.cached_tokens for record in records if record.cached_tokens is not None]
    sources: dict[str, int] = {}
    for record in records:
        for name, count in record.hits_by_source:
            sources[name] = sources.get(name, 0) + count
    return StateSummary(
        state=state,
        num_ok=len(records),
        num_proven=sum(record.proof == "proven" for record in records),
        num_disproven=sum(record.proof == "disproven" for record in records),
        ttft_s=_of(records, lambda record: record.ttft_s),
        itl_s=_of(records, lambda record: record.itl_s),
        e2e_latency_s=_of(records, lambda record: record.e2e_latency_s),
        prompt_tokens=sum(record.prompt_tokens or 0 for record in records),
        cached_tokens=sum(known) if known else None,
        hits_by_source=tuple(sources.items()),
    )


_CHECKS = (
    ChecklistItem(
        "prompt_length", "prompts have the asked length at the server", "pass", "96 of 96 requests, to the token"
    ),
    ChecklistItem(
        "warm_proven",
        "warm requests were warm",
        "fail",
        "request 5 of phase warm 1 had no cached tokens",
        "look for preemptions, or raise --kv-cache-memory-bytes",
    ),
    ChecklistItem(
        "ttft_agrees", "TTFT agrees with the server's histogram", "cannot_tell", "the server was used by others"
    ),
)
_FORECASTS = (
    ForecastComparison(
        "ttft_cold_s", 128_000, 38.6, 24.0, 31.0, 46.0, "inside", "measured 38.6 s, bound 24 s, range 31-46"
    ),
    ForecastComparison("ttft_cold_s", 32_000, 9.7, 6.0, 8.0, 11.5, "inside", "measured 9.7 s, bound 6 s, range 8-11.5"),
    ForecastComparison(
        "ttft_warm_s", 128_000, 0.57, 0.1, 0.2, 0.4, "slower", "measured 570 ms, bound 100 ms, range 200-400 ms"
    ),
    ForecastComparison(
        "decode_tokens_per_s", 32_000, 44.0, 90.0, 40.0, 60.0, "inside", "measured 44, bound 90, range 40-60"
    ),
)
