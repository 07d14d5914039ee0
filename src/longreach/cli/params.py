"""Types and options that several commands share; each declared once."""

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from longreach.report.style import Paint
from longreach.units import parse_bytes, parse_tokens

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class _Quantity(click.ParamType[int]):
    """A number with a suffix; a malformed one is a UsageError with advice, raised by the parser."""

    def __init__(self, name: str, parse: Callable[[str], int]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, _param: click.Parameter | None, _ctx: click.Context | None) -> int:
        return value if isinstance(value, int) else self._parse(str(value))


TOKENS = _Quantity("tokens", parse_tokens)
BYTES = _Quantity("bytes", parse_bytes)
FILE = click.Path(path_type=Path)


def json_option(function: Decorated) -> Decorated:
    """`--json`: one JSON document on stdout and nothing else."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout and nothing else.")(
        function
    )


def stdout_paint() -> Paint:
    """Colour when stdout is a terminal and NO_COLOR is not set."""
    return Paint(sys.stdout.isatty() and not _no_color())


def echo_json(document: Any) -> None:
    """The document, readable, stable and strict."""
    import json

    click.echo(json.dumps(jsonable(document), indent=2, ensure_ascii=False, allow_nan=False))


def jsonable(value: Any) -> Any:
    """Paths as strings, tuples as lists, times in ISO form, what is not finite as None; everything else as it is."""
    if isinstance(value, dict):
        return {key: jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | frozenset | set):
        return [jsonable(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def _no_color() -> bool:
    import os

    return bool(os.environ.get("NO_COLOR"))
