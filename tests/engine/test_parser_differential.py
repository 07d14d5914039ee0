"""Our parser of foreign commands against the engine's own: the same verdict on real lines and on mutated ones."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.engine.mutated_commands import UNJUDGED, Command, Mutator

from longreach.engine.parser import ParsedCommand, parse_arguments
from longreach.engine.registry import get_registry

ORACLE = Path(__file__).with_name("parser_oracle.py")
LINES = Path(__file__).parents[1] / "corpus" / "commands.jsonl"
REGISTRY = get_registry("0.32.0")


def read_lines() -> list[Command]:
    """The real lines from the model on, open variables closed, those left out that nobody can judge without files."""
    rows = (json.loads(row) for row in LINES.read_text(encoding="utf-8").splitlines())
    lines = [[word.replace("$", "S") for word in row["argv"]] for row in rows if row.get("argv")]
    return [line for line in lines if not set(line) & set(UNJUDGED)]


def ask_parser(python: Path, commands: Sequence[Command]) -> list[dict[str, Any]]:
    """The engine's verdict on each command; one process for all, as importing the engine takes most of the time."""
    asked = json.dumps([["serve", *command] for command in commands])
    done = subprocess.run(
        [python, ORACLE, "--verdicts"], input=asked, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    verdicts: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return verdicts


def parse(command: Command) -> ParsedCommand:
    return parse_arguments(["vllm", "serve", *command], REGISTRY)


def differences(commands: Sequence[Command], verdicts: Sequence[dict[str, Any]]) -> list[str]:
    """Each command on which we and the engine differ: refused or not, and where taken, the model."""
    found = []
    for command, verdict in zip(commands, verdicts, strict=True):
        parsed = parse(command)
        ours = [f"{problem.kind}: {problem.what}" for problem in parsed.problems]
        if ("error" in verdict) is not bool(ours):
            found.append(f"{command}\n  engine: {verdict.get('error', 'takes it')}\n  we: {ours or 'take it'}")
        elif not ours and verdict["model"] and verdict["model"] != parsed.model:
            found.append(f"{command}\n  model {verdict['model']!r}, we: {parsed.model!r}")
    return found


@pytest.mark.vllm
def test_real_lines_get_the_engine_s_verdict(engine_python: Path) -> None:
    commands = read_lines()
    verdicts = ask_parser(engine_python, commands)
    assert sum("error" in verdict for verdict in verdicts) > 10
    assert differences(commands, verdicts) == []


@pytest.mark.vllm
def test_mutated_lines_get_the_engine_s_verdict(engine_python: Path) -> None:
    """Nothing passes that the engine refuses, nothing is refused that it takes, and no line breaks the parser."""
    commands = list(Mutator(REGISTRY, read_lines(), seed=32).draw(1000))
    verdicts = ask_parser(engine_python, commands)
    refused = sum("error" in verdict for verdict in verdicts)
    assert 200 < refused < 800
    assert differences(commands, verdicts) == []
