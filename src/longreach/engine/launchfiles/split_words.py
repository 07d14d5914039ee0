"""Words as compose and systemd split a command: quotes and backslashes, no variables and no operators. Pure."""

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+) | (?P<joined>\\\r?\n) | '(?P<single>[^']*)' | "(?P<double>(?:[^"\\]|\\.)*)"
      | \\(?P<escaped>x[0-9a-fA-F]{2}|[0-7]{3}|.)
      | (?P<open>['"]) | (?P<plain>[^\s'"\\]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_IN_DOUBLE = re.compile(r"\\(\r?\n|.)", re.DOTALL)
_C_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|[0-7]{3}|.)", re.DOTALL)
_C_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " "}


@dataclass(frozen=True, slots=True)
class SplitText:
    """The words of a text; `has_open_quote` when a quote is never closed and stands for itself."""

    words: tuple[str, ...]
    has_open_quote: bool = False


def split_words(text: str, *, c_escapes: bool = False) -> SplitText:
    r"""Split at blanks and line ends. With `c_escapes` as systemd does: `\n`, `\x20` count, in single quotes too."""
    words: list[str] = []
    current: list[str] | None = None
    has_open_quote = False
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "space":
            if current is not None:
                words.append("".join(current))
            current = None
            continue
        if kind == "joined":
            continue
        if current is None:
            current = []
        has_open_quote = has_open_quote or kind == "open"
        current.append(_piece(match, c_escapes=c_escapes))
    if current is not None:
        words.append("".join(current))
    return SplitText(tuple(words), has_open_quote)


def _piece(match: re.Match[str], *, c_escapes: bool) -> str:
    kind = match.lastgroup or ""
    written = match[kind]
    if kind == "open":
        return "" if not c_escapes else written
    if c_escapes and kind in ("single", "double", "escaped"):
        return _C_ESCAPE.sub(_c_escaped, match[0] if kind == "escaped" else written)
    if kind == "double":
        return _IN_DOUBLE.sub(lambda found: "" if found[1].endswith("\n") else found[1], written)
    return written


def _c_escaped(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 3:
        return chr(int(code[1:], 16) if code[0] == "x" else int(code, 8))
    return _C_LETTERS.get(code, code)
