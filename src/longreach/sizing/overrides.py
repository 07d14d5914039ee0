"""What `--hf-overrides` makes of a model's rope and of the length that follows from it, as one release reads them. Pure.

vLLM merges an override into a nested config key by key (from 0.11.2) and lets a dict at the top level replace the config's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from longreach.engine.options import YARN_KEYS, YarnOptions
from longreach.engine.release import Release
from longreach.model.spec import ModelSpec, RopeSpec

Json = Mapping[str, object]

NESTED_SINCE = (0, 11, 2)
"""Before, an override of a nested config replaces the whole of it, and the start fails."""

ROPE_PARAMETERS_SINCE = (0, 12)
"""The rope dict's name in a config; before it is `rope_scaling`, with `rope_theta` beside it."""

ROPE_KEYS = ("rope_parameters", "rope_scaling", "rope_theta")
TEXT_KEYS = (*ROPE_KEYS, "max_position_embeddings", "original_max_position_embeddings", "partial_rotary_factor")
"""Keys of a language model's config that have no meaning in the config around it."""

_STATES_SCALED_LENGTH = ("su", "longrope", "llama3")
_YARN_TYPES = ("yarn", "deepseek_yarn", "deepseek_llama_scaling")  # from 0.30 their length is the scaled one, too
_FILLED_THETA = {
    "Qwen2ForCausalLM": 1e6,
    "Qwen3ForCausalLM": 1e6,
    "SeedOssForCausalLM": 1e6,
    "Exaone4ForCausalLM": 1e6,
    "ExaoneMoEForCausalLM": 1e6,
    "Ernie4_5_MoeForCausalLM": 5e5,
    "Ernie4_5_VLMoeForConditionalGeneration": 5e5,
    "FalconH1ForCausalLM": 1e11,
}  # classes that fill in a base when the dict has none (set_default_rope_theta)
_USUAL_THETA = 1e4


@dataclass(frozen=True, slots=True)
class RopeInForce:
    """The rotary embedding that the language model is built with, and the length that vLLM derives."""

    rope_type: str
    factor: float | None
    original_max_position_embeddings: int | None
    theta: float | None
    max_position_embeddings: int  # the config's own or the override's, before any factor
    derived_tokens: int  # the most --max-model-len may be
    default_tokens: int  # what it is without the flag
    parameters: tuple[tuple[str, object], ...]  # of the rope dict, without the keys that YaRN sets
    is_overridden: bool = False  # an override reached it

    def yarn(self, path: tuple[str, ...]) -> YarnOptions | None:
        """The YaRN that an override asks for; None where it asks for none."""
        if not self.is_overridden or self.rope_type != "yarn":
            return None
        if self.factor is None or self.original_max_position_embeddings is None:
            return None
        return YarnOptions(self.factor, self.original_max_position_embeddings, path, self.parameters)


def filled_theta(architecture: str) -> float:
    """The base of a rope dict without `rope_theta`."""
    return _FILLED_THETA.get(architecture, _USUAL_THETA)


def text_overrides(overrides: Json, path: tuple[str, ...]) -> Json:
    """The part of the overrides that lands where the language model's config is."""
    for key in path:
        inner = overrides.get(key)
        overrides = inner if isinstance(inner, Mapping) else {}
    return overrides


def unread_keys(overrides: Json, rope: RopeSpec, release: Release) -> tuple[str, ...]:
    """Keys at the top level that the language model's nested config never sees, and rope keys that the release does not read."""
    other = "rope_scaling" if rope_dict_key(release) == "rope_parameters" else "rope_parameters"
    misplaced = [key for key in TEXT_KEYS if key in overrides] if rope.override_path else []
    if other == "rope_parameters" and other in text_overrides(overrides, rope.override_path):
        misplaced.append(other)
    return tuple(dict.fromkeys(misplaced))


def rope_dict_key(release: Release) -> str:
    """What the rope dict of a config is called in this release."""
    return "rope_parameters" if release.number >= ROPE_PARAMETERS_SINCE else "rope_scaling"


def read_rope_in_force(model: ModelSpec, overrides: Json, release: Release) -> RopeInForce | None:
    """The rope of the model under these overrides; None where the model's own is not known or differs from layer to layer."""
    own = model.rope
    if own is None or own.layer_dependent:
        return None
    text = text_overrides(overrides, own.override_path)
    written = _written_rope(text, release)
    theta = _number(text.get("rope_theta")) or own.theta
    raw = _count(text.get("max_position_embeddings"))
    if written is None:
        parameters = dict(own.parameters)
        rope_type, factor, original = own.rope_type, own.factor, own.original_max_position_embeddings
    else:
        # A nested config is merged key by key, and up to 0.11 the base stands beside the dict.
        parameters = (dict(own.parameters) if own.override_path else {}) | dict(written)
        rope_type = str(parameters.get("rope_type") or parameters.get("type") or "default")
        factor = _number(parameters.get("factor"))
        original = _count(parameters.get("original_max_position_embeddings"))
        theta = _theta(parameters, theta, model, release)
    raw = raw or _raw_length(model, own)
    derived = _derived(model, release, rope_type, factor, original, raw)
    shortened = rope_type == "longrope" and release.number >= NESTED_SINCE
    return RopeInForce(
        rope_type=rope_type,
        factor=factor,
        original_max_position_embeddings=original,
        theta=theta,
        max_position_embeddings=raw,
        derived_tokens=derived,
        default_tokens=(original or derived) if shortened else derived,
        parameters=tuple((key, value) for key, value in parameters.items() if key not in YARN_KEYS),
        is_overridden=written is not None,
    )


def _written_rope(text: Json, release: Release) -> Json | None:
    """The rope dict of an override. From 0.12 on the older name is an alias, at the latest with transformers 5."""
    names = ("rope_parameters", "rope_scaling") if rope_dict_key(release) == "rope_parameters" else ("rope_scaling",)
    return next((found for name in names if isinstance(found := text.get(name), Mapping)), None)


def _theta(parameters: Json, beside: float | None, model: ModelSpec, release: Release) -> float | None:
    inside = _number(parameters.get("rope_theta"))
    if inside is not None:
        return inside
    return beside if release.number < ROPE_PARAMETERS_SINCE else filled_theta(model.architecture)


def _raw_length(model: ModelSpec, own: RopeSpec) -> int:
    """`max_position_embeddings` without the factor that `ModelSpec` multiplies into it."""
    if own.rope_type in (*_STATES_SCALED_LENGTH, *_YARN_TYPES) or "gemma3" in model.model_type:
        return model.max_position_embeddings
    return int(model.max_position_embeddings / (own.factor or 1.0))


def _derived(
    model: ModelSpec, release: Release, rope_type: str, factor: float | None, original: int | None, raw: int
) -> int:
    states_scaled: tuple[str, ...] = _STATES_SCALED_LENGTH
    if release.yarn_needs_max_position_embeddings:
        states_scaled += _YARN_TYPES
    if rope_type in states_scaled or "gemma3" in model.model_type:
        return raw
    length = original if rope_type == "yarn" and original is not None else raw
    return int(length * (factor or 1.0))


def _number(value: object) -> float | None:
    """None also for NaN and what no rope can be computed from."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _MOST:
        return None
    return float(value)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MOST else None


_MOST = 1e30
