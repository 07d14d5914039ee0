"""JSON of a stranger: whatever it is, it is a value or a ValueError."""

import json
import re

import orjson


def parse_json(text: str | bytes) -> object:
    """The value; ValueError for what is no JSON, also for what nests so deep that the parser gives up. Its texts can be written
    as UTF-8: half a surrogate pair becomes U+FFFD.
    """
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _parse_loosely(text)
    return value


def _parse_loosely(text: str | bytes) -> object:
    """Python's own parser takes what servers written in Python may send: NaN, Infinity, half a surrogate pair."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", errors="replace")
    try:
        value: object = json.loads(_ESCAPE.sub(_replace_half, text))
    except RecursionError as error:
        raise ValueError("it nests too deep") from error
    return value


_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)")
_LEN_OF_ONE = len(r"\ud800")


def _replace_half(escape: re.Match[str]) -> str:
    is_half = len(escape[0]) == _LEN_OF_ONE
    return r"\ufffd" if is_half else escape[0]
