"""Pieces of shell words: how they are spelled beside other pieces, and the fields of an unquoted one. Pure."""

import re
import shlex

from longreach.engine.launchfiles.shell_lexer import Piece
from longreach.engine.launchfiles.spelling import SourceWord, part_of, spell

_FIELD = re.compile(r"(?:\$\([^()]{0,500}\)|`[^`]{0,500}`|\$\{[^}]{0,500}\}|\S)+")  # a substitution holds its blanks
_NEVER_CLOSED = ("$(", "${", "`")


def is_broken(piece: Piece) -> bool:
    """Whether the piece begins a substitution that is never closed, which no shell takes."""
    return piece.kind == "plain" and any(opener in piece.text for opener in _NEVER_CLOSED)


def split(value: str) -> list[str]:
    """The fields of an unquoted variable."""
    fields: list[str] = _FIELD.findall(value)
    return [value] if fields == [value] else [part_of(value, text) for text in fields]


def spelled(piece: Piece, value: str, *, is_kept: bool) -> SourceWord:
    """A piece of a word for use beside other pieces."""
    if is_kept:
        return SourceWord(value, f'"{piece.text}"' if piece.is_quoted else piece.text)
    if piece.kind == "variable":
        return SourceWord(value, spell(value))
    if piece.kind == "quoted" or is_broken(piece):
        return SourceWord(value, shlex.quote(value) if value else "")
    return SourceWord(value, value)
