"""Types and options that several commands share; each declared once."""

import math
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from longreach.errors import UsageError
from longreach.report.style import Paint
from longreach.units import parse_bytes, parse_tokens

_NARROWEST = 40
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class _Quantity(click.ParamType[int]):
    """A number of at least one with a suffix; a malformed one is a UsageError with advice, raised by the parser."""

    def __init__(self, name: str, parse: Callable[[str], int], example: str) -> None:
        self.name = name
        self._parse = parse
        self._example = example

    def convert(self, value: Any, param: click.Parameter | None, _ctx: click.Context | None) -> int:
        number = value if isinstance(value, int) else self._parse(str(value))
        if number < 1:
            option = param.opts[0] if param is not None and param.opts else f"number of {self.name}"
            raise UsageError(f"{option} {value} is too small", "it counts something and starts at 1", self._example)
        return number


class Names(click.ParamType[str]):
    """A name out of a table that is read only when the shell completes it. `check` raises UsageError for an unknown one;
    without it that is decided elsewhere.
    """

    name = "name"

    def __init__(self, read: Callable[[], Iterable[str]], check: Callable[[str], object] | None = None) -> None:
        self._read = read
        self._check = check

    def convert(self, value: Any, _param: click.Parameter | None, _ctx: click.Context | None) -> str:
        if self._check is not None:
            self._check(str(value))
        return str(value)

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in self._read() if name.startswith(incomplete)]


class FiniteRange(click.FloatRange):
    """A float in a range; neither nan, which every comparison lets through, nor inf."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


_SHARE_FORM = re.compile(r"\s*(?:(\d{1,9})\s*/\s*(\d{1,9})|(\d{0,9}\.?\d{1,9})\s*(%?))\s*", re.ASCII)


class Share(click.ParamType[Any]):
    """A share of a whole: `25%`, `0.25` or `1/4`, in a range. `number` makes of the exact fraction what is wanted."""

    name = "share"

    def __init__(
        self,
        least: float = 0,
        most: float = 1,
        *,
        least_open: bool = True,
        most_open: bool = False,
        number: Callable[[Fraction], Any] = Fraction,
    ) -> None:
        self._least, self._most = least, most
        self._least_open, self._most_open = least_open, most_open
        self._number = number

    def convert(self, value: Any, param: click.Parameter | None, _ctx: click.Context | None) -> Any:
        share = _parse_share(value)
        if share is None or not self._holds(share):
            option = param.opts[0] if param is not None and param.opts else "share"
            percent = _parse_share(f"{value}%")
            example = f"{value}%" if percent is not None and self._holds(percent) else "5%"
            raise UsageError(
                f"{option} '{value}' is no share {self._range()}",
                "5%, 0.05 and 1/20 are the same one",
                f"{option} {example}",
            )
        return self._number(share)

    def _holds(self, share: Fraction) -> bool:
        above = share > self._least if self._least_open else share >= self._least
        return above and (share < self._most if self._most_open else share <= self._most)

    def _range(self) -> str:
        low = f"{'above' if self._least_open else 'from'} {self._least:.0%}"
        return f"{low} {'and below' if self._most_open else 'up to'} {self._most:.0%}"


def _parse_share(value: Any) -> Fraction | None:
    if isinstance(value, int | float | Fraction):
        return Fraction(value) if math.isfinite(value) else None
    match = _SHARE_FORM.fullmatch(str(value))
    if match is None or (match[2] is not None and int(match[2]) == 0):
        return None
    if match[1] is not None:
        return Fraction(int(match[1]), int(match[2]))
    return Fraction(match[3]) / (100 if match[4] else 1)


TOKENS = _Quantity("tokens", parse_tokens, "write it as 750000, 750k or 1M")
BYTES = _Quantity("bytes", parse_bytes, "write it as 10G, 10GiB or plain bytes")
SHARE = Share()
FILE = click.Path(path_type=Path)


def advice_on(kind: click.ParamType[Any], name: str, metavar: str | None = None) -> str:
    """What to write instead of a value that `kind` does not take; `name` is the option as it is to be written."""
    if isinstance(kind, click.Choice):
        return f"{name} one of {', '.join(map(str, kind.choices))}"
    if isinstance(kind, click.IntRange | click.FloatRange):
        least, most = kind.min, kind.max
        if most is None:
            return f"{name} {'a number above' if kind.min_open else 'at least'} {least}"
        return f"{name} {'above' if kind.min_open else 'from'} {least} {'up to' if kind.min_open else 'to'} {most}"
    return f"{name} {metavar or kind.name.upper()}"


def json_object(text: str, option: str, example: str) -> dict[str, object]:
    """The JSON object that an option holds, strict: no key twice, no NaN."""
    import json

    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{option} is not JSON: {text}", str(error), f"{option} '{example}'") from error
    if not isinstance(value, dict):
        raise UsageError(f"{option} is not an object: {text}", "expected {...}", f"{option} '{example}'")
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"a key stands twice: {', '.join(key for key, _ in pairs)}")
    return found


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON value")


def json_option(function: Decorated) -> Decorated:
    """`--json`: one JSON document on stdout and nothing else."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout and nothing else.")(
        function
    )


def engine_option(function: Decorated) -> Decorated:
    """`--engine`: where vLLM is."""
    return click.option(
        "--engine",
        type=FILE,
        metavar="PATH",
        envvar="LONGREACH_ENGINE",
        show_envvar=True,
        help="Environment that holds vLLM. Default: `vllm` on PATH.",
    )(function)


def stdout_paint() -> Paint:
    """Colour when stdout is a terminal and NO_COLOR is not set, and no wider than the terminal."""
    if sys.stdout is None or not sys.stdout.isatty():
        return Paint()
    columns = shutil.get_terminal_size().columns
    return Paint(not _no_color(), max(_NARROWEST, min(columns, Paint().width)))


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
