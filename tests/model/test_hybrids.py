from collections import Counter

import pytest
from tests.model.configs import QWEN3_5_9B, text_of

from longreach.errors import InputFileError, UnknownModelError
from longreach.model.catalogue import catalogue_config, load_catalogue_model
from longreach.model.config import parse_model_config
from longreach.model.spec import (
    AttentionLayer,
    GatedDeltaNetLayer,
    KdaLayer,
    LinearAttentionLayer,
    Mamba1Layer,
    Mamba2Layer,
    MlaLayer,
    ModelSpec,
    ShortConvLayer,
)


def _kinds(model: ModelSpec) -> dict[str, int]:
    return dict(Counter(type(layer).__name__ for layer in model.layers))


def _changed(name: str, **change: object) -> dict[str, object]:
    return {**catalogue_config(name), **change}


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("qwen3-next-80b-a3b", {"GatedDeltaNetLayer": 36, "AttentionLayer": 12}),
        ("kimi-linear-48b-a3b", {"KdaLayer": 20, "MlaLayer": 7}),
        ("kimi-k3", {"KdaLayer": 69, "MlaLayer": 24}),
        ("ling-3.0-flash", {"KdaLayer": 35, "MlaLayer": 7}),
        ("ling-2.6-flash", {"LinearAttentionLayer": 28, "MlaLayer": 4}),
        ("granite-4.0-h-small", {"Mamba2Layer": 36, "AttentionLayer": 4}),
        ("granite-4.0-micro", {"AttentionLayer": 40}),
        ("falcon-h1-7b", {"Mamba2Layer": 44, "AttentionLayer": 44}),
        ("nemotron-3-ultra-550b-a55b", {"Mamba2Layer": 48, "AttentionLayer": 12}),
        ("jamba-large-1.7", {"Mamba1Layer": 63, "AttentionLayer": 9}),
        ("lfm2-1.2b", {"ShortConvLayer": 10, "AttentionLayer": 6}),
        ("minimax-text-01", {"LinearAttentionLayer": 70, "AttentionLayer": 10}),
        ("llama-3.1-nemotron-ultra-253b", {"AttentionLayer": 64}),
    ],
)
def test_each_layer_caches_what_its_kind_does(name: str, kinds: dict[str, int]) -> None:
    assert _kinds(load_catalogue_model(name)) == kinds


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("qwen3-next-80b-a3b", GatedDeltaNetLayer(16, 32, 128, 128, conv_kernel=4)),
        ("kimi-linear-48b-a3b", KdaLayer(32, 128, conv_kernel=4)),
        ("kimi-k3", KdaLayer(96, 128, conv_kernel=4, checkpoints_prefill=True)),
        ("ling-3.0-flash", KdaLayer(32, 128, conv_kernel=4)),
        ("ling-2.6-flash", LinearAttentionLayer(32, 128)),
        ("ling-2.6-flash", MlaLayer(32, 512, 64, 128, 128)),
        ("granite-4.0-h-1b", Mamba2Layer(3072, 1, 128, 48, 64, conv_kernel=4)),
        ("falcon-h1-7b", Mamba2Layer(3072, 1, 256, 24, 128, conv_kernel=4)),
        ("nemotron-h-56b", Mamba2Layer(16384, 8, 256, 256, 64, conv_kernel=4)),
        ("nemotron-h-56b", AttentionLayer(64, 8, 128, 128)),
        ("jamba-mini-1.7", Mamba1Layer(8192, 16, conv_kernel=4)),
        ("lfm2-2.6b", ShortConvLayer(2048, conv_kernel=3)),
        ("minimax-m1-80k", LinearAttentionLayer(64, 128)),
        ("llama-3.3-nemotron-super-49b", AttentionLayer(64, 8, 128, 128)),
    ],
)
def test_the_shape_of_a_layer_is_the_published_one(name: str, layer: object) -> None:
    assert layer in load_catalogue_model(name).layers


def test_the_interval_stands_in_for_layer_types() -> None:
    model = parse_model_config(QWEN3_5_9B, "m")
    assert [isinstance(layer, AttentionLayer) for layer in model.layers] == [False, False, False, True] * 8


def test_gated_delta_sizes_are_required() -> None:
    text = {key: value for key, value in text_of(QWEN3_5_9B).items() if key != "linear_num_value_heads"}
    with pytest.raises(InputFileError, match=r"text_config\.linear_num_value_heads: missing"):
        parse_model_config(QWEN3_5_9B | {"text_config": text}, "m")


def test_an_unknown_kind_in_a_hybrid_is_refused() -> None:
    with pytest.raises(UnknownModelError, match="'X'"):
        parse_model_config(_changed("nemotron-3-nano-30b-a3b", hybrid_override_pattern="X" * 52), "m")


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("nemotron-3-nano-30b-a3b", "hybrid_override_pattern"),
        ("kimi-linear-48b-a3b", "linear_attn_config"),
        ("granite-4.0-h-small", "layer_types"),
        ("minimax-text-01", "attn_type_list"),
        ("llama-3.3-nemotron-super-49b", "block_configs"),
        ("jamba-mini-1.7", "attn_layer_period"),
        ("lfm2-1.2b", "layer_types"),
    ],
)
def test_a_hybrid_without_its_pattern_is_malformed(name: str, field: str) -> None:
    with pytest.raises(InputFileError, match=field):
        parse_model_config(_changed(name, **{field: None}), "m")


def test_a_count_of_attention_layers_stands_in_for_an_unpublished_order() -> None:
    model = load_catalogue_model("lfm2-24b-a2b")
    assert _kinds(model) == {"ShortConvLayer": 30, "AttentionLayer": 10}
    assert model.kv_estimate_reason is not None


def test_older_lfm2_configs_list_the_attention_layers() -> None:
    layers = parse_model_config(_changed("lfm2-1.2b", layer_types=None, full_attn_idxs=[2, 5]), "m").layers
    assert [index for index, layer in enumerate(layers) if isinstance(layer, AttentionLayer)] == [2, 5]


def test_an_attention_block_replaced_by_something_else_is_refused() -> None:
    blocks = [{"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 1.0}}] * 79
    changed = {"attention": {"n_heads_in_group": 8, "replace_with_linear": True}, "ffn": {"ffn_mult": 1.0}}
    with pytest.raises(UnknownModelError, match="attention block"):
        parse_model_config(_changed("llama-3.3-nemotron-super-49b", block_configs=[*blocks, changed]), "m")


@pytest.mark.parametrize("attention", [None, 7], ids=["missing", "number"])
def test_an_attention_block_that_is_no_object_is_malformed(attention: object) -> None:
    blocks = [{"attention": attention, "ffn": {"ffn_mult": 1.0}}] * 80
    with pytest.raises(InputFileError, match=r"block_configs\.0\.attention"):
        parse_model_config(_changed("llama-3.3-nemotron-super-49b", block_configs=blocks), "m")


def test_a_model_whose_attention_is_all_removed_has_nothing_to_plan() -> None:
    blocks = [{"attention": {"no_op": True}, "ffn": {"ffn_mult": 1.0}}] * 80
    with pytest.raises(UnknownModelError, match="caches anything"):
        parse_model_config(_changed("llama-3.3-nemotron-super-49b", block_configs=blocks), "m")


def test_an_automatic_mamba_head_is_inner_size_over_heads() -> None:
    layers = parse_model_config(_changed("granite-4.0-h-1b", mamba_d_head="auto"), "m").layers
    assert Mamba2Layer(3072, 1, 128, 48, 64, conv_kernel=4) in layers


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("qwen3.6-27b", "float32"),
        ("qwen3-next-80b-a3b", None),
        ("nemotron-h-8b", "float32"),
        ("kimi-linear-48b-a3b", "float32"),
        ("granite-4.0-h-small", None),
    ],
)
def test_the_state_dtype_is_what_the_engine_forces(name: str, dtype: str | None) -> None:
    assert load_catalogue_model(name).ssm_state_dtype == dtype


@pytest.mark.parametrize(
    ("name", "supported"),
    [("qwen3.6-27b", True), ("deepseek-v3", True), ("minimax-m2", False), ("mimo-v2-flash", True)],
)
def test_mtp_layers_that_vllm_cannot_run_are_marked(name: str, supported: bool) -> None:
    model = load_catalogue_model(name)
    assert model.draft_layers
    assert model.mtp_supported is supported
