"""The options of `vllm serve`: follow the functions that build its parser, and say what each `add_argument` means."""

import argparse
import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

from tools.registry.annotations import UNCHECKED, names_in, settings_class
from tools.registry.interpreter import Interpreter
from tools.registry.tree import SourceTree
from tools.registry.values import Recorder, SourceField, SourceFunction, Unknown, copy_containers

Entry = dict[str, Any]
"""One entry as the registry stores it; what is as usual is left out."""

_COMMAND = "vllm.entrypoints.cli.serve"
_MARK = re.compile("\x01.*?\x01")
_DEPRECATED = re.compile(r"^\W*deprecated|\b(?:is|are) deprecated|deprecated:|will be removed in", re.IGNORECASE)
_NO_EFFECT = re.compile(r"\b(?:has|have)\s+no\s+effect", re.IGNORECASE)
_REMOVAL = re.compile(r"removed\s+in\s+(?:vLLM\s+)?v?(\d+\.\d+)", re.IGNORECASE)
_FUNCTION_KINDS = {
    "human_readable_int": "size",
    "human_readable_int_or_auto": "length",
    "union_dict_and_str": "json_or_text",
    "parse_dataclass": "json",
    "from_cli": "json",  # 0.8
    "from_json": "json",
}
_JSON_KINDS = frozenset({"json", "pairs"})
_TYPE_KINDS: dict[Any, str] = {int: "int", float: "float", json.loads: "json", bool: "truth"}


class FieldInfo:
    """Stands for pydantic's class of that name: no default is one, since `SourceField` holds what it tells."""


class SkipValidation:
    """Stands for pydantic's: `SkipValidation[int]` is an int that only the parser looks at."""

    def __class_getitem__(cls, annotation: Any) -> Any:
        return Annotated[annotation, UNCHECKED]


@dataclass(frozen=True)
class Conversion:
    """What an option does with a value: `folds` where case and dashes do not matter."""

    kind: str
    optional: bool = False
    settings: type | None = None
    folds: bool = False


@dataclass(frozen=True)
class Option:
    """One option: its canonical long name, its entry, the settings class that its JSON fills."""

    name: str
    entry: Entry
    settings: type | None
    lists_when_run: bool = False  # the parser's choices are what is registered by then


@dataclass(frozen=True)
class Argument:
    """One `add_argument`, and the field of a settings class that it fills, where it was made from one."""

    names: tuple[str, ...]
    keywords: dict[str, Any]
    field: SourceField | None

    @property
    def name(self) -> str:
        return next((name for name in self.names if name.startswith("--")), self.names[0])


def start(folder: Path, *, typed: bool = False) -> Interpreter:
    """An interpreter of the release whose package `vllm` is in `folder`."""
    overrides: dict[str, Any] = {
        "copy.deepcopy": copy_containers,
        "pydantic.fields.FieldInfo": FieldInfo,
        "pydantic.SkipValidation": SkipValidation,
        "pydantic.functional_validators.SkipValidation": SkipValidation,
        "sys.argv": ["vllm", "serve", "--help=all"],  # with help texts, which tell where each option's value goes
    }
    interpreter = Interpreter(SourceTree(folder, typed), overrides)
    overrides["dataclasses.fields"] = interpreter.fields
    overrides["dataclasses.is_dataclass"] = interpreter.is_dataclass
    for home in ("vllm.config", "vllm.config.utils"):
        overrides[f"{home}.get_attr_docs"] = lambda cls: {
            field.name: field.mark + field.document for field in interpreter.fields(cls)
        }
    return interpreter


def read_arguments(interpreter: Interpreter) -> Iterator[Argument]:
    """Every option that the `serve` command adds to its parser."""
    command = interpreter.import_value(f"{_COMMAND}.ServeSubcommand")
    recorder = Recorder()
    interpreter.call(interpreter.class_attribute(command, "subparser_init", command), [Unknown("self"), recorder])
    for names, keywords in recorder.arguments:
        if str(names[0]).startswith("-"):
            mark = _MARK.search(str(keywords.get("help")))
            spelled = tuple(name.replace("_", "-") if name.startswith("--") else name for name in names)
            yield Argument(spelled, keywords, interpreter.marked.get(mark[0]) if mark else None)


def read_options(running: Interpreter, typed: Interpreter) -> list[Option]:
    """The options as the running program has them; names that only a type checker sees are what it checks later."""
    listed = {argument.name: _listed_names(argument) for argument in read_arguments(typed)}
    options = []
    for argument in read_arguments(running):
        option = describe(argument, running)
        known = listed.get(argument.name, [])
        options.append(option)
        if known and "choices" not in option.entry:
            option.entry["known"] = known
    return options


def describe(argument: Argument, interpreter: Interpreter) -> Option:
    """One option's entry."""
    keywords, name = argument.keywords, argument.name
    conversion = read_conversion(keywords)
    settings = conversion.settings or (settings_class(argument.field.type) if argument.field else None)
    if conversion.kind in _JSON_KINDS and settings is None:
        settings = _settings_named_as(name, interpreter)
    settings = settings if conversion.kind in _JSON_KINDS and settings and interpreter.keys(settings) else None
    nargs = "0" if conversion.kind in {"bool", "switch"} else str(keywords.get("nargs") or "1")
    entry: Entry = {"kind": conversion.kind}
    entry |= {"nargs": nargs} if nargs != _USUAL_NARGS.get(conversion.kind, "1") else {}
    entry |= _filled("aliases", [spelling for spelling in argument.names if spelling != name])
    entry |= _filled("choices", _names(keywords.get("choices")))
    entry |= read_default(keywords.get("default"))
    entry |= {"optional": True} if conversion.optional and _takes_none(keywords.get("choices")) else {}
    entry |= {"folds": True} if conversion.folds else {}
    entry |= {"repeats": True} if keywords.get("action") in {"append", "extend"} else {}
    entry |= {"settings": settings.__name__} if settings else {}
    entry |= {"settings_are_parsed": True} if settings and conversion.settings else {}
    entry |= deprecation(str(keywords.get("help") or ""), certain=bool(keywords.get("deprecated")))
    return Option(name, entry, settings, keywords.get("choices") == [])


_USUAL_NARGS = {"bool": "0", "switch": "0"}


def read_conversion(keywords: dict[str, Any]) -> Conversion:
    """What `action` and `type` of an `add_argument` do with a value."""
    action, convert = keywords.get("action"), keywords.get("type")
    if action is argparse.BooleanOptionalAction:
        return Conversion("bool")
    if action in {"store_true", "store_false", "store_const"}:
        return Conversion("switch")
    optional = pairs = False
    while isinstance(convert, SourceFunction) and "return_type" in convert.scope.variables:
        optional = optional or convert.name == "_optional_type"
        pairs = pairs or "nullable_kvs" in ast.unparse(convert.node)  # JSON or key=value, up to 0.9
        convert = convert.scope.variables["return_type"]
    if isinstance(convert, SourceFunction):
        settings = convert.defaults.get("cls") or convert.bound
        kind = _FUNCTION_KINDS.get(convert.name, "text")
        folds = convert.name == "<lambda>" and "choices" in keywords
        return Conversion(kind, optional, settings if isinstance(settings, type) else None, folds)
    kind = "text" if isinstance(convert, Unknown) else _TYPE_KINDS.get(convert, "text")
    return Conversion("pairs" if pairs and kind == "json" else kind, optional)


def read_default(default: Any) -> Entry:
    """The default as JSON has it; nothing for none."""
    if isinstance(default, Enum):
        default = default.value
    if isinstance(default, set | frozenset | tuple):
        default = sorted(default, key=str)
    if default is argparse.SUPPRESS or default is None:
        return {}
    try:
        json.dumps(default)
    except TypeError:
        return {"default_is_static": False}
    return {"default": default}


def deprecation(text: str, *, certain: bool = False) -> Entry:
    """Whether a help text calls an option deprecated: the release that is to remove it, "" where it names none."""
    text = _MARK.sub("", text).strip()
    if not (certain or _DEPRECATED.search(text)):
        return {}
    removal = _REMOVAL.search(text)
    entry: Entry = {"deprecated": removal[1] if removal else ""}
    return entry | ({"no_effect": True} if _NO_EFFECT.search(text) else {})


def _listed_names(argument: Argument) -> list[Any]:
    """Names that the source lists for a value: choices, or those in the type of its field."""
    own = _names(argument.keywords.get("choices")) or _names(argument.keywords.get("metavar"))
    return own or (names_in(argument.field.type) if argument.field else [])


def _takes_none(choices: Any) -> bool:
    """Whether no value is among the choices: up to 0.30 only the text "None" is, which no value is after conversion."""
    return not isinstance(choices, list) or None in choices


def _names(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple | set):
        return []
    return [name for name in value if isinstance(name, str | int) and name != "None"]


def _filled(key: str, values: list[Any]) -> Entry:
    return {key: values} if values else {}


def _settings_named_as(option: str, interpreter: Interpreter) -> type | None:
    """The class of vllm.config that is named as the option, where the option itself only reads JSON."""
    words = option.removeprefix("--").split("-")
    name = "".join(word.upper() if word in {"kv", "ec"} else word.capitalize() for word in words)
    found = interpreter.import_value(f"vllm.config.{name}")
    return found if isinstance(found, type) else None
