"""Words that remember how a shell text spelled them, and the quoting of words that do not. Pure."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

_OPEN = re.compile(r"\$(?:\w+|[@*#?$!-]|\{[^}]{0,500}\}|\([^)]{0,500}\))")
_IN_DOUBLE_QUOTES = re.compile(r'([\\"`])')


class SourceWord(str):
    """A word as a program gets it; `spelling` is the shell text that gives it, quotes and all."""

    __slots__ = ("spelling",)

    spelling: str

    def __new__(cls, text: str, spelling: str) -> Self:
        """The word `text`, written as `spelling`."""
        word = super().__new__(cls, text)
        word.spelling = spelling
        return word

    def part(self, text: str) -> "SourceWord":
        """A piece of this word: a `$` in it stands for itself where it does in the whole."""
        is_literal = self.spelling == shlex.quote(self)
        return SourceWord(text, shlex.quote(text) if is_literal else quote_open(text))


@dataclass(frozen=True, slots=True)
class SourceLine:
    """How a shell text writes one command. `left_out`: what stands around it and cannot be kept on its line."""

    words: tuple[tuple[str, str | None], ...] = ()  # each word of argv with its spelling; None: the text has none
    env: tuple[tuple[str, str, str | None], ...] = ()  # name, value, spelling of the value
    before: tuple[str, ...] = ()  # "nohup", "numactl", "--membind=0", as spelled
    env_at: int = 0  # how many of them precede the environment: `sudo env A=1 ...`
    after: str = ""  # "> server.log 2>&1 &"
    left_out: tuple[str, ...] = ()


NO_SOURCE = SourceLine()


def spelling_of(word: str) -> str | None:
    """How the text spells the word; None where it was no shell text."""
    return word.spelling if isinstance(word, SourceWord) else None


def spell(word: str) -> str:
    """The word for a shell: as the text spells it, else quoted with open variables left open."""
    return word.spelling if isinstance(word, SourceWord) else quote_open(word)


def part_of(word: str, text: str) -> str:
    """A piece of a word that may know its spelling."""
    return word.part(text) if isinstance(word, SourceWord) else text


def joined(parts: Sequence[str]) -> SourceWord:
    """Words run together into one."""
    return SourceWord("".join(parts), "".join(map(spell, parts)))


def quote_open(word: str) -> str:
    """Quoted for a shell, but `$NAME`, `${NAME}` and `$(...)` stay open."""
    if _OPEN.search(word):
        return '"' + _IN_DOUBLE_QUOTES.sub(r"\\\1", word) + '"'
    return shlex.quote(word)
