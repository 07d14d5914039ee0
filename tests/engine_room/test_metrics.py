"""Metrics are read by purpose, under the name that the release has."""

from dataclasses import fields, replace

import pytest

from longreach.engine.metric_names import METRIC_NAMES, MetricName
from longreach.engine.metrics import EngineMetrics, delta, parse_metrics
from longreach.errors import EngineError

PAGE = """
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 1.0
vllm:num_requests_running{engine="1",model_name="m"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 1803.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 1024.0
vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="host"} 8032.0
vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="disk"} 64.0
vllm:prompt_tokens_cached_by_source_total{engine="1",model_name="m",source="host"} 1.0
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 21.0
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 42.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 1.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 3.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 2.5
vllm:kv_offload_load_bytes_total{engine="0",model_name="m"} 8e6
vllm:kv_offload_tiering_read_bytes_total{engine="0",model_name="m",tier="1:fs"} 8.2e6
vllm:cache_config_info{block_size="128",cache_dtype="auto",engine="0",gpu_memory_utilization="0.92",\
kv_cache_max_concurrency="2.0",kv_cache_memory_bytes="67108864",kv_cache_size_tokens="131072",num_gpu_blocks="1024",\
sliding_window="None"} 1.0
"""


def test_engines_add_up_and_the_fullest_one_counts() -> None:
    metrics = parse_metrics(PAGE)
    assert (metrics.num_running, metrics.kv_cache_usage) == (3.0, 0.75)
    assert metrics.cached_tokens_by_source == (("disk", 64.0), ("host", 8033.0))
    assert (metrics.ttft_sum_s, metrics.ttft_count) == (2.5, 3.0)
    assert (metrics.offload_load_bytes, metrics.tier_read_bytes) == (8e6, (("1:fs", 8.2e6),))


def test_capacity_is_read_from_the_configuration_labels() -> None:
    (cache,) = parse_metrics(PAGE).cache
    assert (cache.engine, cache.kv_cache_size_tokens, cache.kv_cache_max_concurrency) == ("0", 131_072, 2.0)
    assert (cache.block_size, cache.num_gpu_blocks, cache.kv_cache_memory_bytes) == (128, 1024, 67_108_864)
    assert (cache.cache_dtype, cache.gpu_memory_utilization) == ("auto", 0.92)
    assert dict(cache.labels)["sliding_window"] == "None"


def test_labels_that_an_older_release_lacks_are_none() -> None:
    (cache,) = parse_metrics('vllm:cache_config_info{block_size="16",num_gpu_blocks="None"} 1.0').cache
    assert (cache.block_size, cache.num_gpu_blocks, cache.kv_cache_size_tokens, cache.cache_dtype) == (
        16,
        None,
        None,
        None,
    )


@pytest.mark.parametrize("label", ["nan", "inf", "-inf", "1e400", "", "many"])
def test_a_label_that_is_no_number_is_none(label: str) -> None:
    (cache,) = parse_metrics(f'vllm:cache_config_info{{block_size="{label}",kv_cache_size_tokens="{label}"}} 1.0').cache
    assert (cache.block_size, cache.kv_cache_size_tokens) == (None, None)


def test_an_absent_family_is_none_not_zero() -> None:
    metrics = parse_metrics("vllm:num_requests_running 0\n")
    assert metrics == EngineMetrics(num_running=0.0)
    assert (metrics.acceptance_rate, metrics.mean_acceptance_length) == (None, None)


def test_acceptance_comes_from_the_counters() -> None:
    metrics = parse_metrics(PAGE)
    assert metrics.acceptance_rate == pytest.approx(1 / 42)
    assert metrics.mean_acceptance_length == pytest.approx(1 + 1 / 21)


@pytest.mark.parametrize("row", METRIC_NAMES, ids=lambda row: row.name)
def test_every_name_of_the_table_fills_its_field(row: MetricName) -> None:
    label = f'{{{row.by}="x"}}' if row.by else ""
    suffix = "_total" if row.kind == "counter" and not row.name.endswith(("_sum", "_count")) else ""
    metrics = parse_metrics(f"{row.name}{suffix}{label} 5\n")
    assert getattr(metrics, row.field) == ((("x", 5.0),) if label else 5.0)


def test_the_newest_name_wins_where_a_page_has_both() -> None:
    assert parse_metrics("vllm:gpu_cache_usage_perc 0.1\nvllm:kv_cache_usage_perc 0.2\n").kv_cache_usage == 0.2


def test_the_table_names_fields_that_exist() -> None:
    known = {field.name for field in fields(EngineMetrics)} - {"cache"}
    assert {row.field for row in METRIC_NAMES} == known


def test_delta_subtracts_counters_and_keeps_gauges() -> None:
    before = parse_metrics(PAGE)
    after = replace(
        before, prompt_tokens=100.0, num_running=7.0, kv_cache_usage=0.5, prefix_hit_tokens=2048.0,
        cached_tokens_by_source=(("device", 5.0), ("disk", 64.0), ("host", 9000.0)),
    )  # fmt: skip
    change = delta(before, after)
    assert (change.prompt_tokens, change.prefix_hit_tokens, change.ttft_count) == (100.0, 1024.0, 0.0)
    assert (change.num_running, change.kv_cache_usage) == (7.0, 0.5)
    assert change.cached_tokens_by_source == (("device", 5.0), ("disk", 0.0), ("host", 967.0))
    assert change.itl_count is None
    assert change.cache == after.cache


def test_a_counter_that_runs_backwards_means_a_restart() -> None:
    before = EngineMetrics(prompt_tokens=10.0)
    with pytest.raises(EngineError, match="prompt_tokens ran backwards") as caught:
        delta(before, EngineMetrics(prompt_tokens=3.0))
    assert "it was 10 and is 3" in caught.value.why
