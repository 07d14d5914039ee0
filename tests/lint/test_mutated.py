"""Lint of commands that people got wrong, for every release: it never breaks, and an edit never makes things worse."""

import json
import random
from pathlib import Path

import pytest
from tests.engine.mutated_commands import Mutator

from longreach.engine.options import ServeCommand
from longreach.engine.registry import get_registry
from longreach.engine.release import RELEASES, Release
from longreach.lint.check import Surroundings, read_written
from longreach.lint.edits import apply_edit
from longreach.rules.registry import COMMAND_RULES

LINES = Path(__file__).parents[1] / "corpus" / "commands.jsonl"
OPEN = ("$X", "${TP:-4}", "$(nproc)", "$@")


def read_lines() -> list[list[str]]:
    rows = (json.loads(row) for row in LINES.read_text(encoding="utf-8").splitlines())
    return [row["argv"] for row in rows if row.get("argv")]


@pytest.mark.parametrize("release", RELEASES[::4], ids=lambda release: release.version)
def test_no_line_breaks_a_rule_and_no_edit_breaks_a_line(release: Release) -> None:
    chance = random.Random(release.version)
    for words in Mutator(get_registry(release.version), read_lines(), seed=chance.randrange(10**6)).draw(60):
        mixed = [word if chance.random() < 0.97 else chance.choice(OPEN) for word in words]
        config = {"port": chance.choice((1, "x", None, [1])), "enable-prefix-caching": False}
        command = ServeCommand(("vllm", "serve", *mixed, *(("--config", "c.yaml") if chance.random() < 0.2 else ())))
        written = read_written(command, release, Surroundings(config=config))
        for finding in (finding for rule in COMMAND_RULES for finding in rule.check(written) if finding.edit):
            assert finding.edit is not None
            edited = apply_edit(command, written.parsed, finding.edit)
            assert edited.argv[:2] == ("vllm", "serve")
            read_written(edited, release, Surroundings(config=config))
