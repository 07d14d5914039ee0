import pytest
from tests.model.configs import QWEN3_8B, without

from longreach.errors import InputFileError, UnknownModelError
from longreach.model.config import parse_model_config
from longreach.model.spec import AttentionLayer

PHI3 = without(QWEN3_8B, "use_sliding_window", "max_window_layers") | {
    "architectures": ["Phi3ForCausalLM"],
    "model_type": "phi3",
}


def _windows(config: dict[str, object]) -> tuple[int | None, ...]:
    layers = parse_model_config(config, "m").layers
    return tuple(layer.window_tokens for layer in layers if isinstance(layer, AttentionLayer))


@pytest.mark.parametrize("window", [None, 0], ids=["null", "zero"])
def test_no_window_means_full_attention(window: int | None) -> None:
    assert set(_windows(PHI3 | {"sliding_window": window})) == {None}


def test_a_window_without_a_pattern_holds_for_every_layer() -> None:
    assert set(_windows(PHI3 | {"sliding_window": 2047})) == {2047}


def test_a_switched_off_window_is_ignored() -> None:
    assert set(_windows(QWEN3_8B | {"sliding_window": 4096, "use_sliding_window": False})) == {None}


def test_qwen_slides_from_max_window_layers_on() -> None:
    windows = _windows(QWEN3_8B | {"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 30})
    assert windows == (None,) * 30 + (4096,) * 6


def test_a_switched_on_window_elsewhere_is_not_understood() -> None:
    moe = {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe"}
    with pytest.raises(UnknownModelError, match="slide"):
        parse_model_config(QWEN3_8B | moe | {"sliding_window": 4096, "use_sliding_window": True}, "m")


def test_layer_types_decide_layer_by_layer() -> None:
    kinds = ["sliding_attention", "full_attention", "full_attention"] * 12
    assert _windows(PHI3 | {"sliding_window": 512, "layer_types": kinds}) == (512, None, None) * 12


def test_layer_types_that_slide_need_a_window() -> None:
    with pytest.raises(InputFileError, match="sliding_window: missing"):
        parse_model_config(without(PHI3, "sliding_window") | {"layer_types": ["sliding_attention"] * 36}, "m")


def test_an_unknown_layer_type_is_refused_by_name() -> None:
    with pytest.raises(UnknownModelError, match="'retention'"):
        parse_model_config(PHI3 | {"layer_types": ["retention"] * 36}, "m")


@pytest.mark.parametrize(
    ("model_type", "pattern", "period"),
    [
        ("gemma3_text", {}, 6),
        ("gemma3_text", {"sliding_window_pattern": 4}, 4),
        ("gemma3_text", {"_sliding_window_pattern": 3}, 3),
        ("exaone4", {"sliding_window_pattern": "LLLG"}, 4),
        ("cohere2", {}, 4),
        ("olmo3", {}, 4),
        ("gpt_oss", {}, 2),
        ("gemma2", {}, 2),
    ],
)
def test_a_period_makes_every_nth_layer_full(model_type: str, pattern: dict[str, object], period: int) -> None:
    windows = _windows(PHI3 | {"architectures": [], "model_type": model_type, "sliding_window": 512} | pattern)
    assert windows == tuple(None if (index + 1) % period == 0 else 512 for index in range(36))


def test_a_pattern_that_is_no_pattern_is_named() -> None:
    with pytest.raises(InputFileError, match="sliding_window_pattern"):
        parse_model_config(PHI3 | {"sliding_window": 512, "sliding_window_pattern": "GLGL"}, "m")


def test_llama_4_is_chunked_except_in_every_fourth_layer() -> None:
    llama4 = PHI3 | {"model_type": "llama4_text", "architectures": [], "attention_chunk_size": 8192}
    layers = parse_model_config(llama4, "m").layers
    chunks = [layer.chunk_tokens for layer in layers if isinstance(layer, AttentionLayer)]
    assert chunks == [8192, 8192, 8192, None] * 9


def test_llama_4_may_list_the_layers_with_rope() -> None:
    llama4 = PHI3 | {"model_type": "llama4_text", "attention_chunk_size": 8192, "no_rope_layers": [1] * 35 + [0]}
    layers = parse_model_config(llama4, "m").layers
    assert [layer.chunk_tokens for layer in layers if isinstance(layer, AttentionLayer)] == [8192] * 35 + [None]


def test_kv_heads_default_to_all_heads() -> None:
    model = parse_model_config(without(QWEN3_8B, "num_key_value_heads"), "m")
    assert model.num_kv_heads == model.num_attention_heads == 32


@pytest.mark.parametrize("head_dim", [None, 0, "absent"])
def test_an_absent_head_dim_is_hidden_size_over_heads(head_dim: object) -> None:
    config = without(QWEN3_8B, "head_dim") if head_dim == "absent" else QWEN3_8B | {"head_dim": head_dim}
    assert parse_model_config(config, "m").head_dim == 4096 // 32


def test_falcon_with_one_query_group_has_one_kv_head() -> None:
    falcon = without(QWEN3_8B, "num_key_value_heads") | {"model_type": "falcon", "multi_query": True}
    assert parse_model_config(falcon, "m").num_kv_heads == 1
