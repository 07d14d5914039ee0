"""How strictly a settings class takes its JSON: types down to the elements, limits, validators, unknown keys."""

import ast
import dataclasses
import enum
import math
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from tools.registry.annotations import UNCHECKED
from tools.registry.interpreter import Interpreter
from tools.registry.values import SourceField, SourceFunction, Unknown

_PLAIN: dict[Any, str] = {bool: "bool", int: "int", float: "float", str: "text"}
_LISTS = (list, tuple, set, frozenset)
_OWN_WORD = re.compile(r"\.lower\(\) == '(\w+)'")


@dataclass(frozen=True)
class Alternative:
    """One of the things a key takes."""

    kind: str
    names: tuple[str | int, ...] = ()  # the only values
    members: tuple[str, ...] = ()  # names of an Enum's members, by which only a validator finds them


@dataclass(frozen=True)
class Validator:
    """A validator of fields: `mode` is "before", "after" or "wrap"."""

    mode: str
    text: str
    taken: Alternative | None  # what it takes on top of the field's type
    tables: tuple[str, ...] = ()  # names in the tables that it looks into


def describe_strictly(interpreter: Interpreter, cls: type, field: SourceField) -> dict[str, Any]:
    """What the parser checks of one key: kind, choices, limits, whether null is taken."""
    found = [*(_taken_by_schema(interpreter, cls, field.type) or alternatives(field.type))]
    validators = validators_of(interpreter, cls, field.name)
    for validator in validators:
        if validator.mode == "before":
            found = [
                replace(one, names=one.names or validator.tables) if one.kind == "map[text]" else one for one in found
            ]
            found += [validator.taken] if validator.taken else []
    before = " ".join(validator.text for validator in validators if validator.mode == "before")
    by_name = ".upper()" in before
    kinds = {one.kind for one in found} - {"null"}
    names = [name for one in found for name in (one.members if one.members and by_name else one.names)]
    entry: dict[str, Any] = {"kind": "|".join(sorted(kinds)) or "any"}
    if not any(one.kind == "text" and not one.names and not one.members for one in found):
        names += _OWN_WORD.findall(before) if names else []
        entry |= {"choices": sorted(set(names), key=str)} if names else {}
    entry |= {"folds": True} if "choices" in entry and (by_name or ".replace('-', '_')" in before) else {}
    skips_none = any(validator.mode == "wrap" and "is None" in validator.text for validator in validators)
    entry |= {"optional": True} if skips_none or any(one.kind == "null" for one in found) else {}
    return entry | limits(interpreter, cls, field.name, whole="float" not in kinds)


def alternatives(annotation: Any) -> Iterator[Alternative]:
    """Every kind of value that a type takes; the kind "null" for None."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, dataclasses.InitVar):
        yield from alternatives(annotation.type)
    elif origin is Annotated and UNCHECKED in parts:
        yield Alternative("any")
    elif origin is Annotated:
        yield from alternatives(parts[0])
    elif origin in {Union, types.UnionType}:
        for part in parts:
            yield from alternatives(part)
    elif origin is Literal:
        for name in parts:
            yield Alternative("null") if name is None else Alternative(_PLAIN[type(name)], (name,))
    elif annotation is None or annotation is type(None):
        yield Alternative("null")
    elif origin in _LISTS or origin is dict:
        yield _container("list" if origin in _LISTS else "map", parts[-1 if origin is dict else 0])
    elif isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        yield from _members(annotation)
    else:
        yield _single(annotation)


def _container(outer: str, element: Any) -> Alternative:
    inner = list(alternatives(element))
    kinds = sorted({one.kind for one in inner})
    if not {*kinds} <= {*_PLAIN.values()}:
        return Alternative("json" if outer == "map" else outer)
    is_free = any(one.kind == "text" and not one.names for one in inner)
    names = () if is_free else tuple(name for one in inner for name in one.names)
    return Alternative(f"{outer}[{'/'.join(kinds)}]", names, tuple(name for one in inner for name in one.members))


def _single(cls: Any) -> Alternative:
    if isinstance(cls, Unknown) and cls.text.endswith("Path"):
        return Alternative("text")
    if not isinstance(cls, type):
        return Alternative("any")
    if cls in _PLAIN:
        return Alternative(_PLAIN[cls])
    if cls in _LISTS or cls is dict:
        return Alternative("json" if cls is dict else "list")
    return Alternative("json" if cls.__module__.startswith("vllm.") else "any")


def _members(cls: type[enum.Enum]) -> Iterator[Alternative]:
    """By value, texts and numbers apart; the names go with the texts."""
    values = [member.value for member in cls]
    numbers = tuple(value for value in values if isinstance(value, int))
    yield Alternative("text", tuple(value for value in values if isinstance(value, str)), tuple(cls.__members__))
    if numbers:
        yield Alternative("int", numbers)


def validators_of(interpreter: Interpreter, cls: type, name: str) -> list[Validator]:
    """The validators of one field, those of the bases included."""
    found = []
    for module, node in _definitions(interpreter, cls):
        for statement in node.body:
            for call in statement.decorator_list if isinstance(statement, ast.FunctionDef) else []:
                if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("field_validator"):
                    fields = [word.value for word in call.args if isinstance(word, ast.Constant)]
                    modes = [ast.literal_eval(word.value) for word in call.keywords if word.arg == "mode"]
                    if name in fields or "*" in fields:
                        assert isinstance(statement, ast.FunctionDef)
                        found.append(_validator(interpreter, module, statement, (modes or ["after"])[0]))
    return found


def _validator(interpreter: Interpreter, module: str, node: ast.FunctionDef, mode: str) -> Validator:
    text = ast.unparse(node)
    return Validator(mode, text, _taken(interpreter, module, node), tuple(_table_names(interpreter, module, text)))


def _taken(interpreter: Interpreter, module: str, node: ast.FunctionDef) -> Alternative | None:
    """A text that a validator splits, or looks up in a table of the module; None where it only changes the text."""
    text = ast.unparse(node)
    value = node.args.args[-1 if len(node.args.args) < 3 else 1].arg
    if f"isinstance({value}, str)" not in text or ".upper()" in text or ".lower()" in text:
        return None
    if ".split(" in text:
        return Alternative("text")
    return Alternative("text", tuple(_table_names(interpreter, module, text)))


def _taken_by_schema(interpreter: Interpreter, cls: type, annotation: Any) -> list[Alternative]:
    """Of a type that names its own pydantic schema, the names in the tables that the schema's function uses."""
    texts = [part.text for part in get_args(annotation)[1:] if isinstance(part, Unknown)]
    if get_origin(annotation) is not Annotated or not texts:
        return []
    module = next(module for module, _ in _definitions(interpreter, cls))
    names = tuple(_table_names(interpreter, module, " ".join(texts)))
    return [Alternative("text", names), Alternative("null")] if names else [Alternative("any")]


def _table_names(interpreter: Interpreter, module: str, text: str, *, follow: bool = True) -> list[str]:
    """The keys of the tables that a piece of source names, and of those that the functions it calls name."""
    source = interpreter.tree.module(module)
    words = [word for word in dict.fromkeys(re.findall(r"\w+", text)) if source and word in source.bindings]
    names: list[str] = []
    for word in words:
        value = interpreter.global_value(module, word)
        if isinstance(value, dict):
            names += [key for key in value if isinstance(key, str)]
        elif isinstance(value, SourceFunction) and follow:
            names += _table_names(interpreter, module, ast.unparse(value.node), follow=False)
    return names


def limits(interpreter: Interpreter, cls: type, name: str, *, whole: bool) -> dict[str, Any]:
    """`low`, `high` and `filled` out of pydantic's `Field(ge=0)`; `gt` is the next number: the next whole one, or nearly it."""
    call = next((found for _, node in _definitions(interpreter, cls) if (found := _field_call(node, name))), None)
    words = {word.arg: word.value for word in call.keywords} if call else {}
    given = {word: value.value for word, value in words.items() if word and isinstance(value, ast.Constant)}
    entry: dict[str, Any] = {}
    for word, key, step in (("ge", "low", 0), ("gt", "low", 1), ("le", "high", 0), ("lt", "high", -1)):
        limit = given.get(word)
        if isinstance(limit, int | float):
            entry[key] = limit + step if whole or not step else math.nextafter(limit, step * math.inf)
    return entry | ({"filled": True} if given.get("min_length") else {})


def _field_call(node: ast.ClassDef, name: str) -> ast.Call | None:
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == name:
            return statement.value if isinstance(statement.value, ast.Call) else None
    return None


def refuses_unknown_keys(interpreter: Interpreter, cls: type) -> bool:
    """Whether pydantic is told to forbid them: by the class's decorator, or by what that decorator passes on."""
    for module, node in _definitions(interpreter, cls):
        texts = [ast.unparse(decorator) for decorator in node.decorator_list]
        if any("forbid" in text for text in texts):
            return True
        maker = (
            interpreter.global_value(module, "config") if any(re.match(r"config\b", text) for text in texts) else None
        )
        if isinstance(maker, SourceFunction) and "forbid" in ast.unparse(maker.node):
            return True
    return False


def is_plain_dataclass(interpreter: Interpreter, cls: type) -> bool:
    """Whether the standard library makes the class, not pydantic."""
    module, node = next(_definitions(interpreter, cls))
    words = {ast.unparse(decorator).partition("(")[0] for decorator in node.decorator_list}
    return "dataclass" in words and interpreter.global_value(module, "dataclass") is dataclasses.dataclass


def _definitions(interpreter: Interpreter, cls: type) -> Iterator[tuple[str, ast.ClassDef]]:
    """Module and definition of a class and its bases, the class first."""
    for base in cls.__mro__:
        source = interpreter.source_of(base)
        if source is not None:
            yield source
