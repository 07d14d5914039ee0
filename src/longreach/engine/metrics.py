"""An engine's /metrics page by purpose, whatever the release calls it. Pure.

Counters are summed over engines (data-parallel replicas). A family that the page does not have is None: the feature is
off, or the release is older than the family.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from longreach.engine.metric_names import METRIC_NAMES, MetricName
from longreach.engine.prometheus import Sample, parse_samples
from longreach.errors import EngineError

BySource = tuple[tuple[str, float], ...]
"""Values by the label that splits them (source, tier, position), sorted by it."""


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """Labels of `vllm:cache_config_info` of one engine: what the log prints about capacity, exact and without a log."""

    engine: str
    labels: tuple[tuple[str, str], ...]
    block_size: int | None
    num_gpu_blocks: int | None
    cache_dtype: str | None
    gpu_memory_utilization: float | None
    kv_cache_memory_bytes: int | None
    kv_cache_size_tokens: int | None  # from 0.24
    kv_cache_max_concurrency: float | None  # from 0.24


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """One reading. Counters run from the engine's start; times in seconds, shares 0..1."""

    num_running: float | None = None
    num_waiting: float | None = None
    kv_cache_usage: float | None = None  # of the fullest engine
    prefix_query_tokens: float | None = None
    prefix_hit_tokens: float | None = None
    external_query_tokens: float | None = None
    external_hit_tokens: float | None = None
    prompt_tokens: float | None = None
    prompt_tokens_by_source: BySource | None = None  # local_compute, local_cache_hit, external_kv_transfer
    cached_tokens_by_source: BySource | None = None  # device, host, disk, p2p, external_unspecified
    generation_tokens: float | None = None
    num_finished: float | None = None
    num_preemptions: float | None = None
    num_drafts: float | None = None
    num_draft_tokens: float | None = None
    num_accepted_tokens: float | None = None
    accepted_tokens_by_position: BySource | None = None
    ttft_sum_s: float | None = None
    ttft_count: float | None = None
    itl_sum_s: float | None = None
    itl_count: float | None = None
    queue_sum_s: float | None = None  # of finished requests, from arrival at the engine to being scheduled
    queue_count: float | None = None
    e2e_sum_s: float | None = None
    e2e_count: float | None = None
    offload_load_bytes: float | None = None
    offload_load_s: float | None = None
    offload_store_bytes: float | None = None
    offload_store_s: float | None = None
    tier_read_bytes: BySource | None = None  # by tier, "1:fs"
    tier_write_bytes: BySource | None = None
    tier_query_chunks: BySource | None = None
    tier_hit_chunks: BySource | None = None
    cache: tuple[CacheConfig, ...] = ()

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted over drafted tokens; None without drafts."""
        if not self.num_draft_tokens or self.num_accepted_tokens is None:
            return None
        return self.num_accepted_tokens / self.num_draft_tokens

    @property
    def mean_acceptance_length(self) -> float | None:
        """Tokens a step yields: one, and the accepted drafts."""
        if not self.num_drafts or self.num_accepted_tokens is None:
            return None
        return 1 + self.num_accepted_tokens / self.num_drafts


_LARGEST = 2**63


def parse_metrics(text: str) -> EngineMetrics:
    """Read a page; of a field's names the newest that the page has counts. Never fails: what is absent is None."""
    by_name: dict[str, list[Sample]] = defaultdict(list)
    for sample in parse_samples(text):
        by_name[sample.name.removesuffix("_total")].append(sample)
    values: dict[str, object] = {}
    for row in METRIC_NAMES:
        if row.field not in values and row.name in by_name:
            values[row.field] = _read(row, by_name[row.name])
    cache = tuple(_read_cache_config(sample) for sample in by_name["vllm:cache_config_info"])
    return EngineMetrics(**values, cache=cache)  # type: ignore[arg-type] # each row's kind fits its field, as tests prove


def delta(before: EngineMetrics, after: EngineMetrics) -> EngineMetrics:
    """What happened between two readings: counters subtracted, gauges and configuration from `after`.

    A counter that `before` lacks started at 0. EngineError when one ran backwards: the engine was restarted.
    """
    values: dict[str, object] = {}
    for field in {row.field for row in METRIC_NAMES}:
        kind = next(row.kind for row in METRIC_NAMES if row.field == field)
        old, new = getattr(before, field), getattr(after, field)
        values[field] = new if kind != "counter" or new is None else _difference(field, old, new)
    return EngineMetrics(**values, cache=after.cache)  # type: ignore[arg-type] # same fields, same types


def _read(row: MetricName, samples: Sequence[Sample]) -> float | BySource:
    if row.kind == "share":
        return max(sample.value for sample in samples)
    if row.by is None:
        return sum(sample.value for sample in samples)
    parts: dict[str, float] = defaultdict(float)
    for sample in samples:
        parts[sample.labels.get(row.by, "")] += sample.value
    return tuple(sorted(parts.items()))


def _difference(field: str, old: float | BySource | None, new: float | BySource) -> float | BySource:
    if isinstance(new, tuple):
        start = dict(old) if isinstance(old, tuple) else {}
        return tuple((part, _subtract(field, start.get(part, 0.0), value)) for part, value in new)
    return _subtract(field, old if isinstance(old, float) else 0.0, new)


def _subtract(field: str, old: float, new: float) -> float:
    if new < old:
        raise EngineError(
            f"the engine's counter {field} ran backwards",
            f"it was {old:g} and is {new:g}: the engine was restarted between the two readings",
            "measure again without restarting the engine",
        )
    return new - old


def _read_cache_config(sample: Sample) -> CacheConfig:
    labels = sample.labels
    return CacheConfig(
        engine=labels.get("engine", ""),
        labels=tuple(sorted(labels.items())),
        block_size=_whole(labels.get("block_size")),
        num_gpu_blocks=_whole(labels.get("num_gpu_blocks")),
        cache_dtype=labels.get("cache_dtype"),
        gpu_memory_utilization=_number(labels.get("gpu_memory_utilization")),
        kv_cache_memory_bytes=_whole(labels.get("kv_cache_memory_bytes")),
        kv_cache_size_tokens=_whole(labels.get("kv_cache_size_tokens")),
        kv_cache_max_concurrency=_number(labels.get("kv_cache_max_concurrency")),
    )


def _number(text: str | None) -> float | None:
    """A label's number; None for a missing label, for the text `None`, and for what measures nothing (`nan`, `inf`)."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if abs(number) < _LARGEST else None


def _whole(text: str | None) -> int | None:
    number = _number(text)
    return None if number is None else int(number)
