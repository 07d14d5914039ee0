import json
from collections.abc import Callable
from typing import Any

import pytest

from longreach.cli.main import run

Outcome = tuple[int, str, str]


@pytest.fixture
def longreach(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run one command line in this process: (exit code, stdout, stderr)."""

    def call(*argv: str) -> Outcome:
        code = run(list(argv))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def plan_json(longreach: Callable[..., Outcome]) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Run `longreach plan ... --json`: (exit code, document)."""

    def call(*argv: str) -> tuple[int, dict[str, Any]]:
        code, out, _ = longreach("plan", "--json", *argv)
        document: dict[str, Any] = json.loads(out)
        return code, document

    return call
