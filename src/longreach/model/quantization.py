"""What a checkpoint says about its own quantization: the weights' form, and a KV scheme it brings along."""

from typing import get_args

from longreach.model.decoder import Decoder
from longreach.model.fields import Fields
from longreach.model.spec import QuantizationName

QUANTIZATIONS: tuple[str, ...] = get_args(QuantizationName)

_BY_METHOD: dict[str, QuantizationName] = {
    "fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "modelopt": "fp8",
    "modelopt_fp4": "nvfp4",
    "mxfp4": "mxfp4",
    "gpt_oss_mxfp4": "mxfp4",
}
_BY_BITS = frozenset(("awq", "awq_marlin", "gptq", "gptq_marlin", "auto-round", "auto_round", "intel/auto-round"))
_BY_FORMAT: dict[str, QuantizationName] = {
    "nvfp4-pack-quantized": "nvfp4",
    "mxfp4-pack-quantized": "mxfp4",
    "float-quantized": "fp8",
    "naive-quantized": "fp8",
}
_MODELOPT_KV = {"fp8": "fp8_e4m3", "nvfp4": "nvfp4"}


def read_quantization(decoder: Decoder) -> tuple[QuantizationName, str | None]:
    """The weights' form and `quant_method` as written; ("none", None) for a plain checkpoint."""
    found = _quantization_config(decoder)
    if found is None:
        return "none", None
    method = found.text("quant_method")
    if method is None and (found.nested("producer") or found).text("name") == "modelopt":
        method = "modelopt"
    return _name(found, (method or "").lower().replace("compressed_tensors", "compressed-tensors")), method


def read_forced_kv_cache_dtype(decoder: Decoder) -> str | None:
    """The KV dtype that vLLM takes from the checkpoint when `--kv-cache-dtype` is auto."""
    found = _quantization_config(decoder)
    if found is None:
        return None
    inner = found.nested("quantization") or found
    algorithm = inner.values.get("kv_cache_quant_algo") or found.values.get("kv_cache_quant_algo")
    if isinstance(algorithm, str):
        return _MODELOPT_KV.get(algorithm.lower())
    if not (inner.has("kv_cache_scheme") or found.has("kv_cache_scheme")):
        return None
    scheme = inner.nested("kv_cache_scheme") or found.nested("kv_cache_scheme")
    if scheme is None or scheme.text("type") != "float":
        return None
    return {8: "fp8_e4m3", 4: "nvfp4"}.get(scheme.count("num_bits"))


def _quantization_config(decoder: Decoder) -> Fields | None:
    names = ("quantization_config", "compression_config")
    return decoder.root.nested(*names) or decoder.text.nested(*names)


def _name(found: Fields, method: str) -> QuantizationName:
    if method in _BY_BITS:
        return "w4a16" if found.count("bits", "w_bit") == 4 else "other"
    if method == "compressed-tensors":
        return _compressed_tensors(found)
    algorithm = ((found.nested("quantization") or found).text("quant_algo") or "").upper()
    if method.startswith("modelopt") and algorithm:
        return "nvfp4" if algorithm == "NVFP4" else "fp8" if algorithm.startswith("FP8") else "other"
    if found.has("store_dtype"):  # stored in another form than it runs in (MiMo-V2.6-Flash)
        return "other"
    return _BY_METHOD.get(method, "other")


def _compressed_tensors(found: Fields) -> QuantizationName:
    group = next(iter(_groups(found)), None)
    weights = group.nested("weights") if group else None
    inputs = group.nested("input_activations") if group else None
    bits = weights.count("num_bits") if weights else 0
    fmt = found.text("format") or (group.text("format") if group else None) or ""
    if fmt == "pack-quantized":
        return "w4a16" if bits in (0, 4) else "other"
    if fmt == "int-quantized":
        return "w4a8-int8" if bits == 4 else "w8a8-int8"
    if fmt in ("float-quantized", "naive-quantized") and group is not None and inputs is None:
        return "fp8-weight-only"
    return _BY_FORMAT.get(fmt, "other")


def _groups(found: Fields) -> tuple[Fields, ...]:
    groups = found.nested("config_groups")
    if groups is None:
        return ()
    inside = tuple(groups.nested(key) for key in groups.values)
    return tuple(group for group in inside if group is not None)
