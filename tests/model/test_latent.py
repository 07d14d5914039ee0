import pytest
from tests.model.configs import DEEPSEEK_V3, without

from longreach.errors import InputFileError
from longreach.model.catalogue import catalogue_config, load_catalogue_model
from longreach.model.config import parse_model_config
from longreach.model.spec import IndexerLayer, KvLayer, MlaLayer

MLA = MlaLayer(num_heads=128, kv_lora_rank=512, rope_head_dim=64, nope_head_dim=128, v_head_dim=128)
V32: dict[str, object] = DEEPSEEK_V3 | {
    "architectures": ["DeepseekV32ForCausalLM"],
    "model_type": "deepseek_v32",
    "index_head_dim": 128,
    "index_n_heads": 64,
    "index_topk": 2048,
}


def _indexed(layers: tuple[KvLayer, ...]) -> list[bool]:
    """For each latent layer whether an indexer follows it."""
    following = (*layers[1:], None)
    return [
        isinstance(after, IndexerLayer)
        for layer, after in zip(layers, following, strict=True)
        if isinstance(layer, MlaLayer)
    ]


def test_deepseek_v3_has_a_latent_a_layer_and_one_for_mtp() -> None:
    model = parse_model_config(DEEPSEEK_V3, "m")
    assert (model.layers, model.draft_layers) == ((MLA,) * 61, (MLA,))


@pytest.mark.parametrize("field", ["kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"])
def test_a_latent_needs_all_its_widths(field: str) -> None:
    with pytest.raises(InputFileError, match=f"{field}: missing"):
        parse_model_config(without(DEEPSEEK_V3, field), "m")


def test_every_layer_of_deepseek_v3_2_has_an_indexer() -> None:
    model = parse_model_config(V32, "m")
    assert model.layers == (MLA, IndexerLayer(128, num_heads=64)) * 61
    assert model.draft_layers == (MLA, IndexerLayer(128, num_heads=64))
    assert model.index_topk == 2048


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"index_topk_freq": 4, "index_skip_topk_offset": 3}, [True] * 3 + [False, False, False, True] * 2),
        ({"index_topk_freq": 2}, [True, True, False, True, False, True]),
        ({"index_topk_pattern": "FSSF"}, [True, False, False, True, True]),
        ({"indexer_types": ["full", "shared"] * 30 + ["full"]}, [True, False] * 5),
    ],
    ids=["frequency-offset", "frequency", "pattern", "types"],
)
def test_some_layers_reuse_an_earlier_index(fields: dict[str, object], expected: list[bool]) -> None:
    layers = parse_model_config(V32 | fields, "m").layers
    assert _indexed(layers)[: len(expected)] == expected


def test_longcat_holds_two_latents_a_layer() -> None:
    model = load_catalogue_model("longcat-flash-chat")
    assert (len(model.layers), len(model.draft_layers), model.num_layers) == (56, 1, 28)


def test_deepseek_v4_keeps_one_vector_for_many_tokens() -> None:
    model = load_catalogue_model("deepseek-v4-flash")
    ratios = [layer.tokens_per_state for layer in model.layers if isinstance(layer, MlaLayer)]
    indexers = [layer for layer in model.layers if isinstance(layer, IndexerLayer)]
    assert (ratios.count(4), ratios.count(128), len(indexers)) == (21, 20, 21)
    assert {layer.tokens_per_state for layer in indexers} == {4}
    assert all(layer.kv_lora_rank + layer.rope_head_dim == 512 for layer in model.layers if isinstance(layer, MlaLayer))


def test_glm_5_3_flash_pools_its_index_keys_and_has_no_rope_part() -> None:
    layers = load_catalogue_model("glm-5.3-flash").layers
    assert IndexerLayer(128, num_heads=32, tokens_per_state=16) in layers
    assert {layer.rope_head_dim for layer in layers if isinstance(layer, MlaLayer)} == {0}


def test_deepseek_v4_needs_its_ratios() -> None:
    config = without(dict(catalogue_config("deepseek-v4-flash")), "compress_ratios")
    with pytest.raises(InputFileError, match="compress_ratios"):
        parse_model_config(config, "m")
