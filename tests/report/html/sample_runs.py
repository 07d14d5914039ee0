"""Runs as they could have been, made from a seed: what the tests of the pages draw."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.measure.bench.results import HEADER, failed, record

from longreach.forecast.values import Span
from longreach.measure.bench.summary import summarise
from longreach.measure.bench.summary_values import BenchSummary, Slo
from longreach.measure.bench.values import (
    BenchResult,
    CacheState,
    Load,
    PhaseReport,
    PhaseSpec,
    RequestRecord,
    ServerSample,
)
from longreach.measure.target import ExpectedSpeed
from longreach.measure.verify_report import ServerState

_PHASES = (
    PhaseSpec("cold", "cold"),
    PhaseSpec("warm 1", "warm"),
    PhaseSpec("flood", "flood"),
    PhaseSpec("evicted", "evicted"),
)
_LENGTHS = (1_000, 4_000, 16_000, 32_000, 64_000, 128_000)
_TTFT_PER_TOKEN_S: dict[CacheState, float] = {"cold": 3.0e-4, "warm": 0.4e-5, "evicted": 3.0e-5, "flood": 3.0e-4}
_OUTPUT = 128
_KV_TOKENS = 327_680
_SPEEDS = (
    ExpectedSpeed(128_000, Span(31.0, 46.0, 24.0), Span(0.2, 0.4, 0.1), Span(30.0, 50.0, upper_bound=90.0)),
    ExpectedSpeed(32_000, Span(8.0, 11.5, 6.0), Span(0.1, 0.2, 0.02), Span(30.0, 50.0, upper_bound=90.0)),
)

HOSTILE = "EngineDeadError: <script>alert('x')</script> & \x1b[31mred"
HEADER_OF_A_BOX = replace(
    HEADER,
    model="Qwen/Qwen3.6-27B",
    server=ServerState(version="0.32.0", max_model_len=262_144, kv_capacity_tokens=_KV_TOKENS, block_size=16),
    workload_source="synthetic prompts of 1,000 to 128,000 tokens",
    tokenizer="Qwen/Qwen3.6-27B",
    load=Load(concurrency=1),
    phases=_PHASES,
    label="GPU and CPU tier",
    is_deterministic=True,
    notes=("the prompts of 128,000 tokens fill 39 % of the KV cache",),
)


def run(seed: int = 1, num_requests: int = 24, concurrency: int = 1) -> BenchResult:
    """Cold, warm, flood, evicted; one request of the warm phase fails, one is not warm after all."""
    rng = random.Random(seed)
    records: list[RequestRecord] = []
    phases: list[PhaseReport] = []
    now = 0.0
    for phase in _PHASES:
        made, ended = _one_phase(rng, phase, num_requests, now, concurrency)
        records += made
        phases.append(PhaseReport(phase.name, phase.state, now, ended, num_requests))
        now = ended
    lost, missed = records[num_requests + 3], records[num_requests + 5]
    records[num_requests + 3] = failed(
        lost.index,
        "warm",
        phase=lost.phase,
        sent_s=lost.sent_s,
        error=HOSTILE,
        error_kind="error_event",
        error_status=200,
    )
    records[num_requests + 5] = replace(missed, cached_tokens=0, proof="disproven", hits_by_source=())
    samples = tuple(_sample(records, now * step / 200) for step in range(201))
    header = replace(HEADER_OF_A_BOX, num_requests=num_requests, load=Load(concurrency=concurrency))
    return BenchResult(header, tuple(records), tuple(phases), samples, client_loop_lag_p99_s=0.0013)


def plain_run(num_requests: int = 12) -> BenchResult:
    """One phase, one prompt length, no metrics, no samples, no usage of cached tokens."""
    made, _ = _one_phase(random.Random(3), PhaseSpec("cold", "cold"), num_requests, 0.0, 2, lengths=(2_000,))
    spec = PhaseSpec("as it comes", "as_it_comes")
    untold: dict[str, Any] = {"cached_tokens": None, "proof": None, "hits_by_source": ()}
    records = tuple(replace(one, phase=spec.name, state=spec.state, **untold) for one in made)
    header = replace(
        HEADER_OF_A_BOX, num_requests=num_requests, phases=(spec,), label="", notes=(), server=ServerState()
    )
    return BenchResult(header, records)


def summary(result: BenchResult) -> BenchSummary:
    """Its figures, with limits and a forecast."""
    return summarise(result, Slo(ttft_s=10.0, itl_s=0.03), _SPEEDS)


def _one_phase(
    rng: random.Random,
    phase: PhaseSpec,
    num_requests: int,
    began_s: float,
    concurrency: int,
    lengths: Sequence[int] = _LENGTHS,
) -> tuple[list[RequestRecord], float]:
    free_at = [began_s] * concurrency
    records = []
    for index in range(num_requests):
        lane = free_at.index(min(free_at))
        made = _record(rng, phase, index, lengths[index % len(lengths)], free_at[lane])
        free_at[lane] += made.e2e_latency_s
        records.append(made)
    return records, max(free_at)


def _record(rng: random.Random, phase: PhaseSpec, index: int, prompt: int, sent_s: float) -> RequestRecord:
    ttft_s = (0.05 + prompt * _TTFT_PER_TOKEN_S[phase.state]) * rng.lognormvariate(0, 0.12)
    itl_s = 0.021 * rng.lognormvariate(0, 0.15) * (1 + prompt / 500_000)
    cached = (prompt - 1) // 16 * 16 if phase.state in ("warm", "evicted") else 0
    on_host = cached * 3 // 4
    sources = {"warm": (("device", cached),), "evicted": (("host", on_host), ("disk", cached - on_host))}
    return record(
        index,
        phase.state,
        phase=phase.name,
        wanted_prompt_tokens=prompt,
        prompt_tokens=prompt,
        cached_tokens=cached,
        wanted_output_tokens=_OUTPUT,
        output_tokens=_OUTPUT,
        sent_s=sent_s,
        ttft_s=ttft_s,
        time_to_first_answer_s=ttft_s + 8 * itl_s,
        itl_s=itl_s,
        e2e_latency_s=ttft_s + (_OUTPUT - 1) * itl_s,
        num_chunks=_OUTPUT,
        chunk_gap_p99_s=itl_s * rng.uniform(1.2, 2.6),
        hits_by_source=sources.get(phase.state, ()),
    )


def _sample(records: Sequence[RequestRecord], at_s: float) -> ServerSample:
    under_way = [one for one in records if one.sent_s <= at_s < one.sent_s + one.e2e_latency_s]
    held = sum(one.prompt_tokens or 0 for one in under_way)
    return ServerSample(at_s, min(3, len(under_way)), max(0, len(under_way) - 3), min(1.0, held / _KV_TOKENS))
