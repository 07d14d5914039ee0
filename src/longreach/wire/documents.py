"""JSON of a stranger: whatever it is, it is a value or a ValueError."""

import json

import orjson


def parse_json(text: str | bytes) -> object:
    """The value; ValueError for what is no JSON, also for what nests so deep that the parser gives up."""
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _parse_loosely(text)
    return value


def _parse_loosely(text: str | bytes) -> object:
    """Python's own parser takes what servers written in Python may send: NaN, Infinity, half a surrogate pair."""
    try:
        value: object = json.loads(text)
    except RecursionError as error:
        raise ValueError("it nests too deep") from error
    return value
