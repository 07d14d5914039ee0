"""The command as text for a POSIX shell, and back. Pure."""

import re
import shlex

from longreach.engine.options import ServeCommand
from longreach.errors import UsageError

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_PIECE = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.|.""", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_OPERATORS = frozenset(";|&<>()\n")


def render_shell(command: ServeCommand) -> str:
    r"""One paste-able command: assignments first, one flag a line, `\` at line ends, JSON in single quotes."""
    lines = [f"{name}={shlex.quote(value)}" for name, value in command.env]
    lines.append(" ".join(shlex.quote(word) for word in command.argv[:3]))
    for word in command.argv[3:]:
        if word.startswith("-"):
            lines.append(f"  {shlex.quote(word)}")
        else:
            lines[-1] += f" {shlex.quote(word)}"
    return " \\\n".join(lines) + "\n"


def parse_shell(text: str) -> ServeCommand:
    """One simple command: assignments, then words. Variables stay as written.

    UsageError for an open quote, and for anything that makes it more than one command (`;`, `|`, a second line).
    """
    joined = "".join(_join(piece) for piece in _PIECE.findall(text.strip()))
    operators = [piece for piece in _PIECE.findall(joined) if piece in _OPERATORS]
    if operators:
        raise UsageError(
            "this is more than one command",
            f"{operators[0]!r} stands outside quotes",
            "give one command; end its lines with a backslash and quote its JSON in single quotes",
        )
    try:
        words = shlex.split(joined)
    except ValueError as error:
        raise UsageError(
            "the command cannot be split into words", str(error), "close every quote; put JSON in single quotes"
        ) from None
    env: list[tuple[str, str]] = []
    while words and (assignment := _ASSIGNMENT.fullmatch(words[0])):
        env.append((assignment[1], assignment[2]))
        words.pop(0)
    return ServeCommand(tuple(words), tuple(env))


def _join(piece: str) -> str:
    """Drop line continuations: a backslash at a line's end, bare or in double quotes; single quotes keep everything."""
    return piece if piece.startswith("'") else _ESCAPED.sub(lambda escaped: escaped[0] * (escaped[1] != "\n"), piece)
