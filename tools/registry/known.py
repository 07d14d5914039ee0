"""Builtins that the interpreter computes with."""

from typing import Any

BUILTINS: dict[str, Any] = {
    function.__name__: function
    for function in (
        *(abs, all, any, bool, bytes, dict, enumerate, float, frozenset, getattr, hasattr, int, isinstance, issubclass),
        *(len, list, max, min, next, object, range, repr, reversed, round, set, sorted, str, sum, tuple, type, zip),
    )
} | {"None": None, "True": True, "False": False, "Ellipsis": ...}

METHODS_OF = frozenset(
    {
        "add",
        "add_argument",
        "add_argument_group",
        "append",
        "extend",
        "get",
        "insert",
        "list",
        "pop",
        "remove",
        "update",
    }
)
"""Methods and functions that hold or hand on a value without looking into it."""
