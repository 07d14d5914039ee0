"""What a type that annotates a field tells of its values."""

import dataclasses
import types
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from tools.registry.values import Unknown

_KINDS: dict[Any, str] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "text",
    list: "list",
    tuple: "list",
    set: "list",
    frozenset: "list",
    dict: "json",
}


def names_in(annotation: Any) -> list[Any]:
    """Values of the Literals and names of the members of the Enums in a type, unions and lists opened."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return sorted(annotation.__members__)
    if get_origin(annotation) is Literal:
        return sorted((name for name in get_args(annotation) if name is not None), key=str)
    if get_origin(annotation) is dict:
        return []
    return [name for part in get_args(annotation) for name in names_in(part)]


def settings_class(annotation: Any) -> type | None:
    """The class of the source in a type, unions opened."""
    if isinstance(annotation, type) and annotation.__module__.startswith("vllm.") and not issubclass(annotation, Enum):
        return annotation
    if isinstance(annotation, dataclasses.InitVar):
        return settings_class(annotation.type)
    if get_origin(annotation) in {list, dict, tuple}:
        return None
    return next((found for part in get_args(annotation) if (found := settings_class(part))), None)


def kinds_in(annotation: Any) -> set[str]:
    """Kinds of JSON values that a type takes: "bool", "int", "float", "text", "list", "json", "null", "any"."""
    origin = get_origin(annotation)
    if isinstance(annotation, dataclasses.InitVar):
        return kinds_in(annotation.type)
    if origin is Annotated:
        return kinds_in(get_args(annotation)[0])
    if origin in {Union, types.UnionType}:
        return {kind for part in get_args(annotation) for kind in kinds_in(part)}
    if origin is Literal:
        return {_KINDS.get(type(name), "null") for name in get_args(annotation)}
    if annotation is None or annotation is type(None):
        return {"null"}
    if isinstance(annotation, Unknown):
        return {"any"}
    return {_kind_of_class(origin or annotation)}


def _kind_of_class(cls: Any) -> str:
    if not isinstance(cls, type):
        return "any"
    if cls in _KINDS:
        return _KINDS[cls]
    if issubclass(cls, Enum):
        return "text"  # by the name of a member
    return "json" if cls.__module__.startswith("vllm.") else "any"
