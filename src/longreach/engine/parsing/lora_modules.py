"""The words of `--lora-modules`: `name=path`, or JSON with a name and a path. Pure."""

from collections.abc import Iterator

from longreach.engine.flag_values import load_json
from longreach.engine.parsing.parsed import ParseProblem, Use, is_open

_KEYS = ("name", "path", "base_model_name", "is_3d_lora_weight")


def check_lora_module(use: Use, value: str) -> Iterator[ParseProblem]:
    """The problem of one word; a comma in it makes vLLM read it as JSON."""
    if is_open(value) or not value or ("=" in value and "," not in value):
        return
    try:
        read = load_json(value)
    except ValueError as error:
        yield _problem(use, value, f"vLLM reads it as JSON: {error}")
        return
    if not isinstance(read, dict):
        yield _problem(use, value, "it is JSON, but no object")
    elif not {"name", "path"} <= read.keys() <= set(_KEYS):
        yield _problem(use, value, f"the object needs name and path and may hold {' and '.join(_KEYS[2:])}")


def _problem(use: Use, value: str, why: str) -> ParseProblem:
    fix = f"{use.spelling} NAME=PATH, each adapter a word of its own"
    return ParseProblem("wrong_value", f"--lora-modules does not understand {value!r}", why, fix, use)
