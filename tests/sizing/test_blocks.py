"""The block size that a configuration ends with."""

from dataclasses import replace
from typing import Any

import pytest
from tests.sizing.models import GEMMA_3_27B, KIMI_LINEAR_48B, QWEN3_32B, QWEN35_27B

from longreach.engine.release import get_release
from longreach.errors import UsageError
from longreach.model.spec import ModelSpec
from longreach.sizing.blocks import BlockPlan, plan_blocks, sliding_block_size
from longreach.sizing.formats import get_kv_format
from longreach.sizing.kv_cache import size_kv_cache
from longreach.sizing.values import KvCacheRequest


def plan(model: ModelSpec, *, skipped: bool = False, **changes: Any) -> BlockPlan:
    release = get_release(changes.pop("release", "0.32.0"))
    request = replace(KvCacheRequest(model, release, 100_000, 10**9), **changes)
    return plan_blocks(request, get_kv_format(request.kv_cache_dtype, "bfloat16"), has_skipped_layers=skipped)


@pytest.mark.parametrize(
    ("model", "changes", "expected"),
    [
        pytest.param(QWEN3_32B, {}, 16, id="dense: the default"),
        pytest.param(QWEN3_32B, {"default_block_size": 128}, 128, id="dense: the device's default"),
        pytest.param(QWEN3_32B, {"block_size": 32}, 32, id="dense: as given"),
        pytest.param(QWEN35_27B, {"kv_cache_dtype": "fp8", "tp_size": 4}, 1568, id="hybrid: a page covers a state"),
        pytest.param(
            QWEN35_27B, {"kv_cache_dtype": "fp8", "tp_size": 4, "block_size": 4096}, 4096, id="hybrid: as given"
        ),
        pytest.param(
            QWEN35_27B,
            {"kv_cache_dtype": "fp8", "tp_size": 4, "block_size": 48},
            1584,
            id="hybrid: a multiple of it",
        ),
        pytest.param(KIMI_LINEAR_48B, {}, 1920, id="latent hybrid: a multiple of 128"),
    ],
)
def test_the_block_size_follows_from_the_configuration(
    model: ModelSpec, changes: dict[str, Any], expected: int
) -> None:
    assert plan(model, **changes).block_size == expected


def test_recurrent_pages_are_padded_to_the_attention_page() -> None:
    found = plan(QWEN35_27B, kv_cache_dtype="fp8", tp_size=4)
    assert found.state_page_bytes == 1568 * 512


def test_a_state_that_fills_its_page_is_not_padded() -> None:
    state = 10240 * 3 * 2 + 48 * 128 * 128 * 4  # bytes; KV heads and head_dim chosen so that 16 tokens are one state
    model = replace(QWEN35_27B, num_kv_heads=1, head_dim=state // 16 // 2)
    assert plan(model, kv_cache_dtype="fp8") == BlockPlan(16, 16, state_page_bytes=None)


def test_layers_kept_at_the_models_dtype_widen_the_block() -> None:
    found = plan(QWEN3_32B, skipped=True, kv_cache_dtype="nvfp4", tp_size=4)
    assert (found.block_size, found.skip_page_bytes) == (64, 64 * 288)


def test_nothing_widens_when_the_format_is_the_models_own() -> None:
    assert plan(QWEN3_32B, skipped=True) == BlockPlan(16, 16)


def test_recurrent_blocks_keep_their_size_when_skipped_layers_widen_the_attention() -> None:
    found = plan(QWEN35_27B, skipped=True, kv_cache_dtype="int4_per_token_head", block_size=3200)
    assert found.state_block_size == 3200
    assert found.state_page_bytes == found.block_size * 4 * 264


def test_packed_formats_of_hybrids_align_to_both_pages() -> None:
    found = plan(QWEN35_27B, skipped=True, kv_cache_dtype="turboquant_k8v4")
    assert found.block_size % 16 == 0
    assert found.skip_page_bytes == found.block_size * 4 * 388


def test_a_widened_block_must_suit_the_kernel() -> None:
    with pytest.raises(UsageError, match="--block-size 48"):
        plan(QWEN3_32B, skipped=True, kv_cache_dtype="nvfp4", block_size=48, min_kernel_block_size=32)


@pytest.mark.parametrize(
    ("kv_cache_dtype", "page", "expected"),
    [("auto", 100_000, 96), ("turboquant_k8v4", 100_000, 64), ("turboquant_k8v4", 5, 16), ("auto", 5, 16)],
)
def test_a_sliding_layer_takes_the_largest_block_that_fits_the_shared_page(
    kv_cache_dtype: str, page: int, expected: int
) -> None:
    blocks = BlockPlan(16, 16, skip_page_bytes=page)
    assert sliding_block_size(get_kv_format(kv_cache_dtype, "bfloat16"), 1000, blocks, kernel=16) == expected


@pytest.mark.parametrize(("model", "names"), [(GEMMA_3_27B, ("sliding_window",)), (QWEN3_32B, ("0", "63"))])
def test_layers_kept_at_the_models_dtype_cost_memory(model: ModelSpec, names: tuple[str, ...]) -> None:
    quantized = KvCacheRequest(model, get_release("0.32.0"), 100_000, 2**34, kv_cache_dtype="fp8")
    spared = replace(quantized, kv_cache_dtype_skip_layers=names)
    assert size_kv_cache(spared).kv_capacity_tokens < size_kv_cache(quantized).kv_capacity_tokens


def test_a_latent_hybrid_with_skipped_layers_follows_its_own_rule() -> None:
    packed = plan(KIMI_LINEAR_48B, skipped=True, kv_cache_dtype="int4_per_token_head", block_size=16)
    plain = plan(KIMI_LINEAR_48B, skipped=True, kv_cache_dtype="fp8", block_size=16)
    assert packed.skip_page_bytes == packed.block_size * 296
    assert plain.skip_page_bytes == plain.block_size * 1152


def test_a_format_without_a_formula_for_the_model_is_refused() -> None:
    with pytest.raises(UsageError, match="fp8_ds_mla"):
        plan(QWEN35_27B, kv_cache_dtype="fp8_ds_mla")
