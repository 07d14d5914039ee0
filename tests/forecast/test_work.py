from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longreach.forecast.work import (
    attention_flops,
    linear_flops,
    num_prefill_chunks,
    prefill_work,
    ring_share,
    state_values,
)
from longreach.model.source import load_model
from longreach.model.spec import (
    AttentionLayer,
    GatedDeltaNetLayer,
    IndexerLayer,
    KdaLayer,
    KvLayer,
    LinearAttentionLayer,
    Mamba1Layer,
    Mamba2Layer,
    MlaLayer,
    ShortConvLayer,
)

FULL = AttentionLayer(num_heads=24, num_kv_heads=4, head_dim=256, v_head_dim=256)
SLIDING = replace(FULL, window_tokens=7)
CHUNKED = replace(FULL, chunk_tokens=5)
MLA = MlaLayer(num_heads=128, kv_lora_rank=512, rope_head_dim=64, nope_head_dim=128, v_head_dim=128)
PAIR_FLOPS = 2 * 24 * 512


def test_the_hybrid_27b_at_750k_is_149_pflop_within_a_percent_and_a_half() -> None:
    work = prefill_work(load_model("qwen3.6-27b"), 750_000, tp_size=4, chunk_tokens=8192)
    assert work.linear_flops is not None
    assert work.attention_flops == pytest.approx(110.6e15, rel=1e-3)
    assert work.linear_flops + work.attention_flops == pytest.approx(149e15, rel=0.015)
    assert work.num_prefill_chunks == 92


def test_the_dense_32b_spends_over_nine_tenths_in_attention_at_750k() -> None:
    work = prefill_work(load_model("qwen3-32b"), 750_000, tp_size=4, chunk_tokens=8192)
    assert work.linear_flops is not None
    assert work.attention_flops == pytest.approx(2 * 64 * 64 * 128 * 750_000**2, rel=1e-5)
    assert work.attention_flops / (work.linear_flops + work.attention_flops) > 0.9


@pytest.mark.parametrize("tokens", [1, 2, 100, 750_000])
def test_a_full_layer_costs_two_q_t_squared(tokens: int) -> None:
    assert attention_flops((FULL,), tokens, None) == pytest.approx(2 * 24 * 256 * tokens * (tokens + 1))


@given(st.integers(1, 40))
def test_bounded_layers_count_the_pairs_they_see(tokens: int) -> None:
    windowed = sum(min(position, 7) for position in range(1, tokens + 1))
    chunked = sum(position % 5 + 1 for position in range(tokens))
    assert attention_flops((SLIDING,), tokens, None) == PAIR_FLOPS * windowed
    assert attention_flops((CHUNKED,), tokens, None) == PAIR_FLOPS * chunked


@given(
    st.integers(0, 10_000),
    st.integers(1, 10_000),
    st.sampled_from([FULL, SLIDING, CHUNKED, MLA]),
    st.sampled_from([None, 64]),
)
def test_a_prompt_in_two_parts_costs_what_it_costs_at_once(
    past: int, tokens: int, layer: KvLayer, topk: int | None
) -> None:
    at_once = attention_flops((layer,), past + tokens, topk)
    parts = attention_flops((layer,), past, topk) + attention_flops((layer,), tokens, topk, past_tokens=past)
    assert parts == pytest.approx(at_once)


def test_latent_attention_prefills_with_its_expanded_heads() -> None:
    assert attention_flops((MLA,), 1000, None) == 2 * 128 * (128 + 64 + 128) * 1000 * 1001 / 2


def test_sparse_attention_is_bounded_and_pays_for_its_indexer() -> None:
    tokens, topk = 100_000, 2048
    pairs = topk * (topk + 1) / 2 + (tokens - topk) * topk
    assert attention_flops((MLA,), tokens, topk) == 2 * 128 * 320 * pairs
    indexer = attention_flops((IndexerLayer(head_dim=128, num_heads=64),), tokens, topk)
    assert indexer == 2 * 64 * 128 * tokens * (tokens + 1) / 2
    assert attention_flops((IndexerLayer(head_dim=128),), tokens, topk) == indexer / 64


def test_a_compressed_cache_offers_one_key_for_several_tokens() -> None:
    compressed = replace(MLA, tokens_per_state=4)
    assert attention_flops((compressed,), 1000, None) == attention_flops((MLA,), 1000, None) / 4
    assert attention_flops((compressed,), 1000, 512) == attention_flops((compressed,), 1000, None)
    assert attention_flops((compressed,), 100_000, 512) == pytest.approx(2 * 128 * 320 * 512 * 100_000, rel=0.02)
    indexer = IndexerLayer(128, 64)
    assert (
        attention_flops((replace(indexer, tokens_per_state=4),), 1000, 512)
        == attention_flops((indexer,), 1000, 512) / 4
    )


def test_layers_that_borrow_a_cache_still_attend() -> None:
    model = load_model("gemma-3n-e4b")
    assert model.borrowing_layers
    own = attention_flops(model.layers, 10_000, None)
    borrowed = attention_flops(model.borrowing_layers, 10_000, None)
    assert prefill_work(model, 10_000, 1, 8192).attention_flops == own + borrowed


@pytest.mark.parametrize(
    ("layer", "values"),
    [
        (GatedDeltaNetLayer(16, 48, 128, 128, 4), 48 * 128 * 128),
        (KdaLayer(32, 128, 4), 32 * 128 * 128),
        (Mamba2Layer(8192, 8, 128, 128, 64, 4), 8192 * 128),
        (Mamba1Layer(8192, 16, 4), 8192 * 16),
        (LinearAttentionLayer(64, 128), 64 * 128 * 128),
        (ShortConvLayer(2048, 3), 0),
        (FULL, 0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_recurrent_layers_hold_a_constant_state(layer: KvLayer, values: int) -> None:
    assert state_values(layer) == values


def test_recurrence_is_linear_in_tokens_and_small_beside_the_weights() -> None:
    model = load_model("qwen3.6-27b")
    active = model.parameters.active
    total = linear_flops(model, 1000)
    assert active is not None
    assert total is not None
    assert 2 * active * 1000 < total < 2.02 * active * 1000
    assert linear_flops(model, 2000) == pytest.approx(2 * total)


def test_kda_and_mamba_recurrences_are_counted() -> None:
    model = load_model("qwen3-4b")
    plain = linear_flops(model, 1) or 0.0
    kda, mamba = KdaLayer(32, 128, 4), Mamba2Layer(8192, 8, 128, 128, 64, 4)
    assert linear_flops(replace(model, layers=(kda,)), 1) == plain + 6 * 32 * 128**2 + 32 * 64 * 10 * 128
    assert linear_flops(replace(model, layers=(mamba,)), 1) == plain + 4 * 8192 * 128


def test_unknown_active_parameters_leave_the_linear_work_unknown() -> None:
    model = load_model("qwen3-4b")
    unknown = replace(model, parameters=replace(model.parameters, active=None))
    assert prefill_work(unknown, 1000, 1, 8192).linear_flops is None


@pytest.mark.parametrize(("tp_size", "share"), [(1, 0.0), (2, 1.0), (4, 1.5), (8, 1.75)])
def test_all_reduce_bytes_follow_the_ring(tp_size: int, share: float) -> None:
    model = load_model("qwen3-32b")
    assert ring_share(tp_size) == share
    assert prefill_work(model, 10_000, tp_size, 8192).all_reduce_bytes == 2 * 64 * 10_000 * 5120 * 2 * share


def test_a_pipeline_stage_exchanges_for_its_own_layers_only() -> None:
    model = load_model("qwen3-32b")
    whole, half = prefill_work(model, 10_000, 2, 8192), prefill_work(model, 10_000, 2, 8192, pp_size=2)
    assert half.all_reduce_bytes == whole.all_reduce_bytes / 2


@pytest.mark.parametrize(("tokens", "chunks"), [(1, 1), (8192, 1), (8193, 2), (750_000, 92)])
def test_chunks_are_counted_up(tokens: int, chunks: int) -> None:
    assert num_prefill_chunks(tokens, 8192) == chunks
