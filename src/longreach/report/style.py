"""Colour for terminals that want it; plain text otherwise."""

from collections.abc import Sequence
from dataclasses import dataclass

_CODES = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "bold": "1", "dim": "2"}


@dataclass(frozen=True, slots=True)
class Paint:
    """Wraps text in ANSI codes when `enabled`; running text is at most `width` letters wide."""

    enabled: bool = False
    width: int = 110

    def __call__(self, text: str, *styles: str) -> str:
        """`text` in the named styles."""
        if not self.enabled or not styles:
            return text
        codes = ";".join(_CODES[style] for style in styles)
        return f"\x1b[{codes}m{text}\x1b[0m"


def printable(text: str) -> str:
    """What a stranger wrote, without anything that moves the cursor or sets a colour: each such letter becomes a blank."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def table(rows: Sequence[tuple[str, ...]], align_right: frozenset[int] = frozenset(), indent: str = "  ") -> list[str]:
    """Rows of equal length as aligned lines; columns in `align_right` are numbers."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.rjust(widths[i]) if i in align_right else cell.ljust(widths[i]) for i, cell in enumerate(row)]
        lines.append((indent + "  ".join(cells)).rstrip())
    return lines
