"""Written commands, made from lines as people paste them."""

import shlex
from typing import Any

from longreach.engine.launchfiles.found import FoundCommand
from longreach.engine.options import ServeCommand
from longreach.engine.release import get_release
from longreach.lint.check import Surroundings, read_written
from longreach.rules.written import WrittenCommand


def command(line: str) -> ServeCommand:
    """`NAME=value ... vllm serve MODEL ...` as a shell splits it; "vllm serve" itself may be left out."""
    words = shlex.split(line)
    env = []
    while words and "=" in words[0] and not words[0].startswith("-"):
        name, _, value = words.pop(0).partition("=")
        env.append((name, value))
    if words[0] != "vllm" and "-m" not in words:
        words = ["vllm", "serve", *words]
    return ServeCommand(tuple(words), tuple(env))


def written(line: str, version: str = "0.32.0", found: FoundCommand | None = None, **around: Any) -> WrittenCommand:
    """The line as command rules of that release see it; `around`: model, machine, config."""
    return read_written(command(line), get_release(version), Surroundings(found=found, **around))
