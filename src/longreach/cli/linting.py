"""From what was typed to judged commands: find the commands, their models, the machine and the release."""

import contextlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from longreach.cli.planning import find_machine
from longreach.engine.launchfiles.container import image_release
from longreach.engine.launchfiles.found import FoundCommand
from longreach.engine.options import ServeCommand
from longreach.engine.parser import parse_arguments
from longreach.engine.registry import get_registry
from longreach.engine.release import NEWEST_RELEASE, Release, get_release
from longreach.errors import InputFileError, UnknownModelError, UsageError
from longreach.hardware.spec import Machine
from longreach.lint.check import Surroundings, lint_command
from longreach.lint.fix import fix_command
from longreach.lint.releases import judge_releases, release_for
from longreach.lint.values import JudgedCommand
from longreach.model.spec import ModelSpec

_MOST_BYTES = 20 * 2**20
_EXAMPLE = "longreach lint -- vllm serve MODEL --max-model-len 131072, or longreach lint compose.yaml"


@dataclass(frozen=True, slots=True)
class Given:
    """What was typed beside the command; None where it was not."""

    model: str | None = None
    gpus: str | None = None
    link: str | None = None
    release: str | None = None
    config_file: Path | None = None


def read_commands(words: Sequence[str]) -> tuple[FoundCommand, ...]:
    """The commands in a file, on stdin, or in the words themselves; UsageError when there is none."""
    from longreach.engine.launchfiles.recognise import find_commands, find_in_words

    if not words:
        raise UsageError("no command is given", "lint takes a file, or a command after --", _EXAMPLE)
    if len(words) > 1:
        return (find_in_words(words),)
    if words[0] == "-":
        return find_commands(_decode(sys.stdin.buffer.read(_MOST_BYTES + 1), "stdin"), "stdin")
    if " " in words[0].strip() and not Path(words[0]).exists():
        return find_commands(words[0], "the command line")
    return find_commands(_read_text(Path(words[0])), words[0])


def _read_text(path: Path) -> str:
    if path.is_dir():
        raise InputFileError(f"{path} is a folder", "lint reads one file", _EXAMPLE)
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputFileError(f"cannot read {path}", error.strerror or str(error), _EXAMPLE) from error
    return _decode(content, str(path))


def _decode(content: bytes, name: str) -> str:
    if len(content) > _MOST_BYTES:
        why = "no launch file is"
        raise InputFileError(f"{name} is larger than {_MOST_BYTES >> 20} MiB", why, "give the part that starts vLLM")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputFileError(f"{name} is not text", str(error), "give a script, a manifest or a unit file") from error


def judge(found: FoundCommand, given: Given, *, fix: bool) -> JudgedCommand:
    """The verdict on one command; with `fix` the command that works as well."""
    release = _release(given, found)
    command = ServeCommand(found.argv, found.env)
    around = Surroundings(
        model=_model(given, found, release),
        machine=_machine(given),
        config=_config(given, found, release),
        found=found,
    )
    report = lint_command(command, release, around)
    return JudgedCommand(
        where=_where(found),
        report=report,
        releases=judge_releases(command, around) if given.release is None else (),
        fixed=fix_command(command, release, around) if fix else None,
        found=found,
    )


def _release(given: Given, found: FoundCommand) -> Release:
    if given.release is not None:
        return release_for(given.release)
    tag = found.release or image_release(found.image)
    if tag is not None:
        with contextlib.suppress(UsageError):  # older than every known release
            return release_for(tag)
    return get_release(NEWEST_RELEASE)


def _machine(given: Given) -> Machine | None:
    if given.gpus is None:
        return None
    return find_machine(gpus=given.gpus, link=given.link, ram=None, numa=None)


def _model(given: Given, found: FoundCommand, release: Release) -> ModelSpec | None:
    """The model asked for; else the one the line names, if it lies here or is in the catalogue: nothing is fetched unasked."""
    from longreach.model.likeness import recognise_model
    from longreach.model.source import load_model

    if given.model is not None:
        return load_model(given.model)
    name = parse_arguments(found.argv, get_registry(release.version)).model
    if name is None:
        return None
    match = recognise_model(name)
    is_here = (Path(name) / "config.json").is_file()
    with contextlib.suppress(
        UnknownModelError
    ):  # its KV cache is not understood: what its config would tell stays unsaid
        if is_here:
            return load_model(name)
        if match is not None:
            return load_model(match.name, match.quantization)
    return None


def _config(given: Given, found: FoundCommand, release: Release) -> Mapping[str, object] | None:
    named = parse_arguments(found.argv, get_registry(release.version)).value("--config")
    path = given.config_file or (Path(named) if named is not None and Path(named).is_file() else None)
    if path is None:
        return None
    import yaml

    try:
        settings = yaml.safe_load(_read_text(path))
    except yaml.YAMLError as error:
        raise InputFileError(
            f"{path} is not YAML", str(error), "vLLM reads a mapping of option names to values"
        ) from error
    if not isinstance(settings, Mapping):
        raise InputFileError(
            f"{path} is no mapping", f"it holds a {type(settings).__name__}", "write option: value lines"
        )
    return {str(name): value for name, value in settings.items()}


def _where(found: FoundCommand) -> str:
    if found.format == "words":
        return ""
    return ", ".join(part for part in (found.service, f"line {found.line}") if part)
