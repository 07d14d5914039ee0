"""The examples' commands write the examples' files; `make generate` writes them anew."""

import os
import re
import shlex
from pathlib import Path

import pytest

from longreach.cli.main import run
from longreach.cli.plan_file import read_plan

EXAMPLES = Path(__file__).parents[2] / "examples"
COMMANDS = re.findall(r"^longreach (plan .*)$", (EXAMPLES / "README.md").read_text(encoding="utf-8"), re.MULTILINE)


def _output(command: str) -> str:
    words = shlex.split(command)
    return words[words.index("-o") + 1]


def test_every_example_file_has_its_command() -> None:
    assert sorted(map(_output, COMMANDS)) == sorted(path.name for path in EXAMPLES.glob("*.yaml"))


@pytest.mark.parametrize("command", COMMANDS, ids=_output)
def test_the_command_writes_the_example(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(shlex.split(command)) == 0
    written = (tmp_path / _output(command)).read_text(encoding="utf-8")
    assert written == (EXAMPLES / _output(command)).read_text(encoding="utf-8"), "run the command in examples/ again"


@pytest.mark.parametrize("name", list(map(_output, COMMANDS)))
def test_the_example_reads_back_and_fits(name: str) -> None:
    plan = read_plan(EXAMPLES / name)
    assert plan.verdict == "fits"
    assert not [finding for finding in plan.findings if finding.severity == "error"]


if __name__ == "__main__":
    os.chdir(EXAMPLES)
    for line in COMMANDS:
        assert run(shlex.split(line)) == 0, line
