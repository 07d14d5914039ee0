"""Keys of a settings class that vLLM's parser refuses together, though each by itself is fine. Pure.

Read in the validators of the classes; `first` is the first release of the registry that has the check.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from longreach.engine.registry import version_key

_Object = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Conflict:
    """`refuses` is asked of the object as given: an absent key has its default."""

    settings: str
    text: str
    refuses: Callable[[_Object], bool]
    first: str = "0.8.5"


def check_together(settings: str, read: _Object, version: str) -> Iterator[str]:
    """What a release says about the keys of one object, its key by key checks passed."""
    number = version_key(version)
    for conflict in _CONFLICTS:
        if conflict.settings == settings and number >= version_key(conflict.first) and conflict.refuses(read):
            yield conflict.text


def _lacks(wanted: str, given: str) -> Callable[[_Object], bool]:
    return lambda read: read.get(given) is not None and read.get(wanted) is None


def _numbers(read: _Object, key: str) -> list[float]:
    values = read.get(key)
    return [value for value in values if isinstance(value, int | float)] if isinstance(values, list) else []


def _texts(read: _Object, key: str) -> list[str]:
    values = read.get(key)
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def _is_bad_op(name: str) -> bool:
    return name not in ("all", "none") and (len(name) < 2 or name[0] not in "+-")


def _ops_conflict(read: _Object) -> bool:
    names = _texts(read, "custom_ops")
    bases = [name for name in names if name in ("all", "none")]
    return len(bases) > 1 or any(f"-{name[1:]}" in names for name in names if name.startswith("+"))


_CONFLICTS: tuple[_Conflict, ...] = (
    _Conflict(
        "KVTransferConfig",
        "kv_connector needs kv_role (kv_both, kv_producer or kv_consumer)",
        _lacks("kv_role", "kv_connector"),
    ),
    _Conflict(
        "ECTransferConfig",
        "ec_connector needs ec_role (ec_both, ec_producer or ec_consumer)",
        _lacks("ec_role", "ec_connector"),
    ),
)
