"""What each release calls its metrics, read in the source of 0.8.5 to 0.33.0. Pure."""

from dataclasses import dataclass
from typing import Literal

MetricKind = Literal["counter", "gauge", "share"]
"""How engines combine: counters and gauges add up; of shares (0..1) the largest counts. Only counters have a difference."""


@dataclass(frozen=True, slots=True)
class MetricName:
    """One name that a field of EngineMetrics has or had. `by` splits the samples by that label."""

    field: str
    name: str  # without `_total`
    kind: MetricKind
    by: str | None = None
    first: str | None = None  # None: as far back as was read, 0.8.5
    last: str | None = None


def _counter(
    field: str, name: str, first: str | None = None, last: str | None = None, by: str | None = None
) -> MetricName:
    return MetricName(field, f"vllm:{name}", "counter", by, first, last)


def _share(field: str, name: str, first: str | None = None, last: str | None = None) -> MetricName:
    return MetricName(field, f"vllm:{name}", "share", None, first, last)


METRIC_NAMES: tuple[MetricName, ...] = (
    MetricName("num_running", "vllm:num_requests_running", "gauge"),
    MetricName("num_waiting", "vllm:num_requests_waiting", "gauge"),
    _share("kv_cache_usage", "kv_cache_usage_perc", "0.9.2"),
    _share("kv_cache_usage", "gpu_cache_usage_perc", last="0.11.2"),
    _counter("prefix_query_tokens", "prefix_cache_queries", "0.9.2"),
    _counter("prefix_query_tokens", "gpu_prefix_cache_queries", last="0.11.2"),
    _counter("prefix_hit_tokens", "prefix_cache_hits", "0.9.2"),
    _counter("prefix_hit_tokens", "gpu_prefix_cache_hits", last="0.11.2"),
    _counter("external_query_tokens", "external_prefix_cache_queries", "0.11.1"),
    _counter("external_hit_tokens", "external_prefix_cache_hits", "0.11.1"),
    _counter("prompt_tokens", "prompt_tokens"),
    _counter("prompt_tokens_by_source", "prompt_tokens_by_source", "0.16.0", by="source"),
    _counter("cached_tokens_by_source", "prompt_tokens_cached_by_source", "0.32.0", by="source"),
    _counter("generation_tokens", "generation_tokens"),
    _counter("num_finished", "request_success"),
    _counter("num_preemptions", "num_preemptions"),
    _counter("num_drafts", "spec_decode_num_drafts"),
    _counter("num_draft_tokens", "spec_decode_num_draft_tokens"),
    _counter("num_accepted_tokens", "spec_decode_num_accepted_tokens"),
    _counter("accepted_tokens_by_position", "spec_decode_num_accepted_tokens_per_pos", by="position"),
    _counter("ttft_sum_s", "time_to_first_token_seconds_sum"),
    _counter("ttft_count", "time_to_first_token_seconds_count"),
    _counter("itl_sum_s", "inter_token_latency_seconds_sum", "0.10.2"),
    _counter("itl_sum_s", "time_per_output_token_seconds_sum", last="0.14.0"),
    _counter("itl_count", "inter_token_latency_seconds_count", "0.10.2"),
    _counter("itl_count", "time_per_output_token_seconds_count", last="0.14.0"),
    _counter("queue_sum_s", "request_queue_time_seconds_sum"),
    _counter("queue_count", "request_queue_time_seconds_count"),
    _counter("e2e_sum_s", "e2e_request_latency_seconds_sum"),
    _counter("e2e_count", "e2e_request_latency_seconds_count"),
    _counter("offload_load_bytes", "kv_offload_load_bytes", "0.24.0"),
    _counter("offload_load_s", "kv_offload_load_time", "0.24.0"),
    _counter("offload_store_bytes", "kv_offload_store_bytes", "0.24.0"),
    _counter("offload_store_s", "kv_offload_store_time", "0.24.0"),
    _counter("tier_read_bytes", "kv_offload_tiering_read_bytes", "0.28.0", by="tier"),
    _counter("tier_write_bytes", "kv_offload_tiering_write_bytes", "0.28.0", by="tier"),
    _counter("tier_query_chunks", "kv_offload_tiering_chunk_queries", "0.28.0", by="tier"),
    _counter("tier_hit_chunks", "kv_offload_tiering_chunk_hits", "0.28.0", by="tier"),
)
"""Every name, newest first for each field."""
