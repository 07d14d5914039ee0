import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.configs import DEEPSEEK_V3, QWEN3_5_9B, QWEN3_8B, without

from longreach.errors import InputFileError, LongreachError, UnknownModelError
from longreach.model.catalogue import catalogue_config, catalogue_names, load_catalogue_model
from longreach.model.config import parse_model_config
from longreach.model.spec import AttentionLayer, CrossAttentionLayer, ModelSpec

CORPUS = Path(__file__).parents[1] / "corpus" / "configs"

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"num_hidden_layers": 0}, "num_hidden_layers: found 0"),
        ({"num_hidden_layers": -3}, "num_hidden_layers: found -3"),
        ({"num_hidden_layers": "64"}, "num_hidden_layers: found '64'"),
        ({"num_hidden_layers": True}, "num_hidden_layers: found True"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers: found 1000000000"),
        ({"num_attention_heads": 0}, "num_attention_heads: found 0"),
        ({"num_key_value_heads": 5}, "num_key_value_heads: found 5, expected a divisor of the 32 heads"),
        ({"head_dim": [128]}, "head_dim: found [128]"),
        ({"hidden_size": 12.5}, "hidden_size: found 12.5"),
        ({"vocab_size": {}}, "vocab_size: found {}"),
        ({"max_position_embeddings": float("inf")}, "max_position_embeddings: found inf"),
        ({"rope_scaling": ["yarn"]}, "rope_scaling: found ['yarn'], expected an object"),
        ({"rope_theta": "1e6"}, "rope_theta: found '1e6'"),
        ({"layer_types": ["full_attention"] * 35}, "layer_types: 35 entries, expected one for each of 36 layers"),
        ({"layer_types": ["full_attention"] * 37}, "layer_types: 37 entries, expected one for each of 36 layers"),
        ({"layer_types": "full_attention"}, "layer_types: found 'full_attention', expected a list of strings"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings: found 'no', expected true or false"),
        ({"architectures": "Qwen3ForCausalLM"}, "architectures: found 'Qwen3ForCausalLM', expected a list of strings"),
        ({"torch_dtype": 16}, "torch_dtype: found 16, expected a string"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_malformed_field_is_named_with_what_was_found(change: dict[str, object], named: str) -> None:
    with pytest.raises(InputFileError) as caught:
        parse_model_config(QWEN3_8B | change, "m")
    assert named in caught.value.why


@pytest.mark.parametrize(
    "missing", ["num_hidden_layers", "num_attention_heads", "hidden_size", "vocab_size", "max_position_embeddings"]
)
def test_a_missing_field_is_named(missing: str) -> None:
    with pytest.raises(InputFileError, match=missing):
        parse_model_config(without(QWEN3_8B, missing), "m")


def test_all_malformed_fields_are_reported_at_once() -> None:
    with pytest.raises(InputFileError) as caught:
        parse_model_config(QWEN3_8B | {"num_hidden_layers": 0, "vocab_size": -1, "hidden_size": None}, "m")
    assert all(name in caught.value.why for name in ("num_hidden_layers", "vocab_size", "hidden_size"))


@pytest.mark.parametrize("config", [[], "text", None, 7], ids=str)
def test_a_config_that_is_no_object_is_refused(config: object) -> None:
    with pytest.raises(InputFileError, match="not a JSON object"):
        parse_model_config(config, "m")  # type: ignore[arg-type]


def test_a_config_that_names_no_model_is_unknown() -> None:
    with pytest.raises(UnknownModelError, match="names no model"):
        parse_model_config(without(QWEN3_8B, "architectures", "model_type"), "m")


@pytest.mark.parametrize(
    ("key", "value"),
    [("compress_ratios", [4] * 36), ("mamba_d_state", 16), ("kv_lora_rank", 512), ("cross_attention_layers", [3])],
)
def test_an_unlisted_model_with_a_key_that_may_change_the_cache_is_unknown(key: str, value: object) -> None:
    config = QWEN3_8B | {"architectures": ["NewForCausalLM"], "model_type": "new", key: value}
    with pytest.raises(UnknownModelError) as caught:
        parse_model_config(config, "m")
    assert key in caught.value.why


def test_an_unlisted_plain_decoder_is_an_estimate() -> None:
    model = parse_model_config(QWEN3_8B | {"architectures": ["NewForCausalLM"], "model_type": "new"}, "m")
    assert model.layers == parse_model_config(QWEN3_8B, "m").layers
    assert model.kv_estimate_reason is not None
    assert "NewForCausalLM" in model.kv_estimate_reason


def test_a_listed_model_is_no_estimate() -> None:
    assert parse_model_config(QWEN3_8B, "m").kv_estimate_reason is None


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("bfloat16", "bfloat16"), ("torch.float16", "float16"), ("float32", "bfloat16"), (None, "bfloat16")],
)
def test_the_dtype_is_what_auto_runs(dtype: object, expected: str) -> None:
    assert parse_model_config(QWEN3_8B | {"torch_dtype": dtype}, "m").dtype == expected


def test_a_nested_model_is_multimodal_and_a_plain_one_is_not() -> None:
    assert parse_model_config(QWEN3_5_9B, "m").is_multimodal
    assert not parse_model_config(QWEN3_8B, "m").is_multimodal


def test_experts_make_a_moe() -> None:
    assert parse_model_config(DEEPSEEK_V3 | {"n_routed_experts": 256}, "m").is_moe
    assert not parse_model_config(DEEPSEEK_V3, "m").is_moe


def test_whisper_caches_its_own_tokens_and_the_encoders() -> None:
    config = {
        "architectures": ["WhisperForConditionalGeneration"],
        "model_type": "whisper",
        "d_model": 1280,
        "decoder_attention_heads": 20,
        "decoder_layers": 4,
        "num_hidden_layers": 32,
        "max_source_positions": 1500,
        "max_target_positions": 448,
        "vocab_size": 51866,
    }
    model = parse_model_config(config, "whisper-large-v3-turbo")
    assert model.layers == (AttentionLayer(20, 20, 64, 64), CrossAttentionLayer(20, 64, 1500)) * 4
    assert (model.max_position_embeddings, model.rope) == (448, None)


def _read(path: Path) -> ModelSpec:
    return parse_model_config(json.loads(path.read_text()), path.stem)


MINIMAL = sorted(CORPUS.glob("*.json"))
ORDER_NOT_PUBLISHED = {"granite-4.0-h-1b", "kimi-linear-48b-a3b"}  # only how many layers there are of each kind
HEADS_NOT_PUBLISHED = {"gemma-4-26b-a4b"}  # query heads are missing: they do not touch the cache


@pytest.mark.parametrize("path", MINIMAL, ids=lambda path: path.stem)
def test_a_minimal_config_has_the_layers_of_its_catalogue_twin(path: Path) -> None:
    if path.stem == "deepseek-v4-flash":
        with pytest.raises(InputFileError, match="compress_ratios"):
            _read(path)
        return
    found, twin = _read(path), load_catalogue_model(path.stem)
    if path.stem in ORDER_NOT_PUBLISHED:
        assert sorted(found.layers, key=repr) == sorted(twin.layers, key=repr)
        assert found.kv_estimate_reason is not None
    elif path.stem in HEADS_NOT_PUBLISHED:
        assert [_cached(layer) for layer in found.layers] == [_cached(layer) for layer in twin.layers]
    else:
        assert found.layers == twin.layers


def _cached(layer: object) -> tuple[object, ...]:
    assert isinstance(layer, AttentionLayer)
    return layer.num_kv_heads, layer.head_dim, layer.v_head_dim, layer.window_tokens


@settings(deadline=None)
@given(JSON)
def test_any_json_parses_or_is_refused_with_advice(config: object) -> None:
    assert _refusal(config) is None or _refusal(config)


BENT = (
    "qwen3-8b",
    "qwen3.5-9b",
    "deepseek-v3.2",
    "gemma-4-e2b",
    "nemotron-3-nano-30b-a3b",
    "mimo-v2-flash",
    "glm-5.3-flash",
)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_real_config_with_one_field_replaced_parses_or_is_refused(data: st.DataObject) -> None:
    config = _published(data.draw(st.sampled_from(BENT), label="model"))
    target = config.get("text_config", config)
    assert isinstance(target, dict)
    target[data.draw(st.sampled_from(sorted(target)), label="field")] = data.draw(JSON, label="value")
    assert _refusal(config) is None or _refusal(config)


def _refusal(config: object) -> str | None:
    """The advice of a refusal, None for a config that parses; any other exception fails the test."""
    try:
        parse_model_config(config, "m")  # type: ignore[arg-type]
    except LongreachError as error:
        return error.fix
    return None


def _published(name: str) -> dict[str, object]:
    config = json.loads(json.dumps(catalogue_config(name)))
    assert isinstance(config, dict)
    return config


def test_every_catalogue_config_survives_a_json_round_trip() -> None:
    for name in catalogue_names():
        assert _published(name)


@pytest.mark.parametrize(
    ("name", "indices"),
    [
        ("qwen3-8b", (0, 1, 2, 3)),
        ("falcon-h1-3b", (0, 0, 1, 1)),
        ("deepseek-v3.2", (0, 0, 1, 1)),
        ("longcat-flash-chat", (0, 0, 1, 1)),
        ("nemotron-3-nano-30b-a3b", (0, 2, 4, 5)),
        ("deepseek-v4-flash", (2, 2, 3, 4)),
        ("lfm2-24b-a2b", None),
    ],
)
def test_every_cache_knows_its_decoder_layer(name: str, indices: tuple[int, ...] | None) -> None:
    model = load_catalogue_model(name)
    assert (model.layer_indices[:4] if model.layer_indices is not None else None) == indices
    assert model.layer_indices is None or len(model.layer_indices) == len(model.layers)
