"""What a type that annotates a field tells of its values."""

import dataclasses
from enum import Enum
from typing import Any, Literal, get_args, get_origin

UNCHECKED = "unchecked"
"""Marks an annotation that pydantic is told not to look at."""


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
