"""Reaching a length: the YaRN factor, the override that states it, and the table it costs.

vLLM builds one table of cosines and sines per GPU, `rows x rotary_dim` values: rows are the scaled length, and with M-RoPE
four times that, since video positions may run ahead of tokens.
"""

from math import ceil, isfinite

from longreach.engine.options import YarnOptions
from longreach.errors import UsageError
from longreach.model.spec import ModelSpec, RopeSpec
from longreach.sizing.formats import DTYPE_BYTES
from longreach.sizing.values import RopePlan
from longreach.units import format_tokens, shortened

LARGEST_FACTOR = 64
"""No model is published with more; 40 and 32 are the largest known (DeepSeek-V3, gpt-oss)."""

_STRETCHABLE_TYPES = ("default", "yarn")
_MOST_READABLE = 10_000  # a larger factor is a slip of the keyboard, and would overflow
_FACTOR_STEP = 0.5
_MROPE_ROWS = 4


def plan_rope(model: ModelSpec, max_model_len: int, yarn: str = "auto") -> RopePlan:
    """How the model reaches `max_model_len` tokens; `yarn` is "auto", "none" or a factor.

    Auto takes the smallest clean factor that reaches the length, since a static factor costs quality on short text. Raises
    UsageError for a factor that is no number of at least 1.
    """
    native = model.max_position_embeddings
    factor = parse_factor(yarn)
    if factor is None and (max_model_len <= native or yarn == "none"):
        return _unscaled(model, max_model_len)
    obstacle = _obstacle(model, insists=factor is not None)
    if obstacle is not None or model.rope is None:
        return _plan(model, max_model_len, None, f"{_wanted(native, max_model_len)}; {obstacle}", reachable=False)
    original = _original_length(model, model.rope)
    if factor is None:
        factor = max(1.0, ceil(max_model_len / original / _FACTOR_STEP) * _FACTOR_STEP)
    options = YarnOptions(factor, original, model.rope.override_path, model.rope.parameters)
    return _scaled(model, max_model_len, options)


def _scaled(model: ModelSpec, max_model_len: int, options: YarnOptions) -> RopePlan:
    reached, factor = options.max_position_embeddings, options.factor
    stretch = (
        f"YaRN factor {factor:g} x {format_tokens(options.original_max_position_embeddings)} = {format_tokens(reached)}"
    )
    if reached < max_model_len:
        reason = f"{stretch} tokens, less than the {format_tokens(max_model_len)} asked for"
        return _plan(model, max_model_len, None, reason, reachable=False)
    if factor > LARGEST_FACTOR:
        reason = f"{stretch} tokens: no model is known to work beyond factor {LARGEST_FACTOR}"
        return _plan(model, max_model_len, None, reason, reachable=False)
    beyond, advice = _judge(model, max_model_len, factor)
    reason = f"{stretch} tokens reach {format_tokens(max_model_len)}; {advice}"
    return _plan(model, max_model_len, options, reason, reachable=True, beyond=beyond)


def _judge(model: ModelSpec, max_model_len: int, factor: float) -> tuple[bool, str]:
    """(longer than the publisher has tested, what the publisher says)."""
    if model.yarn is None:
        return True, "no recommendation of the publisher is known"
    target = model.yarn.target_tokens
    recommended = f"the publisher recommends factor {model.yarn.factor:g}" + (
        f" for {format_tokens(target)}" if target else ""
    )
    if (target is not None and max_model_len > target) or factor > model.yarn.factor:
        return True, f"{recommended} and no further: expect worse answers"
    return False, recommended


def _unscaled(model: ModelSpec, max_model_len: int) -> RopePlan:
    native = model.max_position_embeddings
    if max_model_len <= native:
        reason = f"within the native {format_tokens(native)} tokens"
        return _plan(model, max_model_len, None, reason, reachable=True)
    return _plan(model, max_model_len, None, f"{_wanted(native, max_model_len)} and YaRN is off", reachable=False)


def _obstacle(model: ModelSpec, *, insists: bool) -> str | None:
    """Why one YaRN override does not fit this model's rope; None when it does, or when the user insists on a factor."""
    rope = model.rope
    if rope is None or rope.rotary_dim is None:
        return "it has no rotary embedding that YaRN could stretch"
    if rope.layer_dependent:
        return "its sliding and full layers have separate rope parameters, which one YaRN override does not fit"
    if rope.rope_type not in _STRETCHABLE_TYPES:
        return f"its rope is already scaled by '{rope.rope_type}', which YaRN would replace"
    if rope.rope_type == "yarn" and model.yarn is None and not insists:
        return f"its publisher already stretches it by YaRN (factor {rope.factor or 1:g}) and tested no further"
    return None


def _original_length(model: ModelSpec, rope: RopeSpec) -> int:
    """The length YaRN multiplies: the publisher's word first. Qwen3 states 40,960 positions and was trained on 32,768."""
    if model.yarn is not None:
        return model.yarn.original_max_position_embeddings
    return rope.original_max_position_embeddings or model.max_position_embeddings


def _plan(
    model: ModelSpec, wanted: int, options: YarnOptions | None, reason: str, *, reachable: bool, beyond: bool = False
) -> RopePlan:
    return RopePlan(
        native_tokens=model.max_position_embeddings,
        wanted_tokens=wanted,
        factor=None if options is None else options.factor,
        table_bytes_per_gpu=rope_table_bytes(model, options),
        options=options,
        reachable=reachable,
        reason=reason,
        beyond_recommendation=beyond,
    )


def rope_table_bytes(model: ModelSpec, options: YarnOptions | None) -> int:
    """Bytes of the cos/sin table on each GPU: rows x rotary_dim x bytes of a value, four times the rows with M-RoPE."""
    rope = model.rope
    if rope is None or rope.rotary_dim is None:
        return 0
    rows = model.max_position_embeddings if options is None else options.max_position_embeddings
    if rope.mrope_section is not None:
        rows *= _MROPE_ROWS
    return rows * rope.rotary_dim * DTYPE_BYTES.get(model.dtype, 2)


def parse_factor(yarn: str) -> float | None:
    """The factor that `--yarn` names; None for `auto` and `none`. UsageError for anything else."""
    if yarn in ("auto", "none"):
        return None
    try:
        factor = float(yarn)
    except ValueError:
        factor = 0.0
    if not isfinite(factor) or not 1 <= factor <= _MOST_READABLE:
        raise UsageError(
            f"YaRN factor '{shortened(yarn)}' is not understood",
            f"expected auto, none or a number from 1 to {_MOST_READABLE}",
            "--yarn auto",
        )
    return factor


def _wanted(native: int, wanted: int) -> str:
    return f"{format_tokens(wanted)} tokens exceed the native {format_tokens(native)}"
