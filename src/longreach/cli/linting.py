"""From what was typed to judged commands: find the commands, their models, the machine and the release."""

import codecs
import contextlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from longreach.lint.releases import command_for, judge_releases, release_for
from longreach.lint.values import JudgedCommand
from longreach.model.spec import ModelSpec

_MOST_BYTES = 20 * 2**20
_MOST_JUDGED = 20  # commands of one file that are judged on every release
_MARKED = (  # UTF-32 begins as UTF-16 does
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
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
        return find_commands(_decode(_read_stdin(), "stdin"), "stdin")
    if " " in words[0].strip() and not _is_file(words[0]):
        return find_commands(words[0], "the command line")
    return find_commands(_read_text(Path(words[0])), words[0])


def _read_stdin() -> bytes:
    if sys.stdin is None:
        raise InputFileError("stdin is closed", "there is nothing to read for '-'", _EXAMPLE)
    return sys.stdin.buffer.read(_MOST_BYTES + 1)


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
    encoding = next((name for mark, name in _MARKED if content.startswith(mark)), "utf-8-sig")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputFileError(f"{name} is not text", str(error), "give a script, a manifest or a unit file") from error


def judge_all(commands: Sequence[FoundCommand], given: Given, *, fix: bool) -> list[JudgedCommand]:
    """The verdict on each command of a file; every release is tried for the first ones only, as each takes its time."""
    session = _Session(given, _machine(given), fix=fix)
    return [
        session.judge(found, every_release=given.release is None and number < _MOST_JUDGED)
        for number, found in enumerate(commands)
    ]


class _Session:
    """What the commands of one file share: the machine, models that are read once, verdicts on commands that stand there twice."""

    def __init__(self, given: Given, machine: Machine | None, *, fix: bool) -> None:
        self.given, self.machine, self.fix = given, machine, fix
        self.models: dict[str | None, ModelSpec | None] = {}
        self.known: dict[FoundCommand, JudgedCommand] = {}

    def judge(self, found: FoundCommand, *, every_release: bool) -> JudgedCommand:
        """The verdict on one command; with `fix` the command that works as well."""
        same = replace(found, line=1)
        if same not in self.known:
            self.known[same] = self._judge(found, every_release=every_release)
        return replace(self.known[same], where=_where(found))

    def _judge(self, found: FoundCommand, *, every_release: bool) -> JudgedCommand:
        release = _release(self.given, found)
        command = command_for(ServeCommand(found.argv, found.env), found, release)
        parsed = parse_arguments(command.argv, get_registry(release.version))
        settings = parsed.value("--config")
        path = self.given.config_file or (Path(settings) if settings is not None and _is_file(settings) else None)
        config = _config(path) if path is not None else None
        named = config.get("model", config.get("model_tag")) if config is not None and parsed.model is None else None
        around = Surroundings(
            model=self._model(parsed.model or (named if isinstance(named, str) else None)),
            machine=self.machine,
            config=config,
            found=found,
        )
        return JudgedCommand(
            report=lint_command(command, release, around),
            releases=judge_releases(command, around) if every_release else (),
            fixed=fix_command(command, release, around) if self.fix else None,
            found=found,
            unread=(f"--config {settings}",) if settings is not None and path is None else (),
        )

    def _model(self, name: str | None) -> ModelSpec | None:
        if name not in self.models:
            self.models[name] = _model(self.given, name)
        return self.models[name]


def _is_file(name: str) -> bool:
    """Whether a word names a file; a whole command does not, and is too long for a name."""
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


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


def _model(given: Given, name: str | None) -> ModelSpec | None:
    """The model asked for; else the one the line names, if it lies here or is in the catalogue: nothing is fetched unasked."""
    from longreach.model.likeness import recognise_model
    from longreach.model.source import load_model

    if given.model is not None:
        return load_model(given.model)
    if name is None:
        return None
    match = recognise_model(name)
    is_here = _is_file(f"{name}/config.json")
    with contextlib.suppress(
        UnknownModelError
    ):  # its KV cache is not understood: what its config would tell stays unsaid
        if is_here:
            return load_model(name)
        if match is not None:
            return load_model(match.name, match.quantization)
    return None


def _config(path: Path) -> Mapping[str, object]:
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
