"""Objects of JSON to the values of this room, strictly: what was edited by hand or came from elsewhere is refused by its field.

Types are never converted, and every number is one that can be: finite, not negative, at most 10^15.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

if TYPE_CHECKING:
    from cattrs import Converter

_Shape = TypeVar("_Shape")
_MOST = 10**15  # tokens or seconds
_MAX_PROBLEMS = 3
_WORDS: Mapping[type, str] = {bool: "true or false", str: "a text", int: "a whole number", float: "a number"}


def structure(document: Mapping[str, Any], shape: type[_Shape]) -> _Shape:
    """The value; keys that it has no field for are passed over. ValueError says which field is wrong, and how."""
    # Imported here: 70 ms that only those who read a file pay.
    from cattrs import transform_error

    try:
        return _converter(explains=False).structure(document, shape)
    except Exception:  # noqa: BLE001 - of a fast attempt: the slow one tells what is wrong
        try:
            return _converter(explains=True).structure(document, shape)
        except Exception as error:  # whatever cattrs raises is about the document
            problems = transform_error(error, path="it", format_exception=_said)
            raise ValueError("; ".join(problems[:_MAX_PROBLEMS]).replace("it.", "")) from error


def _said(error: BaseException, _kind: type | None) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return "expected an object" if isinstance(error, TypeError) else str(error)


@cache
def _converter(*, explains: bool) -> "Converter":
    from cattrs import Converter

    converter = Converter(detailed_validation=explains)
    for kind, hook in ((bool, _typed), (str, _typed), (int, _number), (float, _number)):
        converter.register_structure_hook(kind, hook)
    converter.register_structure_hook_factory(_is_a(Literal), _choice)
    converter.register_structure_hook_factory(_is_a(tuple), lambda kind: _row(kind, converter))
    return converter


def _is_a(origin: Any) -> Callable[[Any], bool]:
    return lambda kind: get_origin(kind) is origin


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"expected {_WORDS[kind]}, not {value!r:.40}")
    return value


def _number(value: Any, kind: Any) -> Any:
    """An int stands for a float too, a bool for neither."""
    if type(value) not in ((int, float) if kind is float else (int,)):
        raise ValueError(f"expected {_WORDS[kind]}, not {value!r:.40}")
    if not 0 <= value <= _MOST:  # false of what is no number
        raise ValueError(f"expected a number from 0 to 10^15, not {value!r:.40}")
    return value


def _choice(kind: Any) -> Callable[[Any, Any], Any]:
    known = get_args(kind)

    def choose(value: Any, _kind: Any) -> Any:
        if value not in known:
            raise ValueError(f"expected one of {', '.join(map(str, known))}, not {value!r:.40}")
        return value

    return choose


def _row(kind: Any, converter: "Converter") -> Callable[[Any, Any], tuple[Any, ...]]:
    """A JSON list, of any length or with one kind a place."""
    kinds = get_args(kind)
    if kinds[-1] is Ellipsis:
        each = converter.get_structure_hook(kinds[0])
        return lambda value, _kind: tuple(each(part, kinds[0]) for part in _list(value))
    hooks = [converter.get_structure_hook(part) for part in kinds]
    return lambda value, _kind: tuple(
        hook(part, kind) for hook, kind, part in zip(hooks, kinds, _list(value, len(kinds)), strict=True)
    )


def _list(value: Any, length: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise ValueError(f"expected a list{'' if length is None else f' of {length}'}, not {value!r:.40}")
    return value
