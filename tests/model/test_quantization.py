import pytest
from tests.model.configs import QWEN3_5_9B, QWEN3_8B, text_of

from longreach.model.config import parse_model_config
from longreach.model.quantization import QUANTIZATIONS


def _compressed(fmt: str, bits: int, inputs: object = "dynamic") -> dict[str, object]:
    activations = None if inputs is None else {"num_bits": 8, "dynamic": True}
    group = {"weights": {"num_bits": bits, "type": "int"}, "input_activations": activations}
    return {"quant_method": "compressed-tensors", "format": fmt, "config_groups": {"group_0": group}}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, "none"),
        ({"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}, "fp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "w4a16"),
        ({"quant_method": "awq", "w_bit": 4}, "w4a16"),
        ({"quant_method": "gptq", "bits": 4}, "w4a16"),
        ({"quant_method": "gptq", "bits": 8}, "other"),
        ({"quant_method": "auto-round", "bits": 4}, "w4a16"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "other"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, "other"),
        ({"quant_method": "modelopt"}, "fp8"),
        ({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4"}}, "nvfp4"),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized"}, "w4a16"),
        (_compressed("pack-quantized", 4), "w4a16"),
        (_compressed("pack-quantized", 8), "other"),
        (_compressed("float-quantized", 8), "fp8"),
        (_compressed("float-quantized", 8, inputs=None), "fp8-weight-only"),
        (_compressed("int-quantized", 8), "w8a8-int8"),
        (_compressed("int-quantized", 4), "w4a8-int8"),
        (_compressed("nvfp4-pack-quantized", 4), "nvfp4"),
        (_compressed("mxfp4-pack-quantized", 4), "mxfp4"),
        (_compressed("marlin-24", 4), "other"),
        ({"quant_method": "fp8", "store_dtype": "mxfp4"}, "other"),
        ({"quant_method": "something-new"}, "other"),
        ({}, "other"),
    ],
    ids=str,
)
def test_the_form_of_the_weights_is_named(found: object, expected: str) -> None:
    weights = parse_model_config(QWEN3_8B | {"quantization_config": found}, "m").weights
    assert weights.quantization == expected
    assert expected in QUANTIZATIONS


def test_the_method_is_kept_as_written() -> None:
    config = QWEN3_8B | {"quantization_config": {"quant_method": "compressed_tensors", "format": "pack-quantized"}}
    weights = parse_model_config(config, "m").weights
    assert (weights.quantization, weights.quant_method) == ("w4a16", "compressed_tensors")


def test_a_nested_quantization_config_counts() -> None:
    text = text_of(QWEN3_5_9B) | {"quantization_config": {"quant_method": "fp8"}}
    assert parse_model_config(QWEN3_5_9B | {"text_config": text}, "m").weights.quantization == "fp8"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"quant_method": "fp8"}, None),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": None}, None),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, "fp8_e4m3"),
        ({"quant_method": "modelopt", "quantization": {"kv_cache_quant_algo": "FP8"}}, "fp8_e4m3"),
        ({"quant_method": "modelopt", "kv_cache_quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "modelopt", "kv_cache_quant_algo": "INT3"}, None),
        ({"quant_method": "modelopt", "kv_cache_scheme": {"num_bits": 8, "type": "int"}}, None),
    ],
    ids=str,
)
def test_a_kv_scheme_of_the_checkpoint_is_forced(found: dict[str, object], expected: str | None) -> None:
    assert parse_model_config(QWEN3_8B | {"quantization_config": found}, "m").kv_cache_dtype_forced == expected
