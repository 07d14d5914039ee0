import pytest

from longreach.errors import InputFileError
from longreach.model.catalogue import catalogue_config, load_catalogue_model
from longreach.model.config import parse_model_config
from longreach.model.spec import AttentionLayer


def _bent(name: str, **change: object) -> dict[str, object]:
    config = dict(catalogue_config(name))
    text = config.get("text_config")
    if isinstance(text, dict):
        config["text_config"] = {**text, **change}
        return config
    return config | change


def test_gemma_4_full_layers_have_their_own_heads() -> None:
    model = load_catalogue_model("gemma-4-31b")
    assert set(model.layers) == {
        AttentionLayer(32, 16, 256, 256, window_tokens=1024),
        AttentionLayer(32, 4, 512, 512),
    }


def test_gemma_4_full_layers_keep_the_heads_where_values_have_their_own_projection() -> None:
    layers = parse_model_config(_bent("gemma-4-31b", attention_k_eq_v=False), "m").layers
    assert AttentionLayer(32, 16, 512, 512) in layers


def test_the_last_layers_of_gemma_4_e2b_borrow_their_cache() -> None:
    model = load_catalogue_model("gemma-4-e2b")
    assert (len(model.layers), len(model.borrowing_layers), model.num_layers) == (15, 20, 35)


def test_more_shared_layers_than_layers_is_malformed() -> None:
    with pytest.raises(InputFileError, match="num_kv_shared_layers: found 35"):
        parse_model_config(_bent("gemma-4-e2b", num_kv_shared_layers=35), "m")


def test_mimo_v2_mixes_two_shapes_of_heads() -> None:
    model = load_catalogue_model("mimo-v2-flash")
    assert set(model.layers) == {AttentionLayer(64, 4, 192, 128), AttentionLayer(64, 8, 192, 128, window_tokens=128)}
    assert model.draft_layers == (AttentionLayer(64, 8, 192, 128, window_tokens=128),)


def test_mimo_v2_needs_its_pattern() -> None:
    with pytest.raises(InputFileError, match="hybrid_layer_pattern"):
        parse_model_config(_bent("mimo-v2-flash", hybrid_layer_pattern=[0, 1]), "m")


@pytest.mark.parametrize("name", ["step-3.5-flash", "step-3.7-flash"])
def test_step_slides_with_other_heads_and_lists_its_mtp_layers(name: str) -> None:
    model = load_catalogue_model(name)
    sliding = AttentionLayer(96, 8, 128, 128, window_tokens=512)
    assert set(model.layers) == {AttentionLayer(64, 8, 128, 128), sliding}
    assert len(model.draft_layers) == 3
    assert set(model.draft_layers) <= {sliding, AttentionLayer(64, 8, 128, 128)}


def test_step_refuses_a_list_that_is_too_short() -> None:
    with pytest.raises(InputFileError, match="layer_types"):
        parse_model_config(_bent("step-3.5-flash", layer_types=["full_attention"] * 3), "m")


def test_step_without_other_heads_slides_with_its_own() -> None:
    layers = parse_model_config(_bent("step-3.5-flash", attention_other_setting=None), "m").layers
    assert AttentionLayer(64, 8, 128, 128, window_tokens=512) in layers
