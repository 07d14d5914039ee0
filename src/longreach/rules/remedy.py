"""A remedy: the change of engine options that makes a finding vanish. Pure."""

from dataclasses import dataclass, fields, replace
from typing import Any

from longreach.engine.options import EngineOptions

_OPTION_NAMES = frozenset(field.name for field in fields(EngineOptions))


@dataclass(frozen=True, slots=True)
class Remedy:
    """Fields of `EngineOptions` and the values to give them; a nested value is replaced as a whole."""

    changes: tuple[tuple[str, object], ...]

    def __post_init__(self) -> None:
        unknown = [name for name, _ in self.changes if name not in _OPTION_NAMES]
        assert not unknown, f"a remedy names fields that EngineOptions does not have: {unknown}"
        assert self.changes, "a remedy changes something"


def set_option(name: str, value: object) -> Remedy:
    """The remedy that changes one option."""
    return Remedy(((name, value),))


def add_environment(options: EngineOptions, name: str, value: str) -> Remedy:
    """The remedy that adds or replaces one environment variable and keeps the others."""
    others = tuple(pair for pair in options.env if pair[0] != name)
    return set_option("env", (*others, (name, value)))


def apply_remedy(options: EngineOptions, remedy: Remedy) -> EngineOptions:
    """The options with the remedy's changes made."""
    changes: dict[str, Any] = dict(remedy.changes)
    return replace(options, **changes)
