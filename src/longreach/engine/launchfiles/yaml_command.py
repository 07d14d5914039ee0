"""A command in YAML: a list of words, or a text that is still to be split; with the mistakes that YAML makes easy. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from longreach.engine.launchfiles.found import TextProblem
from longreach.engine.launchfiles.yaml_nodes import Mapping, Scalar, as_scalar, as_scalars

_FOLDED_BACKSLASH = re.compile(r"\\[ \t]+(?=-)|\\\s*\Z")


@dataclass(frozen=True, slots=True)
class CommandText:
    """The words of `command`, `args` or `entrypoint`, where they stand, and what is wrong with the text."""

    words: tuple[str, ...]
    line: int = 1
    problems: tuple[TextProblem, ...] = ()
    has_open_quote: bool = False


def read_command_text(mapping: Mapping, key: str, split: Callable[[str], CommandText]) -> CommandText | None:
    """What stands under `key`; None when nothing does. A list is taken as it is but for what `split` would expand."""
    items = as_scalars(mapping.get(key))
    if items is not None:
        mended = [mend_folded(item) for item in items]
        problems = tuple(problem for _, problem in mended if problem is not None)
        line = items[0].line if items else mapping.line
        return CommandText(tuple(text for text, _ in mended), line, problems)
    scalar = as_scalar(mapping.get(key))
    return None if scalar is None else _read_text(scalar, split)


def mend_folded(scalar: Scalar) -> tuple[str, TextProblem | None]:
    """The text without the backslashes that YAML left in the midst of the line it made of several."""
    if not scalar.is_folded or not _FOLDED_BACKSLASH.search(scalar.text):
        return scalar.text, None
    problem = TextProblem(
        "folded_backslash",
        f"the lines from {scalar.line} on are joined by YAML, and their backslashes stay in the midst",
        "a folded block ('>') and a plain text make blanks of line ends, so '\\ --flag' is one word that begins with a blank",
        "remove the backslashes, or make it a literal block ('|') that a shell reads",
        scalar.line,
    )
    return _FOLDED_BACKSLASH.sub(" ", scalar.text), problem


def _read_text(scalar: Scalar, split: Callable[[str], CommandText]) -> CommandText:
    text, folded = mend_folded(scalar)
    found = split(text)
    problems: tuple[TextProblem, ...] = () if folded is None else (folded,)
    if found.has_open_quote:
        problems += (
            TextProblem(
                "quote_not_closed",
                f"a quote in the command on line {scalar.line} is never closed",
                "the command cannot be split into words; a quote of the same kind inside ends a quoted part early",
                "write the command as a list, one item a word, with JSON in single quotes",
                scalar.line,
            ),
        )
    return replace(found, line=scalar.line, problems=problems)
