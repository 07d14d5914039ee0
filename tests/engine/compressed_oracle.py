"""The engine's own count of DeepSeek-V4's cache: runs under the engine's Python and imports vLLM only.

stdin: a list of plans; stdout: on the last line, for each plan, blocks, tokens, concurrency and the layers of each group, or the
words of a refusal. The specs are those of vLLM's `models/deepseek_v4` for FlashMLA's rows.
"""

import json
import sys
from types import SimpleNamespace
from typing import Any

import torch
from vllm.v1.core.kv_cache_utils import (
    generate_scheduler_kv_cache_config,
    get_kv_cache_capacity,
    get_kv_cache_configs,
)
from vllm.v1.kv_cache_interface import KVCacheSpec, MLAAttentionSpec, SlidingWindowMLASpec
from vllm.v1.kv_cache_layout import KVCacheLayout

Json = dict[str, Any]


def _rows(ratio: int, width: int, row_bytes: int | None) -> MLAAttentionSpec:
    return MLAAttentionSpec(
        block_size=256,
        num_kv_heads=1,
        head_size=width,
        dtype=torch.uint8,
        tokens_per_state=ratio,
        alignment=576,
        state_content_bytes=row_bytes,
    )


def _state(ratio: int, width: int) -> SlidingWindowMLASpec:
    runs = 2 if ratio == 4 else 1
    return SlidingWindowMLASpec(
        block_size=4 if ratio == 4 else 8,
        num_kv_heads=1,
        head_size=2 * runs * width,
        dtype=torch.float32,
        sliding_window=runs * ratio,
        alignment=576,
    )


def specs(plan: Json) -> dict[str, KVCacheSpec]:
    """Every cache of every layer, as the model class registers them."""
    found: dict[str, KVCacheSpec] = {}
    for index, ratio in enumerate(plan["ratios"]):
        found[f"{index}.window"] = SlidingWindowMLASpec(
            block_size=64,
            num_kv_heads=1,
            head_size=plan["head_dim"],
            dtype=torch.uint8,
            sliding_window=plan["window_tokens"],
            state_content_bytes=584,
            alignment=576,
        )
        if ratio > 1:
            found[f"{index}.vectors"] = _rows(ratio, plan["head_dim"], 584)
            found[f"{index}.state"] = _state(ratio, plan["head_dim"])
        if ratio == 4:
            found[f"{index}.keys"] = _rows(ratio, plan["index_head_dim"] + 4, None)
            found[f"{index}.key_state"] = _state(ratio, plan["index_head_dim"])
    return found


def config(plan: Json) -> Any:
    """As far as the planning code looks at it."""
    return SimpleNamespace(
        model_config=SimpleNamespace(max_model_len=plan["max_model_len"], original_max_model_len=plan["max_model_len"]),
        cache_config=SimpleNamespace(
            num_gpu_blocks_override=None,
            prefix_cache_retention_interval=None,
            enable_prefix_caching=True,
            prefix_match_unit=None,
            mamba_cache_mode="none",
            get_resolved_kv_cache_layout=lambda: KVCacheLayout.BLHNC,
        ),
        parallel_config=SimpleNamespace(
            decode_context_parallel_size=1,
            prefill_context_parallel_size=1,
            pipeline_parallel_size=1,
            tensor_parallel_size=1,
        ),
        scheduler_config=SimpleNamespace(
            disable_hybrid_kv_cache_manager=False, max_num_batched_tokens=plan["max_num_batched_tokens"]
        ),
        attention_config=SimpleNamespace(hisparse_config=None),
        device_config=SimpleNamespace(device_type="cuda"),
        speculative_config=None,
        kv_transfer_config=None,
        num_speculative_tokens=0,
        use_v2_model_runner=True,
        max_in_flight_tokens=2 * plan["max_num_batched_tokens"],
        num_prefill_lookahead_tokens=0,
    )


def answer(plan: Json) -> list[Any] | str:
    """Counts, or the refusal."""
    settings = config(plan)
    try:
        configs = get_kv_cache_configs(settings, [specs(plan)], [plan["available_bytes_per_gpu"]])
    except ValueError as error:
        return str(error)
    scheduler = generate_scheduler_kv_cache_config(configs)
    tokens, concurrency = get_kv_cache_capacity(settings, scheduler)
    sizes = sorted(len(group.layer_names) for group in scheduler.kv_cache_groups)
    return [scheduler.num_blocks, tokens, concurrency, sizes]


if __name__ == "__main__":
    print(json.dumps([answer(plan) for plan in json.load(sys.stdin)]))  # noqa: T201 - the answer's way out
