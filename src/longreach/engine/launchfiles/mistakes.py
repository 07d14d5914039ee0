"""Mistakes in the words of a command, and the words that were meant. Pure."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from longreach.engine.launchfiles.found import TextProblem
from longreach.engine.launchfiles.split_words import SourceWord, split_words

_JOINED = re.compile(r"(--?[A-Za-z][\w.-]*)\s+(\S.*)", re.DOTALL)
_FLAG_WITH_VALUE = re.compile(r"(--?[A-Za-z][\w.-]*=)(.*)", re.DOTALL)
_LOOKS_LIKE_JSON = re.compile(r"""\s*['"]?\s*\\?[{\[]""")
_BARE_WORD = re.compile(r"[A-Za-z_][\w./-]*")
_LITERALS = frozenset(("true", "false", "null"))
_MAX_JSON_WORDS = 200
_MAX_JSON = 20_000
_MAX_VALUES = 50  # that look like JSON


@dataclass(frozen=True, slots=True)
class MendedWords:
    """The words that were meant, and what is wrong with those that stand there."""

    words: tuple[str, ...]
    problems: tuple[TextProblem, ...] = ()


def mend_words(words: Sequence[SourceWord], text: str = "", line: int | None = None) -> MendedWords:
    """Take apart words that hold a flag with its value, and give JSON its quotes back; `text` is what the words stand in."""
    mended: list[str] = []
    problems: list[TextProblem] = []
    position = num_values = 0
    while position < len(words):
        value, taken = words[position].value, 1
        if (joined := _JOINED.fullmatch(value)) is not None:
            problems.append(_joined_problem(value, joined, line))
            mended += _parted(joined)
        elif num_values < _MAX_VALUES and _LOOKS_LIKE_JSON.match(value_of_flag(value)):
            num_values += 1
            json_text, taken, why = _mend_json(words, position, text)
            if why is not None:
                problems.append(_json_problem(words[position].value, json_text, why, line))
            mended.append(json_text)
        else:
            mended.append(value)
        position += taken
    return MendedWords(tuple(mended), tuple(problems))


def value_of_flag(word: str) -> str:
    """The value in `--flag=value`, else the word."""
    match = _FLAG_WITH_VALUE.fullmatch(word)
    return match[2] if match else word


def _parted(joined: re.Match[str]) -> list[str]:
    if joined[2][0] in "{[":
        return [joined[1], joined[2]]
    return [word.value for word in split_words(joined[0]).words]


def _mend_json(words: Sequence[SourceWord], position: int, text: str) -> tuple[str, int, str | None]:
    """The JSON that was meant, how many words it takes, and what happened to it; None: nothing, or nothing to be told."""
    word = words[position]
    flag = word.value.removesuffix(value_of_flag(word.value))
    value = word.value.removeprefix(flag)
    if len(value) > _MAX_JSON or _is_json(value):
        return word.value, 1, None
    end = _end_of_raw_json(words, position, text, len(flag))
    if end is not None:
        raw = text[word.start + len(flag) : words[end].end]
        return flag + raw, end - position + 1, "the shell took its double quotes and split it at its blanks"
    for mend, why in _MENDS:
        if _is_json(candidate := mend(value)):
            return flag + candidate, 1, why
    return word.value, 1, None


def _end_of_raw_json(words: Sequence[SourceWord], position: int, text: str, skipped: int) -> int | None:
    """The word with which unquoted JSON ends, by the text as it was written."""
    start = words[position].start + skipped
    if not text.startswith(("{", "["), start):
        return None
    for index in range(position, min(len(words), position + _MAX_JSON_WORDS)):
        end = words[index].end
        if end - start <= _MAX_JSON and text[end - 1 : end] in ("}", "]") and _is_json(text[start:end]):
            return index
    return None


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False


def _unwrap(text: str) -> str:
    stripped = text.strip()
    return stripped[1:-1] if len(stripped) > 1 and stripped[0] == stripped[-1] and stripped[0] in "'\"" else stripped


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def _undouble(text: str) -> str:
    return text.replace("{{", "{").replace("}}", "}")


def _quote_bare_words(text: str) -> str:
    return _BARE_WORD.sub(lambda word: word[0] if word[0] in _LITERALS else f'"{word[0]}"', text)


_MENDS: tuple[tuple[Callable[[str], str], str], ...] = (
    (_unwrap, "it is quoted twice, and the inner quotes are part of it"),
    (_unescape, "it is escaped twice, and the backslashes are part of it"),
    (lambda text: _unescape(_unwrap(text)), "it is quoted and escaped twice"),
    (_undouble, "the doubled braces of a template are left in it"),
    (lambda text: text.replace("'", '"'), "JSON takes double quotes only"),
    (lambda text: text if '"' in text else _quote_bare_words(text), "the shell took its double quotes"),
)


def _joined_problem(value: str, joined: re.Match[str], line: int | None) -> TextProblem:
    return TextProblem(
        "joined_words",
        f"'{_short(value)}' is one word",
        f"vLLM takes all of it for the name of a flag: '{joined[1]}' and its value are to be two words, or joined by '='",
        f"make two items of it, '{joined[1]}' and '{_short(joined[2])}'",
        line,
    )


def _json_problem(written: str, meant: str, why: str, line: int | None) -> TextProblem:
    return TextProblem(
        "json_quoting",
        f"'{_short(written)}' reaches vLLM and is no JSON",
        why,
        f"write {_short(meant)} and quote it once: in single quotes for a shell, as one item of a list",
        line,
    )


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 80 else f"{flat[:77]}..."
