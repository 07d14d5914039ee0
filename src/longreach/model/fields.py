"""Typed reading of a config mapping: every wrong field is noted with what was found, then raised in one error."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from longreach.errors import InputFileError

MAX_LAYERS = 4096
MAX_SIZE = 2**40

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Fields:
    """One mapping of a config. Reading never raises: a wrong value is noted in `problems` and replaced by a harmless
    stand-in, so that one `check()` reports everything at once. Names are tried in order; null counts as absent.
    """

    name: str
    values: Mapping[str, object]
    path: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)

    def has(self, *names: str) -> bool:
        """One of the names is present and not null."""
        return any(self.values.get(name) is not None for name in names)

    def filled(self, defaults: Mapping[str, object]) -> "Fields":
        """The same fields, with defaults where a value is absent or null."""
        absent = {key: value for key, value in defaults.items() if not self.has(key)}
        return Fields(self.name, {**self.values, **absent}, self.path, self.problems) if absent else self

    def positive(self, *names: str, most: int = MAX_SIZE) -> int:
        """A required whole number of at least one."""
        value = self.optional_positive(*names, most=most)
        if value is None:
            self._note_missing(names)
            return 1
        return value

    def optional_positive(self, *names: str, most: int = MAX_SIZE) -> int | None:
        """A whole number of at least one, or None when absent."""
        return self._read(names, f"a whole number from 1 to {most:,}", lambda value: _whole(value, 1, most), 1)

    def count(self, *names: str, most: int = MAX_SIZE) -> int:
        """A whole number of at least zero; zero when absent."""
        value = self._read(names, f"a whole number from 0 to {most:,}", lambda value: _whole(value, 0, most), 0)
        return 0 if value is None else value

    def number(self, *names: str) -> float | None:
        """A finite number above zero, or None when absent."""
        return self._read(names, "a number above zero", _number, 1.0)

    def flag(self, *names: str, default: bool = False) -> bool:
        """True or false."""
        value = self._read(names, "true or false", lambda found: found if isinstance(found, bool) else None, default)
        return default if value is None else value

    def text(self, *names: str) -> str | None:
        """A string, or None when absent."""
        return self._read(names, "a string", lambda value: value if isinstance(value, str) else None, "")

    def texts(self, *names: str) -> tuple[str, ...] | None:
        """A list of strings, or None when absent."""
        none: tuple[str, ...] = ()
        return self._read(names, "a list of strings", _texts, none)

    def counts(self, *names: str) -> tuple[int, ...] | None:
        """A list of whole numbers of at least zero, or None when absent."""
        none: tuple[int, ...] = ()
        return self._read(names, "a list of whole numbers", _whole_list, none)

    def mappings(self, *names: str) -> "tuple[Fields, ...] | None":
        """A list of objects, or None when absent."""
        none: tuple[Mapping[object, object], ...] = ()
        found = self._read(names, "a list of objects", _mappings, none)
        if found is None:
            return None
        return tuple(self._inside(names[0], str(index), values=item) for index, item in enumerate(found))

    def nested(self, *names: str) -> "Fields | None":
        """A nested object, or None when absent."""
        for name in names:
            if self.has(name):
                value = self.values[name]
                if isinstance(value, Mapping):
                    return self._inside(name, values=value)
                self.note(name, value, "an object")
        return None

    def per_layer(self, length: int, values: Sequence[_T] | None, field_name: str) -> tuple[_T, ...] | None:
        """The list, when it has one entry a layer; any other length is noted. Entries of MTP layers may follow."""
        if values is None:
            return None
        if len(values) not in (length, length + self.count("num_nextn_predict_layers", "mtp_num_hidden_layers")):
            self.problems.append(
                f"{self._label(field_name)}: {len(values)} entries, expected one for each of {length} layers"
            )
            return None
        return tuple(values[:length])

    def note(self, field_name: str, found: object, expected: str) -> None:
        """Remember that a field does not hold what it must."""
        self.problems.append(f"{self._label(field_name)}: found {_shown(found)}, expected {expected}")

    def check(self) -> None:
        """Raise InputFileError when anything was noted."""
        if self.problems:
            unique = tuple(dict.fromkeys(self.problems))
            raise InputFileError(
                f"the model config of '{self.name}' is malformed: {unique[0]}",
                "; ".join(unique),
                "correct these fields, or take config.json again from where the model was published",
            )

    def _inside(self, *keys: str, values: Mapping[object, object]) -> "Fields":
        return Fields(self.name, text_keyed(values), (*self.path, *keys), self.problems)

    def _label(self, field_name: str) -> str:
        return ".".join((*self.path, field_name))

    def _note_missing(self, names: tuple[str, ...]) -> None:
        others = f" (nor {', '.join(names[1:])})" if len(names) > 1 else ""
        self.problems.append(f"{self._label(names[0])}: missing{others}")

    def _read(
        self, names: tuple[str, ...], expected: str, convert: Callable[[object], _T | None], bad: _T
    ) -> _T | None:
        for name in names:
            if self.has(name):
                value = convert(self.values[name])
                if value is None:
                    self.note(name, self.values[name], expected)
                    return bad
                return value
        return None


def text_keyed(values: Mapping[object, object]) -> Mapping[str, object]:
    """The mapping without keys that are not strings (JSON has none)."""
    return {key: value for key, value in values.items() if isinstance(key, str)}


def _whole(value: object, least: int, most: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if least <= value <= most else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value <= MAX_SIZE**2 and math.isfinite(value) else None


def _texts(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list | tuple):
        return None
    texts = tuple(item for item in value if isinstance(item, str))
    return texts if len(texts) == len(value) else None


def _mappings(value: object) -> tuple[Mapping[object, object], ...] | None:
    if not isinstance(value, list | tuple):
        return None
    mappings = tuple(item for item in value if isinstance(item, Mapping))
    return mappings if len(mappings) == len(value) else None


def _whole_list(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, list | tuple):
        return None
    numbers = tuple(number for number in (_whole(item, 0, MAX_SIZE) for item in value) if number is not None)
    return numbers if len(numbers) == len(value) else None


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
