"""A package `vllm` of a few lines, for the tests of the registry's reader."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from tools.registry.interpreter import Interpreter
from tools.registry.options import start

SERVE = """
    from vllm.arguments import make_arg_parser

    class ServeSubcommand:
        name = "serve"

        def subparser_init(self, subparsers):
            serve_parser = subparsers.add_parser(self.name, help="serve")
            return make_arg_parser(serve_parser)
"""
GET_KWARGS = """
    import argparse
    import copy
    import functools
    import json
    import sys
    from dataclasses import MISSING, fields, is_dataclass
    from typing import Annotated, Any, Literal, Union, get_args, get_origin

    from vllm.config import get_attr_docs

    def optional_type(return_type):
        def _optional_type(val):
            if val == "" or val == "None":
                return None
            return return_type(val)
        return _optional_type

    def human_readable_int(value):
        return int(value)

    def contains(hints, kind):
        return any(hint is kind or get_origin(hint) is kind for hint in hints)

    def get_type_hints(hint):
        hints = set()
        if get_origin(hint) is Annotated:
            hints.update(get_type_hints(get_args(hint)[0]))
        elif get_origin(hint) is Union:
            for part in get_args(hint):
                hints.update(get_type_hints(part))
        else:
            hints.add(hint)
        return hints

    @functools.lru_cache(maxsize=30)
    def _compute_kwargs(cls):
        docs = get_attr_docs(cls)
        kwargs = {}
        for field in fields(cls):
            hints = get_type_hints(field.type)
            inner = next((hint for hint in hints if is_dataclass(hint)), None)
            if field.default is not MISSING:
                default = field.default
            elif field.default_factory is not MISSING:
                default = field.default_factory()
            name = field.name
            kwargs[name] = {"default": default, "help": docs[name].strip()}
            if inner is not None:
                def parse_dataclass(val, cls=inner):
                    return cls(val)
                kwargs[name]["type"] = parse_dataclass
            elif contains(hints, bool):
                kwargs[name]["action"] = argparse.BooleanOptionalAction
            elif contains(hints, Literal):
                options = get_args(next(hint for hint in hints if get_origin(hint) is Literal))
                kwargs[name].update({"type": type(options[0]), "choices": sorted(options)})
            elif contains(hints, list):
                kwargs[name].update({"type": get_args(next(iter(hints)))[0], "nargs": "+"})
            elif contains(hints, int):
                kwargs[name]["type"] = human_readable_int if name in {"max_bytes"} else int
            elif contains(hints, dict):
                kwargs[name]["type"] = json.loads
            else:
                kwargs[name]["type"] = str
            if type(None) in hints and not contains(hints, bool):
                kwargs[name]["type"] = optional_type(kwargs[name]["type"])
                if kwargs[name].get("choices"):
                    kwargs[name]["choices"].append(None)
        return kwargs

    def get_kwargs(cls):
        return copy.deepcopy(_compute_kwargs(cls))
"""
"""How vLLM turns the fields of a settings class into options, shortened."""


def write_package(folder: Path, modules: Mapping[str, str]) -> Path:
    """Modules by path (`config/cache.py`) to their text, below `folder/vllm`; every folder becomes a package."""
    for path, text in modules.items():
        target = folder / "vllm" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(dedent(text), encoding="utf-8")
    for parent in {folder / "vllm", *(path.parent for path in (folder / "vllm").rglob("*.py"))}:
        (parent / "__init__.py").touch()
    return folder


def interpret(folder: Path, modules: Mapping[str, str], *, typed: bool = False) -> Interpreter:
    return start(write_package(folder, modules), typed=typed)
