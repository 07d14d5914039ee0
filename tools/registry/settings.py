"""The keys that a JSON option takes: the fields of its settings class, and of the classes inside it."""

from collections.abc import Iterable

from tools.registry.annotations import settings_class
from tools.registry.interpreter import Interpreter
from tools.registry.options import Entry, deprecation
from tools.registry.strictness import describe_strictly, is_plain_dataclass, refuses_unknown_keys
from tools.registry.values import SourceField


def read_settings(interpreter: Interpreter, classes: Iterable[type]) -> dict[str, Entry]:
    """`SpeculativeConfig.method` to entry, for these classes and those of the objects in them."""
    return {
        f"{cls.__name__}.{field.name}": describe_key(interpreter, cls, field)
        for cls in _reachable(interpreter, classes)
        for field in _own_keys(interpreter, cls)
    }


def read_strict_settings(interpreter: Interpreter, classes: Iterable[type], called: Iterable[type]) -> list[str]:
    """Names of the classes that refuse keys they do not have; the others pass over them in silence.

    `called` are those that vLLM calls with the keys as arguments: a plain dataclass refuses there (SpeculativeConfig in 0.8).
    """
    strict = [cls for cls in _reachable(interpreter, classes) if refuses_unknown_keys(interpreter, cls)]
    plain = [cls for cls in called if is_plain_dataclass(interpreter, cls)]
    return [cls.__name__ for cls in [*strict, *plain]]


def _reachable(interpreter: Interpreter, classes: Iterable[type]) -> list[type]:
    waiting, found = list(classes), dict[str, type]()
    while waiting:
        cls = waiting.pop(0)
        if cls.__name__ not in found and interpreter.source_of(cls) is not None:
            found[cls.__name__] = cls
            inner = [settings_class(field.type) for field in _own_keys(interpreter, cls)]
            waiting += [one for one in inner if one and one.__name__ not in _WHOLE]
    return list(found.values())


def _own_keys(interpreter: Interpreter, cls: type) -> list[SourceField]:
    return [field for field in interpreter.keys(cls) if field.init is True and not field.name.startswith("_")]


_WHOLE = frozenset({"ModelConfig", "ParallelConfig", "VllmConfig", "LoadConfig"})
"""Settings that vLLM puts in itself where another class refers to them: nothing to write in a command."""


def describe_key(interpreter: Interpreter, cls: type, field: SourceField) -> Entry:
    """One key's entry; what is as usual is left out."""
    inner = settings_class(field.type)
    entry = describe_strictly(interpreter, cls, field)
    entry |= {"settings": inner.__name__} if inner and inner.__name__ not in _WHOLE else {}
    return entry | deprecation(field.document)
