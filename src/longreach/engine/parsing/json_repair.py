"""JSON that a shell, a person or Python has mangled, put right where only one reading makes sense. Pure."""

import json
import re
from collections.abc import Callable

from longreach.engine.flag_values import expand_suffixes, load_json

_STRING = re.compile(r'("(?:[^"\\]|\\.)*")')
_CONSTANTS = {"True": "true", "False": "false", "None": "null"}


def repair_json(text: str) -> str | None:
    """The object that was meant, compact; None when no repair makes one.

    Tried one on top of the other: an outer pair of quotes, escaped quotes, single or curly quotes, Python's constants,
    numbers with suffixes, trailing commas, brackets left open, then words without quotes.
    """
    for repair in (_read_pairs, *_REPAIRS):
        text = repair(text)
        try:
            value = load_json(text)
        except ValueError:
            continue
        if isinstance(value, dict):
            return json.dumps(value, ensure_ascii=False)
    return None


def _outside_strings(change: Callable[[str], str]) -> Callable[[str], str]:
    def apply(text: str) -> str:
        parts = _STRING.split(text)
        parts[::2] = [change(part) for part in parts[::2]]
        return "".join(parts)

    return apply


def _read_pairs(text: str) -> str:
    """`image=4,video=1`, which releases up to 0.9 took."""
    pairs = [item.partition("=") for item in text.split(",")]
    if not all(equals and name.strip().isidentifier() and value.strip().isdigit() for name, equals, value in pairs):
        return text
    return json.dumps({name.strip(): int(value) for name, _, value in pairs})


def _strip_quotes(text: str) -> str:
    bare = text.strip()
    return bare[1:-1] if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "'\"" else bare


def _unescape(text: str) -> str:
    """Backslashes that a second shell was meant to take, and the doubled braces of a template."""
    if text.startswith("{{") and text.endswith("}}") and text.count("{") == text.count("{{") * 2:
        text = text.replace("{{", "{").replace("}}", "}")
    return re.sub(r"\\(.)", r"\1", text) if "\\" in text and not re.search(r'(?<!\\)"', text) else text


def _straighten(text: str) -> str:
    text = re.sub("[\u201c\u201d]", '"', text)
    return text if '"' in text else text.replace("'", '"')


def _mend_single(text: str) -> str:
    return re.sub(r"'([^'\"]*)'", r'"\1"', text)


def _mend_constants(text: str) -> str:
    return re.sub(r"\b(True|False|None)\b", lambda match: _CONSTANTS[match[0]], text)


def _drop_commas(text: str) -> str:
    return re.sub(r",\s*(?=[}\]])", "", text)


def _close(text: str) -> str:
    """Close what is left open, and drop one closing bracket too many at the end."""
    stack: list[str] = []
    for character in "".join(_STRING.split(text)[::2]):
        if character in "{[":
            stack.append("}" if character == "{" else "]")
        elif character in "}]" and stack and stack[-1] == character:
            stack.pop()
        elif character in "}]":
            return text.rstrip()[:-1]
    return text.rstrip().rstrip(",") + "".join(reversed(stack))


def _quote_words(text: str) -> str:
    return re.sub(r"(?<![\w.\"])([A-Za-z_][\w./-]*)(?![\w.\"])", _quote, text)


def _quote(match: re.Match[str]) -> str:
    return match[0] if match[0] in ("true", "false", "null") else f'"{match[0]}"'


def _write_out(text: str) -> str:
    try:
        return expand_suffixes(text)
    except ValueError:
        return text


_REPAIRS: tuple[Callable[[str], str], ...] = (
    _strip_quotes,
    _unescape,
    _straighten,
    _outside_strings(_mend_single),
    _outside_strings(_mend_constants),
    _write_out,
    _outside_strings(_drop_commas),
    _close,
    _outside_strings(_quote_words),
)
