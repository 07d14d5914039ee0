"""What the interpreter's values stand for where Python's own do not do."""

import ast
import copy
import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Unknown:
    """A value that the source alone does not tell, written as its expression.

    It may stand in an annotation, hence it can be united with other types and looks callable to `typing`.
    """

    text: str

    def __or__(self, other: object) -> object:
        return typing.Union[self, other]  # noqa: UP007 - the operator is what is being defined

    def __ror__(self, other: object) -> object:
        return typing.Union[other, self]  # noqa: UP007

    def __call__(self) -> "Unknown":
        return Unknown(f"{self.text}()")


@dataclass
class Scope:
    """Where an expression stands: its module, the variables around it, the class whose method it is in."""

    module: str
    variables: dict[str, Any] = field(default_factory=dict)
    outer: "Scope | None" = None
    owner: type | None = None  # the class that defines the running method
    bound: Any = None  # what it was called on

    def inner(self, variables: Mapping[str, Any] | None = None) -> "Scope":
        return Scope(self.module, dict(variables or {}), self, self.owner, self.bound)


@dataclass
class SourceFunction:
    """A function or lambda of the source with what it closes over; calling it runs its body symbolically."""

    node: ast.FunctionDef | ast.Lambda
    scope: Scope
    defaults: dict[str, Any]
    owner: type | None = None
    bound: Any = None

    @property
    def name(self) -> str:
        return self.node.name if isinstance(self.node, ast.FunctionDef) else "<lambda>"


@dataclass(frozen=True)
class SourceModule:
    """A module of the release as a value."""

    name: str


@dataclass(frozen=True)
class Super:
    """`super()` inside a method."""

    owner: type
    bound: Any


@dataclass
class SourceField:
    """A field of a settings class, with the attributes that vLLM asks of `dataclasses.Field`."""

    name: str
    type: Any
    default: Any = field(default_factory=lambda: dataclasses.MISSING)  # written plainly it would mean: none
    default_factory: Any = field(default_factory=lambda: dataclasses.MISSING)
    init: bool = True
    document: str = ""
    owner: str = ""

    @property
    def mark(self) -> str:
        """Leads the field's help text, so that an option can be traced to the field that it fills."""
        return f"\x01{self.owner}.{self.name}\x01"


@dataclass(frozen=True)
class Instance:
    """An object of a class of the source, built with what was passed."""

    cls: type


class SourceRaisedError(Exception):
    """The source raised an error on the way that was followed."""


@dataclass
class Recorder:
    """Stands for the argument parser and its groups, and keeps every `add_argument`."""

    arguments: list[tuple[tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    def add_argument(self, *names: Any, **keywords: Any) -> None:
        self.arguments.append((names, copy_containers(keywords)))

    def add_argument_group(self, *_names: Any, **_keywords: Any) -> "Recorder":
        return self

    def add_parser(self, *_names: Any, **_keywords: Any) -> "Recorder":
        return self

    add_mutually_exclusive_group = add_argument_group


def copy_containers(value: Any) -> Any:
    """A deep copy of lists, dicts and sets; everything inside them is shared."""
    if isinstance(value, dict):
        return {key: copy_containers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copy_containers(item) for item in value]
    return copy.copy(value) if isinstance(value, set) else value
