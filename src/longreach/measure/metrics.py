"""The server's own counters around one request: read before, read after, and say whether the difference is ours."""

import asyncio
import time

from longreach.engine.metrics import BySource, EngineMetrics, delta, parse_metrics
from longreach.errors import EngineError, ServerError
from longreach.measure.client import Client
from longreach.measure.verify_report import Counters

_SETTLE_S = 2.0  # vLLM counts a request just after it has sent the last chunk
_POLL_S = 0.05
_NO_COUNT = 2**53


async def fetch_metrics(client: Client) -> EngineMetrics | None:
    """One reading; None when the server has no vLLM metrics page."""
    try:
        answer = await client.fetch("/metrics")
    except ServerError:
        return None
    # Most lines of a page are histogram buckets, which nothing here reads: they would hold up the loop for nothing.
    lines = (line for line in answer.body.decode("utf-8", errors="replace").splitlines() if "_bucket{" not in line)
    metrics = parse_metrics("\n".join(lines)) if answer.status == 200 else None
    return metrics if metrics is not None and metrics.num_finished is not None else None


async def fetch_settled_metrics(client: Client, before: EngineMetrics, num_requests: int = 1) -> EngineMetrics | None:
    """A reading in which the requests made since `before` are counted; the last one when that does not come in time."""
    deadline = time.monotonic() + _SETTLE_S
    while True:
        after = await fetch_metrics(client)
        if after is None or time.monotonic() > deadline:
            return after
        if _num_finished(after) - _num_finished(before) >= num_requests and is_idle(after):
            return after
        await asyncio.sleep(_POLL_S)


def count_request(before: EngineMetrics, after: EngineMetrics) -> Counters | None:
    """What was counted between two readings around one request; None when the engine was restarted in between."""
    try:
        change = delta(before, after)
    except EngineError:
        return None
    ours_alone = _num_finished(after) - _num_finished(before) == 1
    return Counters(
        attributed=ours_alone and is_idle(before) and is_idle(after),
        prompt_tokens=whole(change.prompt_tokens),
        prefix_hit_tokens=whole(change.prefix_hit_tokens),
        external_hit_tokens=whole(change.external_hit_tokens),
        hits_by_source=list_sources(change.cached_tokens_by_source),
        preemptions=whole(change.num_preemptions),
        num_drafts=whole(change.num_drafts),
        num_draft_tokens=whole(change.num_draft_tokens),
        num_accepted_tokens=whole(change.num_accepted_tokens),
    )


def is_idle(metrics: EngineMetrics) -> bool:
    """Nothing runs and nothing waits."""
    return not metrics.num_running and not metrics.num_waiting


def _num_finished(metrics: EngineMetrics) -> float:
    return metrics.num_finished or 0.0


def whole(value: float | None) -> int | None:
    """A count as an integer; None also for what counts nothing, as NaN."""
    return round(value) if value is not None and abs(value) < _NO_COUNT else None


def list_sources(by_source: BySource | None) -> tuple[tuple[str, int], ...]:
    """The sources that count anything."""
    return tuple((source, count) for source, tokens in by_source or () if (count := whole(tokens)))
