"""JSON of a stranger: whatever it is, it is a value or a ValueError."""

import json


def parse_json(text: str | bytes) -> object:
    """The value; ValueError for what is no JSON, also for what nests so deep that the parser gives up."""
    try:
        value: object = json.loads(text)
    except RecursionError as error:
        raise ValueError("it nests too deep") from error
    return value
