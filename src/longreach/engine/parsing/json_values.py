"""How pydantic, where it is not strict, takes one kind of JSON value for another. Pure."""

import math
import re
import sys

TRUE_WORDS = frozenset(("1", "on", "t", "true", "y", "yes"))
FALSE_WORDS = frozenset(("0", "off", "f", "false", "n", "no"))


def is_truth(value: object) -> bool:
    """Whether the value is taken for true or false."""
    if isinstance(value, str):
        return value.lower() in TRUE_WORDS | FALSE_WORDS
    return isinstance(value, bool | int | float) and value in (0, 1)


_WHOLE = re.compile(r"\s*(?:\+?0+)?([+-]?\d+(?:_\d+)*)(?:\.0+)?\s*", re.ASCII)
"""Leading zeros go before the sign is looked for, so that "0-3" is -3."""


def read_whole(value: object) -> int | None:
    """A whole number, also as 4.0, "4", "4.0" or true; None for anything else."""
    if isinstance(value, str):
        match = _WHOLE.fullmatch(value)
        return None if match is None else int(match[1])
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value) and value == int(value)):
        return int(value)
    return None


def read_number(value: object) -> float | None:
    """A number, also as a text or truth value; None for anything else."""
    if isinstance(value, str):
        try:
            value = float(value) if value.isascii() else None
        except ValueError:
            return None
    return (
        float(min(value, sys.maxsize) if isinstance(value, int) else value) if isinstance(value, int | float) else None
    )
