"""Dotted keys of JSON flags (`--hf-overrides.text_config.x 3`) merged into the object they stand for. Pure."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from longreach.engine.flag_values import read_dotted_value


@dataclass(frozen=True, slots=True)
class DottedPart:
    """`--flag.key.key VALUE`; `append` for `--flag.key+ a,b`, which adds list elements."""

    path: tuple[str, ...]
    append: bool
    value: str

    def nest(self, *, suffixes: bool = True) -> dict[str, object]:
        """The value under its keys: {"a": {"b": 3}}. `suffixes`: `80g` is a number."""
        nested = read_dotted_value(json.dumps(self.value.split(",")) if self.append else self.value, suffixes=suffixes)
        for key in reversed(self.path):
            nested = {key: nested}
        assert isinstance(nested, dict), "a dotted option has at least one key"
        return nested


def merge_parts(parts: Iterable[DottedPart], *, suffixes: bool = True) -> dict[str, object]:
    """One object of all parts: objects merge, lists join, anything else gives way to what comes later."""
    merged: dict[str, object] = {}
    for part in parts:
        _merge(merged, part.nest(suffixes=suffixes))
    return merged


def _merge(target: dict[str, object], update: Mapping[str, object]) -> None:
    for key, value in update.items():
        present = target.get(key)
        if isinstance(present, dict) and isinstance(value, dict):
            _merge(present, value)
        elif isinstance(present, list) and isinstance(value, list):
            target[key] = present + value
        else:
            target[key] = value
