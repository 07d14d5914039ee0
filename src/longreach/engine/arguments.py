"""An argv as the parser of `vllm serve` splits it: flags with their values, whatever their spelling. Pure.

Mirrors vLLM's FlexibleArgumentParser (0.32.0): underscores for dashes, `--flag=value`, unique prefixes, `--no-` halves,
dotted JSON keys (`--hf-overrides.text_config.x 3`, `-cc.mode=3`), `+` for list elements.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from longreach.engine.flags import Flag, find_flag
from longreach.engine.release import Release
from longreach.errors import UsageError

_NEGATIVE_NUMBER = re.compile(r"-\d+$|-\d*\.\d+$")
_LIST_FLAGS = ("--served-model-name", "--numa-bind-nodes")


@dataclass(frozen=True, slots=True)
class Argument:
    """One flag as it stands in the command. `flag` is None for a name the release's table does not hold."""

    tokens: tuple[str, ...]  # as written
    name: str  # as written, without `=value` and dotted keys, dashes for underscores
    flag: Flag | None = None
    values: tuple[str, ...] = ()
    path: tuple[str, ...] = ()  # dotted keys
    append: bool = False  # `--flag.key+`
    negated: bool = False

    @property
    def value(self) -> str | None:
        """The only value, or None when there is none or more than one."""
        return self.values[0] if len(self.values) == 1 else None


@dataclass(frozen=True, slots=True)
class Arguments:
    """A split command. `stray` are bare words that belong to nothing."""

    model: str | None
    flags: tuple[Argument, ...]
    stray: tuple[str, ...] = ()


def split_arguments(argv: Sequence[str], release: Release) -> Arguments:
    """Split `vllm serve MODEL ...` (or the api_server module's form); UsageError when argv starts no server."""
    tokens = tuple(argv[_first_argument(argv) :])
    model: str | None = None
    flags: list[Argument] = []
    stray: list[str] = []
    position = 0
    while position < len(tokens):
        if _is_flag(tokens[position]):
            argument = _read_argument(tokens, position, release)
            flags.append(argument)
            position += len(argument.tokens)
            continue
        if model is None:
            model = tokens[position]
        else:
            stray.append(tokens[position])
        position += 1
    named = [argument.value for argument in flags if argument.flag is not None and argument.flag.field == "model"]
    kept = tuple(argument for argument in flags if argument.flag is None or argument.flag.field != "model")
    return Arguments(named[-1] if named and model is None else model, kept, tuple(stray))


def _first_argument(argv: Sequence[str]) -> int:
    for index, word in enumerate(argv):
        if word == "serve" and index and PurePath(argv[index - 1]).name in ("vllm", "vllm.entrypoints.cli.main"):
            return index + 1
        if word == "vllm.entrypoints.openai.api_server":
            return index + 1
    raise UsageError(
        "this command does not start a vLLM server",
        f"neither 'vllm serve' nor vllm.entrypoints.openai.api_server is in {' '.join(argv)[:80]!r}",
        "give the whole command, from 'vllm serve' on",
    )


def _is_flag(token: str) -> bool:
    return len(token) > 1 and token.startswith("-") and not _NEGATIVE_NUMBER.match(token)


def _read_argument(tokens: Sequence[str], position: int, release: Release) -> Argument:
    head, equals, value = tokens[position].partition("=")
    name, *path = head.split(".")
    append = bool(path) and path[-1].endswith("+")
    if append:
        path[-1] = path[-1].removesuffix("+")
    name = name.replace("_", "-") if name.startswith("--") else name
    flag = find_flag(name, release)
    values = (value,) if equals else _following(tokens, position + 1, flag, is_dotted=bool(path))
    taken = 1 if equals else 1 + len(values)
    negated = flag is not None and flag.kind == "bool" and name.startswith("--no-")
    return Argument(tuple(tokens[position : position + taken]), name, flag, values, tuple(path), append, negated)


def _following(tokens: Sequence[str], start: int, flag: Flag | None, *, is_dotted: bool) -> tuple[str, ...]:
    """The bare words after a flag that belong to it. An unknown flag takes all of them, as it may be a list."""
    if is_dotted:
        return tuple(tokens[start : start + 1])
    end = start
    while end < len(tokens) and not _is_flag(tokens[end]):
        end += 1
    if flag is None or flag.name in _LIST_FLAGS:
        return tuple(tokens[start:end])
    if flag.kind == "bool":
        return ()
    return tuple(tokens[start : min(end, start + 1)])
