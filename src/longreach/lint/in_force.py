"""The model that a foreign command really runs: dtype, quantization and overrides applied, as one release reads them. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from longreach.model.spec import ModelSpec, QuantizationName, WeightsSpec
from longreach.plan.extra import Extra, with_dtype
from longreach.rules.overrides import overrides_of
from longreach.rules.written import WrittenCommand
from longreach.sizing.formats import DTYPE_BYTES
from longreach.sizing.overrides import TEXT_KEYS, RopeInForce, read_rope_in_force, text_overrides

_DTYPE_WORDS = {"half": "float16", "float": "float32"}
_MADE_AT_LOAD: Mapping[str, QuantizationName] = {
    "fp8": "fp8",
    "fp8_per_tensor": "fp8",
    "fp8_per_block": "fp8",
    "experts_int8": "other",
    "bitsandbytes": "other",
    "torchao": "other",
}
"""What `--quantization` makes of a plain checkpoint while it loads."""


def model_in_force(written: WrittenCommand, model: ModelSpec, rope: RopeInForce | None) -> ModelSpec:
    """`model` as it is named in the catalogue or its config, to what this command runs."""
    model = _with_weights(model, written.options.quantization)
    model = _with_dtype(model, written)
    if rope is None:
        return model
    native = model.native_context_tokens or model.max_position_embeddings
    return replace(model, max_position_embeddings=rope.derived_tokens, native_context_tokens=native)


def rope_in_force(written: WrittenCommand, model: ModelSpec) -> RopeInForce | None:
    """The rope that the command's overrides leave; None where it cannot be told."""
    overrides = overrides_of(written)
    return None if overrides is None else read_rope_in_force(model, overrides, written.release)


def changes_layers(written: WrittenCommand, model: ModelSpec) -> bool:
    """Whether an override may change what is cached, so that nothing can be counted."""
    overrides = overrides_of(written)
    if overrides is None:
        return True
    path = model.rope.override_path if model.rope is not None else ()
    inside = text_overrides(overrides, path)
    harmless = {*TEXT_KEYS, *path, "architectures", "num_experts_per_tok", "num_nextn_predict_layers"}
    return any(key not in harmless for key in inside)


def _with_weights(model: ModelSpec, asked: str | None) -> ModelSpec:
    if model.weights.quantization != "none" or asked is None:
        return model
    made = _MADE_AT_LOAD.get(asked, "other")
    source = f"quantized to {asked} while it loads"
    return replace(model, weights=WeightsSpec(made, asked, None, source, model.weights.checkpoint))


def _with_dtype(model: ModelSpec, written: WrittenCommand) -> ModelSpec:
    """A word that is no dtype is the parser's to refuse."""
    asked = written.options.dtype or "auto"
    asked = _DTYPE_WORDS.get(asked, asked)
    if asked != "auto" and asked not in DTYPE_BYTES:
        return model
    gpu = written.machine.gpu if written.machine is not None else None
    return with_dtype(model, Extra({"dtype": asked}), gpu)
