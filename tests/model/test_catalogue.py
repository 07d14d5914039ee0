import pytest

from longreach.errors import UsageError
from longreach.model.catalogue import catalogue_names, checkpoint_bytes, load_catalogue_model
from longreach.model.spec import AttentionLayer, GatedDeltaNetLayer


def test_qwen3_32b_is_a_dense_model_of_64_layers() -> None:
    model = load_catalogue_model("qwen3-32b")
    assert model.layers == (AttentionLayer(num_heads=64, num_kv_heads=8, head_dim=128, v_head_dim=128),) * 64
    assert model.parameters.total == 32_762_123_264


def test_qwen3_6_27b_is_a_hybrid_with_one_mtp_layer() -> None:
    model = load_catalogue_model("qwen3.6-27b")
    full = [layer for layer in model.layers if isinstance(layer, AttentionLayer)]
    delta = [layer for layer in model.layers if isinstance(layer, GatedDeltaNetLayer)]
    assert (len(full), len(delta), len(model.draft_layers)) == (16, 48, 1)
    assert full[0] == model.draft_layers[0] == AttentionLayer(24, 4, 256, 256)
    assert model.ssm_state_dtype == "float32"


@pytest.mark.parametrize("reference", ["qwen3-32b", "Qwen3-32B", "Qwen/Qwen3-32B", "qwen/qwen3-32b"])
def test_case_and_organisation_do_not_matter(reference: str) -> None:
    assert load_catalogue_model(reference).name == "qwen3-32b"


def test_a_published_checkpoint_names_model_and_quantization() -> None:
    model = load_catalogue_model("Qwen/Qwen3.6-27B-FP8")
    assert (model.name, model.weights.quantization) == ("qwen3.6-27b", "fp8")
    assert model.weights.total_bytes == 31_138_512_896


def test_an_unknown_name_is_a_usage_error_with_near_names() -> None:
    with pytest.raises(UsageError) as caught:
        load_catalogue_model("qwen3.6-72b")
    assert "qwen3.6-27b" in caught.value.fix


def test_bytes_are_none_where_no_checkpoint_is_known() -> None:
    assert checkpoint_bytes("qwen3-32b", "mxfp4") is None


def test_the_catalogue_has_196_models() -> None:
    assert len(catalogue_names()) == 196
