"""Planned instances and scripted results for the tests of tiers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from longreach.engine.release import get_release
from longreach.hardware.catalogue import find_gpu
from longreach.hardware.machine import machine_from
from longreach.measure.bench.values import BenchHeader, BenchResult, Load, PhaseReport, PhaseSpec, RequestRecord
from longreach.measure.verify_report import ServerState
from longreach.model.source import load_model
from longreach.plan.build import make_plan
from longreach.plan.goal import Goal, NamedGoal
from longreach.plan.values import Plan

GIB = 2**30


@cache
def planned(
    cpu: int | None = 200 * GIB,
    disk: str | None = None,
    policy: str = "lru",
    model: str = "qwen3-32b",
    extra: tuple[str, ...] = (),
) -> Plan:
    """Four cards with 10 GiB of fp8 KV cache each: 327,680 tokens for the dense model at 131,072 bytes a token."""
    goal = Goal(
        max_model_len=131_072,
        kv_cache_memory_bytes=10 * GIB,
        kv_cache_dtype="fp8_e4m3",
        mean_input_tokens=32_768,
        cpu_tier_bytes=cpu,
        disk_tier_path=disk,
        eviction_policy=policy,
        extra_args=extra,
    )
    machine = machine_from(find_gpu("RTX 4090", 24564), 4)
    return make_plan(load_model(model, "w4a16"), machine, get_release("0.32.0"), [NamedGoal("main", goal)])


@dataclass(frozen=True, slots=True)
class Script:
    """What one run did: a time to first token and cached tokens for each request, and the server's own counts."""

    ttfts: Sequence[float]
    hits: tuple[tuple[str, int], ...] = ()
    cached: int = 0  # of every prompt
    answer_s: float = 0.5
    tier_written: tuple[tuple[str, int], ...] = ()
    loaded: tuple[int, float] | None = None  # bytes, seconds
    failed: frozenset[int] = frozenset()
    attributed: bool = True  # False: the server counted requests of others, too
    load: Load = field(default_factory=Load)


def result_of(script: Script, *, prompt_tokens: int = 1_000) -> BenchResult:
    """One request after the other, without a pause."""
    records, now = [], 0.0
    for index, ttft_s in enumerate(script.ttfts):
        ok, latency = index not in script.failed, ttft_s + script.answer_s
        records.append(_record(index, now, ttft_s if ok else None, latency, prompt_tokens, script.cached))
        now += latency
    report = PhaseReport(
        name="as it comes",
        state="as_it_comes",
        began_s=0.0,
        ended_s=now,
        num_sent=len(records),
        attributed=script.attributed,
        hits_by_source=script.hits,
        offload_load_bytes=script.loaded[0] if script.loaded else None,
        offload_load_s=script.loaded[1] if script.loaded else None,
        tier_write_bytes=script.tier_written,
    )
    return BenchResult(_header(len(records), script.load), tuple(records), (report,))


def _record(
    index: int, sent_s: float, ttft_s: float | None, latency: float, prompt_tokens: int, cached: int
) -> RequestRecord:
    ok = ttft_s is not None
    return RequestRecord(
        phase="as it comes",
        index=index,
        state="as_it_comes",
        ok=ok,
        error=None if ok else "the server died",
        error_kind=None if ok else "disconnected",
        error_status=None,
        wanted_prompt_tokens=prompt_tokens,
        prompt_tokens=prompt_tokens if ok else None,
        cached_tokens=cached if ok else None,
        cached_tokens_source="usage" if ok else None,
        reusable_tokens=None,
        wanted_output_tokens=16,
        output_tokens=16 if ok else None,
        finish_reason="length" if ok else None,
        due_s=None,
        sent_s=sent_s,
        ttft_s=ttft_s,
        time_to_first_answer_s=ttft_s,
        itl_s=None,
        e2e_latency_s=latency,
        num_chunks=16,
        chunk_gap_p50_s=None,
        chunk_gap_p99_s=None,
        chunk_gap_max_s=None,
        client_loop_lag_p99_s=0.0,
        answer_digest=None,
    )


def _header(num_requests: int, load: Load) -> BenchHeader:
    return BenchHeader(
        started_at="2026-01-01T00:00:00+00:00",
        base_url="http://127.0.0.1:8000",
        model="tiny",
        server=ServerState(block_size=128, kv_capacity_tokens=4_096),
        workload_digest="digest",
        workload_source="generated",
        seed="s",
        tokenizer="t",
        template_tokens=0,
        num_requests=num_requests,
        load=load,
        phases=(PhaseSpec("as it comes", "as_it_comes"),),
        api="chat",
        longreach_version="0",
    )
