from dataclasses import replace
from typing import get_args

import pytest

from longreach.forecast.traffic import (
    active_weight_bytes,
    attended_bytes_per_gpu,
    cache_bytes_per_gpu,
    head_bytes,
    state_bytes_per_gpu,
)
from longreach.model.source import load_model
from longreach.model.spec import CrossAttentionLayer, MlaLayer, QuantizationName


@pytest.mark.parametrize(
    ("name", "bytes_per_token"),
    [
        ("qwen3-32b", 131_072),
        ("qwen3-8b", 73_728),
        ("llama-3.1-70b", 163_840),
        ("gemma-3-27b", 40_960),
        ("gpt-oss-20b", 12_288),
        ("deepseek-v3", 35_136),
        ("qwen3-next-80b-a3b", 12_288),
        ("qwen3.6-27b", 32_768),
    ],
)
def test_a_token_adds_the_known_bytes_at_fp8(name: str, bytes_per_token: int) -> None:
    model = load_model(name)
    far, farther = (cache_bytes_per_gpu(model, "fp8_e4m3", 1, tokens) for tokens in (500_000, 500_001))
    assert farther - far == bytes_per_token


def test_sliding_layers_stop_growing_at_their_window() -> None:
    model = load_model("gemma-3-27b")
    sliding = 52 * 1024 * 2 * 16 * 128
    assert cache_bytes_per_gpu(model, "fp8_e4m3", 1, 100_000) == 100_000 * 40_960 + sliding


@pytest.mark.parametrize(
    ("name", "tp_size", "share"), [("qwen3-32b", 4, 1 / 4), ("qwen3-next-80b-a3b", 4, 1 / 2), ("deepseek-v3", 8, 1)]
)
def test_heads_split_until_they_replicate_and_latents_never_split(name: str, tp_size: int, share: float) -> None:
    model = load_model(name)
    whole, split = (cache_bytes_per_gpu(model, "fp8_e4m3", tp, 10_000) for tp in (1, tp_size))
    assert split == whole * share


def test_sparse_attention_reads_its_top_k_and_all_indexer_keys() -> None:
    model = load_model("deepseek-v3.2")
    assert model.index_topk == 2048
    read = attended_bytes_per_gpu(model, "fp8_e4m3", 8, 100_000)
    assert read == 61 * (2048 * 576 + 100_000 * 132)
    assert cache_bytes_per_gpu(model, "fp8_e4m3", 8, 100_000) == 61 * 100_000 * (576 + 132)


def test_a_compressed_cache_keeps_one_vector_for_several_tokens() -> None:
    latent = MlaLayer(64, 448, 64, 448, 512)
    plain = replace(load_model("qwen3-32b"), layers=(latent,))
    compressed = replace(plain, layers=(replace(latent, tokens_per_state=128),))
    whole, part = (cache_bytes_per_gpu(model, "bfloat16", 1, 128_000) for model in (plain, compressed))
    assert (whole, part) == (128_000 * 1024, 1000 * 1024)
    assert attended_bytes_per_gpu(replace(compressed, index_topk=10), "bfloat16", 1, 128_000) == 10 * 1024


def test_a_borrowed_cache_is_read_and_not_held() -> None:
    model = load_model("gemma-3n-e4b")
    held, read = cache_bytes_per_gpu(model, "auto", 1, 1000), attended_bytes_per_gpu(model, "auto", 1, 1000)
    assert held < read


def test_dense_attention_reads_what_it_holds() -> None:
    model = load_model("qwen3-32b")
    assert attended_bytes_per_gpu(model, "auto", 2, 5000) == cache_bytes_per_gpu(model, "auto", 2, 5000)


def test_an_encoders_cache_does_not_grow_with_the_prompt() -> None:
    model = replace(load_model("qwen3-32b"), layers=(CrossAttentionLayer(20, 64, 1500),))
    assert (
        cache_bytes_per_gpu(model, "auto", 1, 10)
        == cache_bytes_per_gpu(model, "auto", 1, 10_000)
        == 1500 * 20 * 128 * 2
    )


@pytest.mark.parametrize(
    ("quantization", "low", "high"),
    [("none", 2, 2), ("fp8", 1, 1.1), ("w4a16", 0.5, 0.65), ("nvfp4", 0.5, 0.8), ("other", 0.25, 2)],
)
def test_weights_weigh_what_their_format_says(quantization: QuantizationName, low: float, high: float) -> None:
    model = load_model("qwen3-32b")
    model = replace(model, weights=replace(model.weights, quantization=quantization, total_bytes=None))
    active = model.parameters.active
    assert active is not None
    assert active_weight_bytes(model) == pytest.approx((active * low, active * high))


@pytest.mark.parametrize("quantization", get_args(QuantizationName))
def test_every_quantization_has_a_weight(quantization: QuantizationName) -> None:
    model = load_model("qwen3-30b-a3b")
    found = active_weight_bytes(replace(model, weights=replace(model.weights, quantization=quantization)))
    assert found is not None
    assert 0 < found[0] <= found[1]


def test_known_checkpoint_bytes_sharpen_the_upper_end() -> None:
    model = load_model("qwen3-32b")
    size = int(2 * model.parameters.embedding + 0.56 * 31_206_298_624)
    sharper = active_weight_bytes(
        replace(model, weights=replace(model.weights, quantization="w4a16", total_bytes=size))
    )
    assert sharper is not None
    assert sharper[1] / sharper[0] == pytest.approx(1.12, rel=0.01)


def test_unknown_active_parameters_leave_the_bytes_unknown() -> None:
    model = load_model("qwen3-32b")
    assert active_weight_bytes(replace(model, parameters=replace(model.parameters, active=None))) is None


def test_state_is_split_over_gpus_and_absent_in_dense_models() -> None:
    low, high = state_bytes_per_gpu(load_model("qwen3.6-27b"), 4)
    assert (low, high) == (48 * 48 * 128 * 128 * 2 / 4, 48 * 48 * 128 * 128 * 4 / 4)
    assert state_bytes_per_gpu(load_model("qwen3-32b"), 4) == (0, 0)


def test_the_head_is_one_matrix_of_the_vocabulary() -> None:
    assert head_bytes(load_model("qwen3-32b")) == 151_936 * 5120 * 2
