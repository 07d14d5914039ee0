"""Run a small command and read what it printed. Detection takes a `CommandRunner`, so that tests hand it recorded text."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command did. `returncode` is None when it never finished: not installed, not allowed, or too slow (`problem`)."""

    returncode: int | None
    stdout: str = ""
    stderr: str = ""
    problem: str | None = None

    @property
    def succeeded(self) -> bool:
        """It ran to its end and said so."""
        return self.returncode == 0


class CommandRunner(Protocol):
    """Runs `argv` for at most `timeout_s`; never raises for what the command does."""

    def __call__(self, argv: Sequence[str], timeout_s: float) -> CommandResult: ...


def run_command(argv: Sequence[str], timeout_s: float) -> CommandResult:
    """The real runner: no shell, no input, output decoded as UTF-8 with replacement."""
    try:
        done = subprocess.run(
            list(argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
            encoding="utf-8",
            errors="replace",
        )
    except FileNotFoundError:
        return CommandResult(None, problem=f"{argv[0]} is not installed")
    except subprocess.TimeoutExpired:
        return CommandResult(None, problem=f"{argv[0]} did not finish in {timeout_s:g} s")
    except OSError as error:
        return CommandResult(None, problem=f"{argv[0]} cannot be run: {error.strerror}")
    return CommandResult(done.returncode, done.stdout, done.stderr)
