"""`$NAME` and `${NAME:-default}` as the shell and compose expand them, where the text itself gives the value. Pure."""

import re
from collections.abc import Mapping

Value = str | tuple[str, ...]
"""A variable's value: text, or the elements of an array."""

_BRACED = re.compile(
    r"\$\{(?P<name>[A-Za-z_]\w*|[0-9@*#?$!-])(?P<index>\[[^\]]*\])?(?P<operator>:?[-=?+])?(?P<rest>.*)\}", re.DOTALL
)
_REFERENCE = re.compile(r"\$\$|\$[A-Za-z_]\w*|\$\{")
_MAX_DEPTH = 8


def expand_reference(written: str, values: Mapping[str, Value], depth: int = 0) -> Value | None:
    """The value of `$NAME` or `${...}`; None where it is open."""
    if not written.startswith("${"):
        return _first(values.get(written[1:]))
    match = _BRACED.fullmatch(written)
    if match is None or depth > _MAX_DEPTH:
        return None
    value = values.get(match["name"])
    if match["index"] in ("[@]", "[*]"):
        return value if isinstance(value, tuple) or value is None else (value,)
    operator, rest = match["operator"], match["rest"]
    if match["index"] or (rest and operator is None):
        return None
    value = _first(value)
    if operator is None or operator.endswith("?"):
        return value
    if operator.endswith("+"):
        return None if value is None else expand_text(_unquoted(rest), values, depth + 1)
    if value is not None and not (operator.startswith(":") and value == ""):
        return value
    # An empty default stands for "not given", which tells nothing of what will be there.
    return expand_text(_unquoted(rest), values, depth + 1) or value


def expand_text(text: str, values: Mapping[str, Value], depth: int = 0, *, doubled: str | None = None) -> str:
    """The text with every reference expanded that can be; `doubled` is what `$$` stands for (compose: `$`)."""
    done: list[str] = []
    position = 0
    while (match := _REFERENCE.search(text, position)) is not None:
        end = _end_of_braces(text, match.start()) if match[0] == "${" else match.end()
        if end is None:
            break
        written = text[match.start() : end]
        value = expand_reference(written, values, depth) if written != "$$" else doubled
        done += [text[position : match.start()], value if isinstance(value, str) else written]
        position = end
    return "".join([*done, text[position:]])


def _end_of_braces(text: str, start: int) -> int | None:
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
    return None


def _first(value: Value | None) -> str | None:
    if isinstance(value, tuple):
        return value[0] if value else ""
    return value


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
