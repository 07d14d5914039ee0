"""Rotary embedding as the language model's config gives it, and the length the engine allows."""

from collections.abc import Mapping

from longreach.model.decoder import Decoder
from longreach.model.fields import MAX_SIZE, Fields
from longreach.model.spec import RopeSpec

_LENGTH_KEYS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)  # vLLM takes the smallest; `model_max_length` wins over all
_LENGTH_KEEPS_FACTOR = frozenset(
    ("su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling")
)  # types whose max_position_embeddings is already the scaled length (yarn: from 0.30)
_LEGACY_TYPES = {"su": "longrope", "mrope": "default"}
_PER_LAYER_THETA = ("rope_local_base_freq", "swa_rope_theta")


def read_rope(decoder: Decoder) -> RopeSpec:
    """The rope dict of the language model, with `rope_theta` and `partial_rotary_factor` folded in and the older key
    `type` written as `rope_type` (vLLM refuses a config that has both with different values).

    Of a dict per layer type (Gemma) the full-attention part counts.
    """
    text = decoder.text
    found = text.nested("rope_parameters", "rope_scaling")
    by_layer = found is not None and bool(found.values) and all(isinstance(v, Mapping) for v in found.values.values())
    if found is not None and by_layer:
        found = found.nested("full_attention") or found.nested(next(iter(found.values)))
    rope = found if found is not None else Fields(text.name, {}, text.path, text.problems)
    theta = rope.number("rope_theta") or _theta(text)
    return RopeSpec(
        rope_type=rope_type(rope),
        theta=theta,
        rotary_dim=_rotary_dim(decoder, rope, full_head_dim=by_layer),
        parameters=_parameters(rope, theta, _partial(text, rope)),
        override_path=text.path,
        factor=rope.number("factor"),
        original_max_position_embeddings=rope.optional_positive("original_max_position_embeddings")
        or text.optional_positive("original_max_position_embeddings"),
        mrope_section=rope.counts("mrope_section"),
        layer_dependent=by_layer or text.has(*_PER_LAYER_THETA) or isinstance(text.values.get("rope_theta"), list),
    )


def rope_type(rope: Fields) -> str:
    """`rope_type`, or the older `type`, in today's words."""
    found = rope.text("rope_type", "type") or "default"
    return _LEGACY_TYPES.get(found, found)


def read_max_position_embeddings(decoder: Decoder) -> int:
    """What vLLM (0.30 and later) derives as the allowed length, in tokens, from the config alone."""
    text = decoder.text
    if text.has("model_max_length"):
        return text.positive("model_max_length")
    lengths = [text.positive(key) for key in _LENGTH_KEYS if text.has(key)]
    if not lengths:
        return text.positive(*_LENGTH_KEYS)
    return min(MAX_SIZE, int(min(lengths) * _length_factor(decoder)))


def _length_factor(decoder: Decoder) -> float:
    if "gemma3" in (decoder.root.text("model_type") or ""):
        return 1.0  # vLLM: Gemma 3 states the scaled length
    found = decoder.text.nested("rope_parameters", "rope_scaling")
    if found is None or rope_type(found) in _LENGTH_KEEPS_FACTOR:
        return 1.0
    return found.number("factor") or 1.0


def _theta(text: Fields) -> float | None:
    value = text.values.get("rope_theta")
    if isinstance(value, list):  # Step-3.5: one per layer
        return None
    return text.number("rope_theta", "rotary_emb_base")


def _partial(text: Fields, rope: Fields) -> float | None:
    return rope.number("partial_rotary_factor") or text.number("partial_rotary_factor", "rotary_pct")


def _rotary_dim(decoder: Decoder, rope: Fields, *, full_head_dim: bool) -> int | None:
    text = decoder.text
    head_dim = text.optional_positive("global_head_dim") if full_head_dim else None
    if text.has("kv_lora_rank", "qk_rope_head_dim"):
        return text.optional_positive("qk_rope_head_dim") if text.values.get("qk_rope_head_dim") else None
    if text.has("rotary_dim"):
        return text.positive("rotary_dim")
    return int((head_dim or decoder.head_dim) * (_partial(text, rope) or 1.0))


def _parameters(rope: Fields, theta: float | None, partial: float | None) -> tuple[tuple[str, object], ...]:
    folded: dict[str, object] = {key: value for key, value in rope.values.items() if key != "type"}
    if rope.has("type"):
        folded["rope_type"] = rope_type(rope)
    if theta is not None and "rope_theta" not in folded:
        folded["rope_theta"] = int(theta) if theta.is_integer() else theta
    if partial is not None and "partial_rotary_factor" not in folded:
        folded["partial_rotary_factor"] = partial
    return tuple((key, _frozen(value)) for key, value in sorted(folded.items()))


def _frozen(value: object) -> object:
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, Mapping):
        return tuple((str(key), _frozen(item)) for key, item in value.items())
    return value
