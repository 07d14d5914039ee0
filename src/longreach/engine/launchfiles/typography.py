"""Characters that a web page or a word processor puts in the place of `--`, quotes and blanks. Pure."""

import re
from dataclasses import dataclass

_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_BLANKS = "\u00a0\u2007\u202f\u3000"
_NOTHING = "\u200b\u200c\u200d\u2060\ufeff"
_DOUBLE, _SINGLE = "\u201c\u201d\u201e\u201f", "\u2018\u2019\u201a\u201b"
_ANY = re.compile(f"[{_DASHES}{_BLANKS}{_NOTHING}{_DOUBLE}{_SINGLE}]")
_COMMAND_LINE = re.compile(rf"[{{}}]|--|vllm|[{_DOUBLE}]\s*:|(^|\s)[-{_DASHES}]+[A-Za-z]")
_OPTION = re.compile(rf"(?<![^\s\"'=,\[])[-{_DASHES}]+[A-Za-z][\w.{_DASHES}-]*")
_DOUBLE_QUOTE = re.compile(rf"(?<![^\s{{\[,:=])[{_DOUBLE}]|[{_DOUBLE}](?=[\s}}\],:]|$)", re.MULTILINE)
_SINGLE_QUOTE = re.compile(rf"(?<![^\s{{\[,:=])[{_SINGLE}]|[{_SINGLE}](?=[\s}}\],:]|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PlainText:
    """The text with plain characters, and by line (1-based) the characters that stood in their place."""

    text: str
    replaced: dict[int, str]


def make_plain(text: str) -> PlainText:
    """Replace what can only be meant as a dash, a quote or a blank, in lines that look like part of a command."""
    if _ANY.search(text) is None:
        return PlainText(text, {})
    lines = text.split("\n")
    replaced: dict[int, str] = {}
    for index, line in enumerate(lines):
        if _ANY.search(line) is None or line.lstrip().startswith("#") or not _COMMAND_LINE.search(line):
            continue
        plain = _plain_line(line)
        if plain != line:
            replaced[index + 1] = "".join(sorted(set(line) - set(plain)))
            lines[index] = plain
    return PlainText("\n".join(lines), replaced)


def _plain_line(line: str) -> str:
    line = re.sub(f"[{_NOTHING}]", "", line)
    line = re.sub(f"[{_BLANKS}]", " ", line)
    line = _OPTION.sub(_plain_option, line)
    return _SINGLE_QUOTE.sub("'", _DOUBLE_QUOTE.sub('"', line))


def _plain_option(match: re.Match[str]) -> str:
    """An en or em dash before a name of several letters was `--`; every other dash was a hyphen."""
    written = match[0]
    if _ANY.search(written) is None:
        return written
    name = written.lstrip(f"-{_DASHES}")
    dashes = "--" if len(name) > 2 and name[1] not in "0123456789" else "-"
    return dashes + re.sub(f"[{_DASHES}]", "-", name)
