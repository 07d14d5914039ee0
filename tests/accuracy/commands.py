"""The real launch lines of tests/corpus/commands.jsonl as values."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parents[1] / "corpus" / "commands.jsonl"


@dataclass(frozen=True, slots=True)
class CommandLine:
    """One published line and what became of it; the keys are those of tests/corpus/README.md."""

    id: str
    format: str
    entry: str | None
    command: str
    argv: tuple[str, ...] | None
    outcome: str
    reconstructed: bool
    releases: tuple[str, ...] = ()  # ranges "FIRST..LAST" or single releases; empty: unknown, or before the registry
    works_in: tuple[str, ...] = ()
    label: str | None = None
    lint_needs: str | None = None
    error: str | None = None
    model: str | None = None
    hardware: str | None = None
    parser_0_32_0: str | None = None
    older: bool = False  # of a release before the first known one, whose rules judge it

    @property
    def works(self) -> bool:
        """Whether somebody ran it, or publishes it as running."""
        return self.outcome == "works"

    @property
    def fails(self) -> bool:
        """Whether it is known not to do what it says."""
        return self.outcome not in {"works", "unknown"}


def read_lines() -> tuple[CommandLine, ...]:
    """Every line of the corpus, in its order."""
    return tuple(_line(json.loads(text)) for text in CORPUS.read_text(encoding="utf-8").splitlines())


def expanded(ranges: Sequence[str], versions: Sequence[str]) -> tuple[str, ...]:
    """The releases among `versions` (oldest first) that "0.9.2..0.10.2" or "0.32.0" stand for."""
    found: list[str] = []
    for text in ranges:
        first, _, last = text.partition("..")
        found += versions[versions.index(first) : versions.index(last or first) + 1]
    return tuple(found)


def _line(record: Mapping[str, Any]) -> CommandLine:
    lists = {name: tuple(record[name]) for name in ("argv", "releases", "works_in") if name in record}
    names = ("id", "format", "command", "outcome", "reconstructed")
    known = ("older", "entry", "label", "lint_needs", "error", "model", "hardware", "parser_0_32_0")
    fields = {name: record[name] for name in (*names, *known) if name in record}
    return CommandLine(**{"entry": None, "argv": None, **fields, **lists})
