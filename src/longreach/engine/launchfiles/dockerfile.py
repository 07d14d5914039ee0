"""Dockerfiles: what the image of each stage starts. Pure."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from longreach.engine.launchfiles.container import Container
from longreach.engine.launchfiles.parameters import Value, expand_text
from longreach.engine.launchfiles.split_words import split_words

DOCKERFILE = re.compile(
    r"^[ \t]*FROM[ \t]+\S[^\n]*\n(?:[^\n]*\n)*?[ \t]*(CMD|ENTRYPOINT|RUN|ENV|COPY)[ \t]", re.MULTILINE
)
_INSTRUCTION = re.compile(r"[ \t]*([A-Za-z]+)[ \t]+(.*)", re.DOTALL)
_SHELL = ("/bin/sh", "-c")


@dataclass(slots=True)
class _Stage:
    image: str
    values: dict[str, Value] = field(default_factory=dict)  # of ARG and ENV
    env: dict[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    line: int = 0


def read_dockerfile(text: str) -> Iterator[Container]:
    """The container of every stage that names a command or an entry point."""
    before: dict[str, Value] = {}  # ARG before the first FROM
    stage: _Stage | None = None
    for line, name, rest in _instructions(text):
        if name == "FROM":
            yield from _containers(stage)
            words = [word for word in rest.split() if not word.startswith("--")]
            stage = _Stage(expand_text(words[0], before)) if words else None
        elif name == "ARG":
            values = before if stage is None else stage.values
            values.update(_assignments(rest, values))
        elif stage is not None:
            _take(stage, line, name, rest)
    yield from _containers(stage)


def _take(stage: _Stage, line: int, name: str, rest: str) -> None:
    if name == "ENV":
        added = _assignments(rest, stage.values)
        stage.values.update(added)
        stage.env.update(added)
    elif name == "ENTRYPOINT":
        stage.entrypoint, stage.args, stage.line = _form(rest), None, line  # it resets the command before it
    elif name == "CMD":
        stage.args, stage.line = _form(rest), stage.line or line


def _containers(stage: _Stage | None) -> Iterator[Container]:
    if stage is None or not stage.line:
        return
    is_shell = stage.entrypoint is not None and stage.entrypoint[:2] == _SHELL
    args = () if is_shell or stage.args is None else stage.args
    env = tuple(stage.env.items())
    yield Container(stage.image, stage.entrypoint, args, env, format="dockerfile", line=stage.line)


def _form(rest: str) -> tuple[str, ...]:
    """The words of `["a", "b"]`; any other text is for a shell."""
    try:
        words = json.loads(rest)
    except (ValueError, RecursionError):
        words = None
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        return tuple(words)
    return (*_SHELL, rest.strip())


def _assignments(rest: str, values: dict[str, Value]) -> dict[str, str]:
    """`A=1 B="x y"`, and the older `ENV A 1`."""
    words = split_words(rest).words
    if words and "=" not in words[0]:
        return {words[0]: expand_text(" ".join(words[1:]), values)} if len(words) > 1 else {}
    pairs = (word.partition("=") for word in words)
    return {name: expand_text(value, values) for name, equals, value in pairs if equals}


def _instructions(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, name and rest of each; lines that end in a backslash go on, comments between them do not count."""
    parts: list[str] = []
    first = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if line.lstrip().startswith("#") or (parts and not line.strip()):
            continue
        first = first if parts else number
        whole = line.rstrip()
        parts.append(whole.removesuffix("\\"))
        if whole.endswith("\\"):
            continue
        match = _INSTRUCTION.fullmatch("\n".join(parts).replace("\n", " "))
        parts.clear()
        if match is not None:
            yield first, match[1].upper(), match[2]
