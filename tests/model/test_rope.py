import pytest
from tests.model.configs import DEEPSEEK_V3, QWEN3_5_9B, QWEN3_8B, text_of, without

from longreach.model.catalogue import load_catalogue_model
from longreach.model.config import parse_model_config
from longreach.model.spec import RopeSpec


def _rope(config: dict[str, object]) -> RopeSpec:
    rope = parse_model_config(config, "m").rope
    assert rope is not None
    return rope


def test_a_plain_config_folds_theta_into_the_parameters() -> None:
    assert _rope(QWEN3_8B) == RopeSpec("default", 1e6, 128, (("rope_theta", 1000000),), ())


def test_a_nested_config_names_the_path_of_an_override() -> None:
    rope = _rope(QWEN3_5_9B)
    assert rope.override_path == ("text_config",)
    assert rope.mrope_section == (11, 11, 10)
    assert rope.rotary_dim == 64
    assert dict(rope.parameters) == {
        "mrope_interleaved": True,
        "mrope_section": (11, 11, 10),
        "partial_rotary_factor": 0.25,
        "rope_theta": 10000000,
        "rope_type": "default",
    }


@pytest.mark.parametrize(
    ("rope_scaling", "rope_type", "factor", "original"),
    [
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}, "yarn", 4.0, 32768),
        ({"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096}, "yarn", 40.0, 4096),
        ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}, "llama3", 8.0, 8192),
        ({"type": "su", "long_factor": [1.0, 2.0], "short_factor": [1.0, 1.0]}, "longrope", None, None),
        ({"rope_type": "linear", "factor": 2.0}, "linear", 2.0, None),
        ({"type": "mrope", "mrope_section": [16, 24, 24]}, "default", None, None),
    ],
    ids=["yarn", "legacy-yarn", "llama3", "legacy-longrope", "linear", "legacy-mrope"],
)
def test_each_form_of_scaling_is_read(
    rope_scaling: dict[str, object], rope_type: str, factor: float | None, original: int | None
) -> None:
    rope = _rope(QWEN3_8B | {"rope_scaling": rope_scaling})
    assert (rope.rope_type, rope.factor, rope.original_max_position_embeddings) == (rope_type, factor, original)
    assert dict(rope.parameters)["rope_type"] == rope_type
    assert "type" not in dict(rope.parameters)


def test_the_original_length_may_stand_beside_the_dict() -> None:
    phi = QWEN3_8B | {"rope_scaling": {"rope_type": "longrope"}, "original_max_position_embeddings": 4096}
    assert _rope(phi).original_max_position_embeddings == 4096


@pytest.mark.parametrize(
    ("name", "rotary_dim"),
    [
        ("deepseek-v4-flash", 64),
        ("qwen3.6-27b", 64),
        ("qwen3-vl-8b", 128),
        ("deepseek-v3", 64),
        ("glm-4.5", 64),
        ("minimax-m2", 64),
        ("phi-4-mini", 96),
        ("gemma-4-31b", 128),
        ("mimo-v2-flash", 64),
    ],
)
def test_the_rotary_width_follows_factor_field_or_latent(name: str, rotary_dim: int) -> None:
    rope = load_catalogue_model(name).rope
    assert rope is not None
    assert rope.rotary_dim == rotary_dim


@pytest.mark.parametrize(
    ("name", "layer_dependent"),
    [
        ("gemma-4-31b", True),
        ("gemma-3-27b", True),
        ("mimo-v2-flash", True),
        ("qwen3-32b", False),
        ("llama-3.1-8b", False),
    ],
)
def test_separate_parameters_for_sliding_layers_are_marked(name: str, layer_dependent: bool) -> None:
    rope = load_catalogue_model(name).rope
    assert rope is not None
    assert rope.layer_dependent is layer_dependent


def test_a_theta_for_each_layer_is_layer_dependent() -> None:
    rope = _rope(QWEN3_8B | {"rope_theta": [1e6] * 36})
    assert (rope.theta, rope.layer_dependent) == (None, True)


@pytest.mark.parametrize("name", ["granite-4.0-h-small", "jamba-mini-1.7", "nemotron-h-8b", "kimi-linear-48b-a3b"])
def test_models_without_rotary_embedding_have_no_rope(name: str) -> None:
    assert load_catalogue_model(name).rope is None


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, 40960),
        ({"max_seq_len": 8192}, 8192),
        ({"model_max_length": 131072}, 131072),
        ({"rope_scaling": {"rope_type": "linear", "factor": 4.0}}, 163840),
        ({"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, 81920),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 40960}}, 40960),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 40960),
        ({"rope_scaling": {"rope_type": "longrope", "factor": 32.0}}, 40960),
    ],
    ids=["plain", "smallest", "model-max-length", "linear", "dynamic", "yarn", "llama3", "longrope"],
)
def test_the_allowed_length_is_the_one_vllm_derives(change: dict[str, object], expected: int) -> None:
    assert parse_model_config(QWEN3_8B | change, "m").max_position_embeddings == expected


def test_gemma_3_states_the_scaled_length() -> None:
    assert load_catalogue_model("gemma-3-27b").max_position_embeddings == 131072


def test_a_factor_in_the_nested_config_counts() -> None:
    text = text_of(QWEN3_5_9B) | {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e7, "factor": 2.0}}
    assert parse_model_config(QWEN3_5_9B | {"text_config": text}, "m").max_position_embeddings == 524288


def test_gpt2_names_its_length_differently() -> None:
    gpt2 = {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "vocab_size": 50257}
    model = parse_model_config(gpt2, "gpt2")
    assert (model.max_position_embeddings, model.rope, model.num_layers) == (1024, None, 12)


def test_an_mla_config_without_a_rope_part_has_no_rotary_width() -> None:
    assert _rope(without(DEEPSEEK_V3, "rope_scaling") | {"qk_rope_head_dim": 0}).rotary_dim is None
