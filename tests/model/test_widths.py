"""Widths of a forward pass."""

import pytest

from longreach.model.catalogue import load_catalogue_model
from longreach.model.config import parse_model_config
from longreach.model.spec import PassWidths, TowerWidths


def widths(name: str) -> PassWidths:
    found = load_catalogue_model(name).widths
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "dense", "expert", "shared", "num_experts", "experts_per_token"),
    [
        ("qwen3-8b", 12288, 0, 0, 0, 0),
        ("deepseek-v3", 18432, 2048, 0, 256, 8),
        ("qwen3-next-80b-a3b", 5120, 512, 512, 512, 10),
        ("gpt-oss-120b", 2880, 2880, 0, 128, 4),
        ("gemma-3n-e2b", 8192, 0, 0, 0, 0),
    ],
)
def test_widths_are_those_of_the_config(
    name: str, dense: int, expert: int, shared: int, num_experts: int, experts_per_token: int
) -> None:
    assert widths(name) == PassWidths(dense, expert, shared, num_experts, experts_per_token)


@pytest.mark.parametrize(
    ("name", "tower"),
    [
        ("qwen3.6-27b", TowerWidths(1152, 4304, 4, 16384, 1)),
        ("qwen3-vl-8b", TowerWidths(1152, 4304, 4, 16384, 4)),
        ("mistral-small-3.2-24b", TowerWidths(1024, 4096, 4, 3025, 1)),
        ("gemma-3-27b", TowerWidths(1152, 4304, 16, 256, 1)),
    ],
)
def test_a_tower_turns_patches_into_tokens(name: str, tower: TowerWidths) -> None:
    found = widths(name).tower
    assert found is not None
    shape = (found.hidden, found.inner, found.patches_per_token, found.largest_image_tokens, found.outputs_per_token)
    assert shape == (
        tower.hidden,
        tower.inner,
        tower.patches_per_token,
        tower.largest_image_tokens,
        tower.outputs_per_token,
    )
    assert 0.2e9 < found.parameters < 0.8e9


def test_a_size_in_an_unknown_form_is_an_unknown_size_and_no_mistake() -> None:
    config = {
        "architectures": ["LlavaForConditionalGeneration"], "model_type": "llava",
        "text_config": {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
                        "vocab_size": 99, "max_position_embeddings": 64},
        "vision_config": {"hidden_size": 32, "image_size": [336, 336], "patch_size": {"height": 14}},
    }  # fmt: skip
    found = parse_model_config(config, "odd").widths
    assert found is not None
    assert found.dense == 4 * 64
    assert found.tower == TowerWidths(32, 128, 1, 0)
