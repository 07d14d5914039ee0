"""Rope and length as a foreign command writes them over the model's config: LR136, LR970 to LR976. Pure."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from longreach.engine.flag_values import write_value
from longreach.model.spec import ModelSpec, RopeSpec
from longreach.rules.edit import Edit
from longreach.rules.overrides import overrides_of
from longreach.rules.rule import Diagnosis, rule
from longreach.rules.written import CommandRule, WrittenCommand
from longreach.sizing.overrides import (
    NESTED_SINCE,
    ROPE_KEYS,
    RopeInForce,
    filled_theta,
    read_rope_in_force,
    rope_dict_key,
    text_overrides,
    unread_keys,
)

_OVERRIDES = "--hf-overrides"
_FLAGS = ("--rope-scaling", "--rope-theta")

Json = Mapping[str, object]


class _Setting(NamedTuple):
    """The model's own rope, what the command writes over it, and what the language model gets."""

    model: ModelSpec
    rope: RopeSpec
    overrides: Json
    in_force: RopeInForce


def _setting(written: WrittenCommand) -> _Setting | None:
    """None where nothing is overridden, or where that cannot be judged."""
    model, overrides = written.model, overrides_of(written)
    if model is None or model.rope is None or not overrides:
        return None
    in_force = read_rope_in_force(model, overrides, written.release)
    return None if in_force is None else _Setting(model, model.rope, overrides, in_force)


@rule(
    "LR970",
    "error",
    "hf_override_wrong_level",
    "the override is where the model does not read it",
    outcome="no_effect",
)
def hf_override_wrong_level(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Around a nested language model the outer config takes any key and hands none down."""
    found = _setting(written)
    if found is None or not found.rope.override_path:
        return
    unread = [key for key in unread_keys(found.overrides, found.rope, written.release) if key in found.overrides]
    if not unread:
        return
    path, can_nest = ".".join(found.rope.override_path), written.release.number >= NESTED_SINCE
    moved = _moved_inside(found, unread)
    yield Diagnosis(
        f"{_written_as(written, unread)} does nothing to '{found.model.name}'",
        f"its language model is nested under '{path}': vLLM {written.release.version} sets the outer keys and reads the inner "
        f"ones, so the rope stays unscaled and the length {found.in_force.derived_tokens}",
        f"{_OVERRIDES} '{write_value(moved)}'"
        if can_nest
        else "use vLLM 0.11.2 or later, or edit a copy of config.json",
        edit=_set_overrides(moved) if can_nest else None,
    )


def _written_as(written: WrittenCommand, keys: list[str]) -> str:
    """The keys, or the flags of earlier releases that say them."""
    flags = {name.removeprefix("--").replace("-", "_"): name for name in _FLAGS if written.parsed.named(name)}
    if set(keys) <= set(flags):
        return " and ".join(flags[key] for key in keys)
    return f"{', '.join(keys)} at the top level of {_OVERRIDES}"


def _moved_inside(found: _Setting, keys: list[str]) -> Json:
    """The overrides with these keys under the language model's path, where they are merged."""
    outside = {key: value for key, value in found.overrides.items() if key not in keys}
    inside = {**text_overrides(found.overrides, found.rope.override_path)}
    inside |= {key: value for key, value in found.overrides.items() if key in keys}
    rope = inside.pop("rope_scaling", None)
    if isinstance(rope, Mapping):
        inside.setdefault("rope_parameters", rope)
    return {**outside, **_nested(found.rope.override_path, _with_length(found.model, inside))}


def _nested(path: tuple[str, ...], inside: Json) -> Json:
    for key in reversed(path):
        inside = {key: inside}
    return inside


def _with_length(model: ModelSpec, inside: Json) -> Json:
    """`max_position_embeddings` beside YaRN: needed from 0.30 on, harmless before."""
    rope = inside.get("rope_parameters")
    scaled = _scaled_length(rope) if isinstance(rope, Mapping) else None
    if scaled is None or "max_position_embeddings" in inside or scaled <= model.max_position_embeddings:
        return inside
    return {**inside, "max_position_embeddings": scaled}


def _scaled_length(rope: Json) -> int | None:
    factor, original = rope.get("factor"), rope.get("original_max_position_embeddings")
    if rope.get("rope_type", rope.get("type")) != "yarn":
        return None
    return round(factor * original) if isinstance(factor, int | float) and isinstance(original, int) else None


def _set_overrides(overrides: Json) -> Edit:
    return Edit(set=((_OVERRIDES, (write_value(overrides),)),), remove=_FLAGS)


@rule(
    "LR971",
    "error",
    "rope_theta_dropped",
    "a rope dict at the top level lacks the base",
    first="0.12.0",
    outcome="no_effect",
)
def rope_theta_dropped(written: WrittenCommand) -> Iterator[Diagnosis]:
    """A rope dict at the top level replaces the config's own; what is not repeated falls back to the class's base."""
    found = _setting(written)
    if found is None or found.rope.override_path or not found.in_force.is_overridden:
        return
    own, filled = found.rope.theta, filled_theta(found.model.architecture)
    if own is None or found.in_force.theta == own:
        return
    if found.in_force.theta != filled:
        return  # another base is asked for by name
    key = next(key for key in ROPE_KEYS if isinstance(found.overrides.get(key), Mapping))
    written_rope = found.overrides[key]
    assert isinstance(written_rope, Mapping)
    whole = {**found.overrides, key: {**written_rope, "rope_theta": int(own) if own.is_integer() else own}}
    yield Diagnosis(
        f"the {key} of {_OVERRIDES} does not repeat rope_theta {own:.0f}",
        f"a dict at the top level replaces the config's own: {found.model.architecture} then computes with base {filled:.0f}, "
        "and the answers are wrong without a message",
        f'add "rope_theta": {own:.0f} to it',
        edit=_set_overrides(whole),
    )


@rule(
    "LR972",
    "error",
    "rope_key_of_later_release",
    "this release does not read rope_parameters",
    last="0.11.2",
    outcome="no_effect",
)
def rope_key_of_later_release(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Up to 0.11 the dict is called rope_scaling and its base stands beside it."""
    found = _setting(written)
    if found is None or rope_dict_key(written.release) == "rope_parameters":
        return
    inside = dict(text_overrides(found.overrides, found.rope.override_path))
    rope = inside.pop("rope_parameters", None)
    if not isinstance(rope, Mapping):
        return
    dict_of_old = {key: value for key, value in rope.items() if key != "rope_theta"}
    beside = {"rope_theta": rope["rope_theta"]} if "rope_theta" in rope else {}
    outside = {
        key: value
        for key, value in found.overrides.items()
        if key not in ("rope_parameters", *found.rope.override_path)
    }
    whole = {**outside, **_nested(found.rope.override_path, {**inside, "rope_scaling": dict_of_old, **beside})}
    yield Diagnosis(
        f"rope_parameters in {_OVERRIDES} is not read by vLLM {written.release.version}",
        "its models read rope_scaling, and rope_theta beside it; the new name came with 0.12",
        f"{_OVERRIDES} '{write_value(whole)}'",
        edit=_set_overrides(whole),
    )


@rule(
    "LR973",
    "warning",
    "rope_key_of_earlier_release",
    "rope_scaling is the old name of the rope dict",
    first="0.12.0",
    last="0.22.1",
    outcome="no_effect",
)
def rope_key_of_earlier_release(written: WrittenCommand) -> Iterator[Diagnosis]:
    """With transformers 4 the override comes after the old name was read; with transformers 5 it is an alias."""
    found = _setting(written)
    if found is None or "rope_scaling" not in text_overrides(found.overrides, found.rope.override_path):
        return
    inside = dict(text_overrides(found.overrides, found.rope.override_path))
    inside.setdefault("rope_parameters", inside.pop("rope_scaling"))
    outside = {
        key: value for key, value in found.overrides.items() if key not in ("rope_scaling", *found.rope.override_path)
    }
    whole = {**outside, **_nested(found.rope.override_path, inside)}
    yield Diagnosis(
        f"rope_scaling in {_OVERRIDES} may not be read by vLLM {written.release.version}",
        "from 0.12 on models read rope_parameters; with transformers 4 the old name is copied over before overrides are applied",
        f"call it rope_parameters: {_OVERRIDES} '{write_value(whole)}'",
        edit=_set_overrides(whole),
    )


@rule(
    "LR974",
    "error",
    "yarn_without_max_position_embeddings",
    "YaRN alone does not raise the length",
    first="0.30.0",
    outcome="refused_at_start",
)
def yarn_without_max_position_embeddings(written: WrittenCommand) -> Iterator[Diagnosis]:
    """From 0.30 the factor is not multiplied: the length must stand in the override as well."""
    found, length = _setting(written), written.options.max_model_len
    if found is None or length is None or length <= found.in_force.derived_tokens:
        return
    yarn = found.in_force.yarn(found.rope.override_path)
    if (
        yarn is None
        or yarn.max_position_embeddings < length
        or written.variable("VLLM_ALLOW_LONG_MAX_MODEL_LEN") == "1"
    ):
        return
    inside = {**text_overrides(found.overrides, found.rope.override_path)}
    inside["max_position_embeddings"] = yarn.max_position_embeddings
    outside = {key: value for key, value in found.overrides.items() if key not in found.rope.override_path}
    whole = {**outside, **_nested(found.rope.override_path, inside)} if found.rope.override_path else inside
    yield Diagnosis(
        f"max-model-len {length} is refused: YaRN factor {yarn.factor:g} alone does not raise max_position_embeddings "
        f"{found.in_force.max_position_embeddings}",
        f"up to 0.29 vLLM took {yarn.factor:g} x {yarn.original_max_position_embeddings}; from 0.30 on the config's length must "
        "be the scaled one already",
        f"{_OVERRIDES} '{write_value(whole)}'",
        edit=_set_overrides(whole),
    )


@rule(
    "LR975",
    "error",
    "nested_override_unsupported",
    "this release cannot override inside a nested config",
    last="0.11.0",
    outcome="refused_at_start",
)
def nested_override_unsupported(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Before 0.11.2 an override replaces the nested config by its few keys."""
    found = _setting(written)
    if found is None or not found.rope.override_path or found.rope.override_path[0] not in found.overrides:
        return
    key = found.rope.override_path[0]
    yield Diagnosis(
        f"'{key}' in {_OVERRIDES} replaces the whole language model's config on vLLM {written.release.version}",
        "overrides are merged into a nested config from 0.11.2 on; before, the dict takes its place and the start fails",
        "use vLLM 0.11.2 or later, or edit config.json in a local copy of the model",
    )


@rule("LR976", "advice", "yarn_without_longer_length", "YaRN without --max-model-len", outcome="no_effect")
def yarn_without_longer_length(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Where the derived length does not grow, all of YaRN's cost is paid for none of its use."""
    found = _setting(written)
    if found is None or written.parsed.named("--max-model-len"):
        return
    yarn = found.in_force.yarn(found.rope.override_path)
    if yarn is None or found.in_force.derived_tokens >= yarn.max_position_embeddings:
        return
    yield Diagnosis(
        f"YaRN reaches {yarn.max_position_embeddings} tokens and the server takes {found.in_force.derived_tokens}",
        f"without --max-model-len the length is max_position_embeddings, which vLLM {written.release.version} does not multiply",
        f"set --max-model-len {yarn.max_position_embeddings}, and max_position_embeddings to it in {_OVERRIDES}",
    )


@rule("LR136", "warning", "positions_raised_without_rope", "the length is raised and nothing stretches the positions")
def positions_raised_without_rope(written: WrittenCommand) -> Iterator[Diagnosis]:
    """The engine believes max_position_embeddings; the model was trained on fewer positions."""
    found = _setting(written)
    if found is None or found.in_force.rope_type != "default" or (found.in_force.factor or 1.0) > 1.0:
        return
    own = found.model.native_context_tokens or found.model.max_position_embeddings
    length = written.options.max_model_len or found.in_force.default_tokens
    if found.in_force.max_position_embeddings <= found.model.max_position_embeddings or length <= own:
        return
    yield Diagnosis(
        f"{_OVERRIDES} raises max_position_embeddings to {found.in_force.max_position_embeddings} without a rope that stretches",
        f"vLLM accepts {length} tokens, and positions beyond {own} were never trained: answers about long prompts decay "
        "without any message",
        f"add a rope dict that stretches by {length / own:.3g} or more, or set --max-model-len to {own}",
    )


RULES: tuple[CommandRule, ...] = (
    positions_raised_without_rope,
    hf_override_wrong_level,
    rope_theta_dropped,
    rope_key_of_later_release,
    rope_key_of_earlier_release,
    yarn_without_max_position_embeddings,
    nested_override_unsupported,
    yarn_without_longer_length,
)
