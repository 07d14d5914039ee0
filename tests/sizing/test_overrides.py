"""What an override of rope or length becomes, release by release."""

from dataclasses import replace

import pytest
from tests.rules.deployments import QWEN3_32B, QWEN36_27B

from longreach.engine.release import get_release
from longreach.model.catalogue import load_catalogue_model
from longreach.model.spec import RopeSpec
from longreach.sizing.overrides import filled_theta, read_rope_in_force, rope_dict_key, unread_keys

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
YARN_27B = {"rope_type": "yarn", "factor": 3.0, "original_max_position_embeddings": 262144}


@pytest.mark.parametrize(
    ("overrides", "version", "derived"),
    [
        ({}, "0.32.0", 40_960),
        ({"rope_parameters": YARN}, "0.29.0", 131_072),
        ({"rope_parameters": YARN}, "0.30.0", 40_960),
        ({"rope_parameters": YARN, "max_position_embeddings": 131_072}, "0.30.0", 131_072),
        ({"rope_parameters": YARN, "max_position_embeddings": 131_072}, "0.29.0", 131_072),
        ({"rope_scaling": YARN}, "0.10.2", 131_072),
        ({"rope_parameters": YARN}, "0.10.2", 40_960),
        ({"max_position_embeddings": 65_536}, "0.32.0", 65_536),
        ({"rope_parameters": {"rope_type": "linear", "factor": 2.0}}, "0.32.0", 81_920),
        ({"rope_parameters": {"rope_type": "llama3", "factor": 8.0}}, "0.32.0", 40_960),
    ],
)
def test_length_follows_the_release_s_rule(overrides: dict[str, object], version: str, derived: int) -> None:
    found = read_rope_in_force(QWEN3_32B, overrides, get_release(version))
    assert found is not None
    assert found.derived_tokens == derived


def test_nested_override_is_merged_and_a_top_level_one_does_not_reach_the_language_model() -> None:
    release = get_release("0.32.0")
    outside = read_rope_in_force(QWEN36_27B, {"rope_parameters": YARN_27B, "max_position_embeddings": 786_432}, release)
    inside = read_rope_in_force(QWEN36_27B, {"text_config": {"rope_parameters": YARN_27B}}, release)
    assert outside is not None
    assert inside is not None
    assert (outside.is_overridden, outside.derived_tokens) == (False, 262_144)
    assert (inside.is_overridden, inside.theta) == (True, 1e7)
    assert dict(inside.parameters) == {"mrope_section": (11, 11, 10), "rope_theta": 1e7}


@pytest.mark.parametrize(
    ("model", "version", "theta"),
    [("qwen3-30b-a3b", "0.32.0", 1e4), ("qwen3-32b", "0.32.0", 1e6), ("qwen3-30b-a3b", "0.10.2", 1e6)],
)
def test_base_that_is_not_repeated_is_the_class_s_own(model: str, version: str, theta: float) -> None:
    release = get_release(version)
    found = read_rope_in_force(load_catalogue_model(model), {rope_dict_key(release): YARN}, release)
    assert found is not None
    assert found.theta == theta


def test_longrope_defaults_to_the_length_it_was_trained_on() -> None:
    model = replace(QWEN3_32B, rope=RopeSpec("longrope", 1e4, 96, (), (), original_max_position_embeddings=4096))
    lengths = []
    for version in ("0.10.2", "0.32.0"):
        found = read_rope_in_force(model, {}, get_release(version))
        assert found is not None
        lengths.append((found.default_tokens, found.derived_tokens))
    assert lengths == [(40_960, 40_960), (4_096, 40_960)]


def test_rope_of_several_layer_types_is_not_judged() -> None:
    assert (
        read_rope_in_force(load_catalogue_model("gemma-3-27b"), {"rope_parameters": YARN}, get_release("0.32.0"))
        is None
    )


def test_unread_keys_are_those_above_a_nested_config_and_those_of_a_later_release() -> None:
    assert QWEN36_27B.rope is not None
    assert QWEN3_32B.rope is not None
    new, old = get_release("0.32.0"), get_release("0.10.2")
    assert unread_keys({"rope_parameters": YARN, "architectures": ["X"]}, QWEN36_27B.rope, new) == ("rope_parameters",)
    assert unread_keys({"text_config": {"rope_parameters": YARN}}, QWEN36_27B.rope, new) == ()
    assert unread_keys({"rope_parameters": YARN}, QWEN3_32B.rope, old) == ("rope_parameters",)
    assert unread_keys({"rope_parameters": YARN}, QWEN3_32B.rope, new) == ()


def test_most_classes_fall_back_to_the_usual_base() -> None:
    assert (filled_theta("LlamaForCausalLM"), filled_theta("Qwen3ForCausalLM")) == (1e4, 1e6)
