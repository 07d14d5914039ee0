"""CPU and disk tiers: chunks, tokens, and what they cannot do."""

from dataclasses import replace

import pytest
from tests.sizing.models import DEEPSEEK_V3, GEMMA_3_27B, KIMI_LINEAR_48B, NEMOTRON_H_8B, QWEN3_32B, QWEN35_27B, spec

from longreach.engine.release import get_release
from longreach.errors import UsageError
from longreach.model.spec import ModelSpec
from longreach.sizing.kv_cache import size_kv_cache
from longreach.sizing.offload import chunk_bytes_per_engine, size_cpu_tier, size_disk_tier
from longreach.sizing.values import KvCacheRequest, TierCapacity
from longreach.units import GIB

FP8_TP4 = KvCacheRequest(QWEN3_32B, get_release("0.32.0"), 750_000, 10 * GIB, tp_size=4, kv_cache_dtype="fp8_e4m3")
HYBRID = replace(FP8_TP4, model=QWEN35_27B)
HYBRID_MTP = replace(HYBRID, use_draft_layers=True, num_speculative_tokens=3)
LATENT_TP8 = replace(
    FP8_TP4, model=DEEPSEEK_V3, tp_size=8, kv_cache_dtype="auto", default_block_size=64, max_model_len=163840
)


def cpu_tier(request: KvCacheRequest, size_bytes: int = 200 * GIB, blocks_per_chunk: int = 1) -> TierCapacity:
    return size_cpu_tier(size_kv_cache(request), request, size_bytes, blocks_per_chunk)


@pytest.mark.parametrize(
    ("request_", "chunk_bytes", "num_chunks", "tokens", "certainty"),
    [
        pytest.param(FP8_TP4, 2_097_152, 102_400, 1_638_400, "exact", id="dense, TP 4"),
        pytest.param(HYBRID, 51_380_224, 4_179, 6_552_672, "bound", id="gated-delta hybrid: at most"),
        pytest.param(
            replace(HYBRID_MTP, num_speculative_tokens=1), 55_148_544, 3_893, 3_893 * 1584, "bound", id="with MTP"
        ),
        pytest.param(LATENT_TP8, 4_497_408, 47_749, 3_055_936, "exact", id="one copy of a latent for all GPUs"),
    ],
)
def test_a_cpu_tier_of_200_gib_holds_whole_chunks(
    request_: KvCacheRequest, chunk_bytes: int, num_chunks: int, tokens: int, certainty: str
) -> None:
    tier = cpu_tier(request_)
    assert (tier.chunk_bytes, tier.num_chunks, tier.capacity_tokens) == (chunk_bytes, num_chunks, tokens)
    assert tier.certainty == certainty


def test_a_tier_never_lets_a_longer_request_start() -> None:
    capacity = size_kv_cache(FP8_TP4)
    assert not capacity.starts
    assert cpu_tier(FP8_TP4).capacity_tokens == 1_638_400  # more than the request needs, and of no help to it
    assert "other requests" in cpu_tier(FP8_TP4).note


def test_larger_chunks_hold_as_many_blocks() -> None:
    assert cpu_tier(FP8_TP4, blocks_per_chunk=4).capacity_tokens == 1_638_400


def test_chunks_are_padded_to_whole_pages() -> None:
    odd = replace(
        FP8_TP4, model=spec("odd", QWEN3_32B.layers[:3]), tp_size=1, kv_cache_dtype="int4_per_token_head", block_size=1
    )
    assert chunk_bytes_per_engine(size_kv_cache(odd), odd) == 4096  # 3 x 1,088 bytes
    assert chunk_bytes_per_engine(size_kv_cache(odd), odd, blocks_per_chunk=4) == 16384


@pytest.mark.parametrize(
    ("changes", "copies"),
    [({}, 1), ({"dcp_size": 8}, 8), ({"pp_size": 2}, 16), ({"model": KIMI_LINEAR_48B}, 8)],
    ids=["TP alone", "latents shared out by DCP", "with a pipeline", "states beside latents"],
)
def test_latents_are_stored_once_only_under_tp_alone(changes: dict[str, int | ModelSpec], copies: int) -> None:
    request = replace(LATENT_TP8, **changes)  # type: ignore[arg-type]
    capacity = size_kv_cache(request)
    assert chunk_bytes_per_engine(capacity, request) == -(-capacity.bytes_per_block * copies // 4096) * 4096


def test_dcp_spreads_a_block_over_more_tokens() -> None:
    request = replace(LATENT_TP8, dcp_size=8)
    tier = cpu_tier(request)
    assert tier.num_chunks is not None
    assert tier.capacity_tokens == tier.num_chunks * 64 * 8


def test_several_full_attention_groups_share_the_chunks() -> None:
    request = replace(FP8_TP4, model=spec("more-full", GEMMA_3_27B.layers[:1] + QWEN3_32B.layers[:2]))
    tier = cpu_tier(request)
    assert tier.num_chunks is not None
    assert tier.capacity_tokens == tier.num_chunks * 32 // 2  # two groups, blocks doubled to the window's page


def test_models_without_growing_layers_have_no_token_count() -> None:
    states = replace(FP8_TP4, model=spec("states", NEMOTRON_H_8B.layers[:3]), kv_cache_dtype="auto")
    windows = replace(FP8_TP4, model=spec("windows", [*GEMMA_3_27B.layers[:2], *NEMOTRON_H_8B.layers[:2]]))
    assert cpu_tier(states).capacity_tokens is None
    assert cpu_tier(windows).capacity_tokens is None


def test_a_tier_smaller_than_a_chunk_is_refused() -> None:
    with pytest.raises(UsageError, match="smaller than one chunk") as raised:
        cpu_tier(HYBRID, size_bytes=10**6)
    assert "51380224" in raised.value.fix


def test_hybrids_offload_only_with_prefix_caching() -> None:
    with pytest.raises(UsageError, match="needs prefix caching"):
        cpu_tier(replace(HYBRID, prefix_caching=False))


def test_several_groups_offload_from_0_21_on() -> None:
    older = replace(HYBRID, release=get_release("0.20.2"), prefix_caching=True)
    with pytest.raises(UsageError, match=r"vLLM 0\.20\.2 has no offload tier for this model"):
        cpu_tier(older)
    assert cpu_tier(replace(older, release=get_release("0.21.0"))).num_chunks


def test_chunks_are_not_padded_before_0_23() -> None:
    three_layers = replace(FP8_TP4, model=spec("odd", QWEN3_32B.layers[:3]), tp_size=1, block_size=1)
    sizes = {}
    for version in ("0.22.1", "0.23.0"):
        odd = replace(three_layers, release=get_release(version), kv_cache_dtype="int4_per_token_head")
        sizes[version] = chunk_bytes_per_engine(size_kv_cache(odd), odd)
    assert sizes == {"0.22.1": 3264, "0.23.0": 4096}


def test_a_chunk_holds_at_least_one_block() -> None:
    with pytest.raises(UsageError, match="blocks per chunk 0"):
        cpu_tier(FP8_TP4, blocks_per_chunk=0)


def test_a_disk_tier_is_as_large_as_its_owner_lets_it_grow() -> None:
    capacity = size_kv_cache(FP8_TP4)
    bounded, unbounded = size_disk_tier(capacity, FP8_TP4, 10**12), size_disk_tier(capacity, FP8_TP4, None)
    assert (bounded.num_chunks, bounded.capacity_tokens) == (10**12 // 2_097_152, 10**12 // 2_097_152 * 16)
    assert (unbounded.capacity_tokens, unbounded.certainty, unbounded.chunk_bytes) == (None, "unknown", 2_097_152)
    assert "never deletes" in unbounded.note
