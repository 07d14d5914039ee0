"""The keys that a JSON option takes: the fields of its settings class, and of the classes inside it."""

from collections.abc import Iterable
from typing import Any

from tools.registry.annotations import kinds_in, names_in, settings_class
from tools.registry.interpreter import Interpreter
from tools.registry.options import Entry, deprecation
from tools.registry.values import SourceField


def read_settings(interpreter: Interpreter, classes: Iterable[type]) -> dict[str, Entry]:
    """`SpeculativeConfig.method` to entry, for these classes and those of the objects in them."""
    entries: dict[str, Entry] = {}
    waiting, seen = list(classes), set[str]()
    while waiting:
        cls = waiting.pop(0)
        if cls.__name__ in seen or interpreter.source_of(cls) is None:
            continue
        seen.add(cls.__name__)
        for field in interpreter.keys(cls):
            if field.init is True and not field.name.startswith("_"):
                entries[f"{cls.__name__}.{field.name}"] = describe_key(field)
                inner = settings_class(field.type)
                waiting += [inner] if inner and inner.__name__ not in _WHOLE else []
    return entries


_WHOLE = frozenset({"ModelConfig", "ParallelConfig", "VllmConfig", "LoadConfig"})
"""Settings that vLLM puts in itself where another class refers to them: nothing to write in a command."""


def describe_key(field: SourceField) -> Entry:
    """One key's entry; what is as usual is left out."""
    kinds = kinds_in(field.type)
    inner = settings_class(field.type)
    entry: dict[str, Any] = {"kind": "|".join(sorted(kinds - {"null"})) or "any"}
    names = names_in(field.type)
    entry |= {"choices": names} if names else {}
    entry |= {"optional": True} if "null" in kinds else {}
    entry |= {"settings": inner.__name__} if inner and inner.__name__ not in _WHOLE else {}
    return entry | deprecation(field.document)
