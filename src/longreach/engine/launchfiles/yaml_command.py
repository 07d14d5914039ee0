"""A command in YAML: a list of words, or a text that is still to be split; with the mistakes that YAML makes easy. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from longreach.engine.launchfiles.found import TextProblem
from longreach.engine.launchfiles.split_words import split_words
from longreach.engine.launchfiles.yaml_nodes import Mapping, Scalar, as_scalar, as_scalars

_FOLDED_BACKSLASH = re.compile(r"\\[ \t]+(?=-)|\\\s*\Z")


@dataclass(frozen=True, slots=True)
class CommandText:
    """The words of `command`, `args` or `entrypoint`, where they stand, and what is wrong with the text."""

    words: tuple[str, ...]
    line: int
    problems: tuple[TextProblem, ...] = ()


def read_command_text(mapping: Mapping, key: str, expand: Callable[[str], str]) -> CommandText | None:
    """What stands under `key`, None when nothing does. `expand` fills in variables before a text is split."""
    items = as_scalars(mapping.get(key))
    if items is not None:
        mended = [_mend_folded(item) for item in items]
        problems = tuple(problem for _, problem in mended if problem is not None)
        line = items[0].line if items else mapping.line
        return CommandText(tuple(expand(text) for text, _ in mended), line, problems)
    scalar = as_scalar(mapping.get(key))
    if scalar is None:
        return None
    text, folded = _mend_folded(scalar)
    split = split_words(expand(text))
    told = (folded, _open_quote(scalar.line) if split.has_open_quote else None)
    return CommandText(split.words, scalar.line, tuple(problem for problem in told if problem is not None))


def _mend_folded(scalar: Scalar) -> tuple[str, TextProblem | None]:
    """The text without the backslashes that YAML left in the midst of the line it made of several."""
    if not scalar.is_folded or not _FOLDED_BACKSLASH.search(scalar.text):
        return scalar.text, None
    problem = TextProblem(
        "folded_yaml_backslash",
        f"the lines from {scalar.line} on are joined by YAML, and their backslashes stay in the midst",
        "a folded block ('>') and a plain text make blanks of line ends, so '\\ --flag' is one word that begins with a blank",
        "remove the backslashes, or make it a literal block ('|') that a shell reads",
        scalar.line,
    )
    return _FOLDED_BACKSLASH.sub(" ", scalar.text), problem


def _open_quote(line: int) -> TextProblem:
    return TextProblem(
        "quote_not_closed",
        f"a quote in the command on line {line} is never closed",
        "the command cannot be split into words; a ' or \" of the same kind inside ends a quoted part early",
        "write the command as a list, one item a word, with JSON in single quotes",
        line,
    )
