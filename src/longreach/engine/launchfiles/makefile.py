"""Makefiles: the lines of recipes as the shell gets them. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from longreach.engine.launchfiles.parameters import Value

MAKEFILE = re.compile(r"^[\w./%-][^\n=:]*::?(?!=)[^\n]*\n(?:#[^\n]*\n)*\t\S", re.MULTILINE)
_DEFINITION = re.compile(r"(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*(\?|:{0,3}|\+)=(.*)")
_REFERENCE = re.compile(r"\$\$|\$[({]([A-Za-z_]\w*)[)}]|\$@")


@dataclass(frozen=True, slots=True)
class RecipeLine:
    """One line of a recipe, which has a shell of its own."""

    text: str
    line: int


def read_makefile(text: str) -> Iterator[RecipeLine]:
    """The lines of all recipes, variables of the file put in; others stay open."""
    values: dict[str, Value] = {}
    for line in text.split("\n"):
        match = None if line.startswith("\t") else _DEFINITION.fullmatch(line)
        if match is not None and not (match[2] == "?" and match[1] in values):
            values[match[1]] = _expand(match[3].partition(" #")[0].strip(), values)
    pending: list[str] = []
    first = 0
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        if not pending and not line.startswith("\t"):
            continue
        first = first if pending else number
        pending.append(line.removeprefix("\t"))
        if not line.endswith("\\"):
            yield RecipeLine(_expand("\n".join(pending).lstrip("@-+ "), values), first)
            pending.clear()


def _expand(text: str, values: dict[str, Value]) -> str:
    def known(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        value = values.get(match[1] or "")
        return value if isinstance(value, str) else f"${{{match[1]}}}" if match[1] else match[0]

    return _REFERENCE.sub(known, text)
