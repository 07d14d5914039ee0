"""The server's counters over one phase, and its gauges while it ran."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from longreach.engine.metrics import EngineMetrics, delta
from longreach.errors import EngineError
from longreach.measure.bench.values import PhaseReport, PhaseSpec, ServerSample
from longreach.measure.client import Client
from longreach.measure.metrics import fetch_metrics, is_idle, list_sources, whole

_SAMPLE_EVERY_S = 1.0
_MAX_SAMPLES_A_PACE = 1_000


@dataclass(frozen=True, slots=True)
class PhaseCount:
    """What this client did in a phase. `num_broken` requests failed after the server had taken them up: it may or may not
    count them as finished.
    """

    spec: PhaseSpec
    began_s: float
    ended_s: float
    num_sent: int
    num_ok: int
    num_broken: int


def report_phase(count: PhaseCount, before: EngineMetrics | None, after: EngineMetrics | None) -> PhaseReport:
    """The phase with what the server counted between two readings; without them with our own counts alone."""
    bare = PhaseReport(count.spec.name, count.spec.state, count.began_s, count.ended_s, count.num_sent)
    if before is None or after is None:
        return bare
    try:
        change = delta(before, after)
    except EngineError:
        return bare  # restarted meanwhile: the counters say nothing
    num_finished = whole(change.num_finished) or 0
    ours_alone = count.num_ok <= num_finished <= count.num_ok + count.num_broken
    return PhaseReport(
        name=bare.name,
        state=bare.state,
        began_s=bare.began_s,
        ended_s=bare.ended_s,
        num_sent=bare.num_sent,
        attributed=ours_alone and is_idle(before) and is_idle(after),
        prompt_tokens=whole(change.prompt_tokens),
        generation_tokens=whole(change.generation_tokens),
        prefix_query_tokens=whole(change.prefix_query_tokens),
        prefix_hit_tokens=whole(change.prefix_hit_tokens),
        external_hit_tokens=whole(change.external_hit_tokens),
        hits_by_source=list_sources(change.cached_tokens_by_source),
        num_preemptions=whole(change.num_preemptions),
        num_drafts=whole(change.num_drafts),
        num_draft_tokens=whole(change.num_draft_tokens),
        num_accepted_tokens=whole(change.num_accepted_tokens),
        ttft_sum_s=change.ttft_sum_s,
        ttft_count=whole(change.ttft_count),
        queue_sum_s=change.queue_sum_s,
        queue_count=whole(change.queue_count),
        offload_load_bytes=whole(change.offload_load_bytes),
        offload_load_s=change.offload_load_s,
        offload_store_bytes=whole(change.offload_store_bytes),
        offload_store_s=change.offload_store_s,
        tier_read_bytes=list_sources(change.tier_read_bytes),
        tier_write_bytes=list_sources(change.tier_write_bytes),
    )


async def sample_gauges(client: Client, clock: Callable[[], float], take: Callable[[ServerSample], None]) -> None:
    """Read the gauges every second until cancelled, in long runs ever less often; ends where there are none."""
    pace_s, num_taken = _SAMPLE_EVERY_S, 0
    while True:
        began = time.monotonic()
        metrics = await fetch_metrics(client)
        if metrics is None:
            return
        take(ServerSample(clock(), metrics.num_running, metrics.num_waiting, metrics.kv_cache_usage))
        num_taken += 1
        if num_taken % _MAX_SAMPLES_A_PACE == 0:
            pace_s *= 2
        await asyncio.sleep(max(0.0, began + pace_s - time.monotonic()))
