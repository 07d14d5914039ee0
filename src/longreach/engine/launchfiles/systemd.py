"""systemd units and programs of supervisord: ExecStart with its environment and limits; podman's container units. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from longreach.engine.launchfiles.container import Container
from longreach.engine.launchfiles.docker_run import read_docker_run
from longreach.engine.launchfiles.found import TextProblem
from longreach.engine.launchfiles.parameters import expand_reference
from longreach.engine.launchfiles.split_words import split_words

UNIT = re.compile(r"^\s*\[(Unit|Service|Container|Install|program:[^\]\n]+)\]\s*$|^ExecStart=", re.MULTILINE)
_ASSIGNMENT = re.compile(r"\s*([A-Za-z]\w*)\s*=(.*)", re.DOTALL)
_LISTED = re.compile(r"""(?<!\w)([A-Za-z_]\w*)=("[^"]*"|'[^']*'|[^,\s]*)""")
_PREFIXES = "@-:+!|"
_VARIABLE = re.compile(r"\$\$|\$\{\w+\}|\$\w+")
_QUADLET_OPTIONS = {  # of docker run
    "Environment": "--env",
    "ShmSize": "--shm-size",
    "PublishPort": "--publish",
    "AddDevice": "--device",
    "AddCapability": "--cap-add",
    "Ulimit": "--ulimit",
    "Network": "--network",
}


@dataclass(frozen=True, slots=True)
class UnitCommand:
    """One ExecStart, or the container of a podman unit."""

    words: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    line: int
    memlock: str | None = None
    restart: str | None = None
    container: Container | None = None
    problems: tuple[TextProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class _Setting:
    name: str
    value: str
    line: int


def read_unit(text: str) -> Iterator[UnitCommand]:
    """Every command that the unit starts. Variables of an EnvironmentFile and specifiers (`%i`) stay as written."""
    settings = list(_settings(text))
    env: dict[str, str] = {}
    for setting in settings:
        if setting.name == "environment":  # of supervisord
            env |= {match[1]: match[2].strip("\"'") for match in _LISTED.finditer(setting.value)}
        elif setting.name == "Environment":
            pairs = (word.partition("=") for word in split_words(setting.value, c_escapes=True).words)
            env |= {name: value.replace("%%", "%") for name, equals, value in pairs if equals}
    last = {setting.name: setting.value.strip() for setting in settings}
    for setting in settings:
        if setting.name in ("ExecStart", "ExecStartPre", "ExecStartPost", "command"):
            yield _exec(setting, env, last)
    if "Image" in last and "ExecStart" not in last:
        yield _quadlet(settings, env, last)


def _settings(text: str) -> Iterator[_Setting]:
    """`Name=value` with continuation lines; comment lines are skipped inside a continuation, too."""
    pending: _Setting | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        if line.lstrip().startswith(("#", ";")):
            continue
        if pending is not None:
            pending = _Setting(pending.name, f"{pending.value} {line}", pending.line)
        elif (match := _ASSIGNMENT.fullmatch(line)) is not None:
            pending = _Setting(match[1], match[2], number)
        if pending is None:
            continue
        if pending.value.endswith("\\"):
            pending = _Setting(pending.name, pending.value[:-1], pending.line)
        else:
            yield pending
            pending = None
    if pending is not None:
        yield pending


def _exec(setting: _Setting, env: dict[str, str], last: dict[str, str]) -> UnitCommand:
    text = setting.value.strip().lstrip(_PREFIXES)
    split = split_words(text, c_escapes=True)
    words: list[str] = []
    for word in split.words:
        if word == ";":
            break
        words += [value.replace("%%", "%") for value in _expand(word, env)]
    problems: tuple[TextProblem, ...] = ()
    if split.has_open_quote:
        what = f"a quote in {setting.name} on line {setting.line} is never closed"
        fix = "close it, or end the line inside it with a backslash"
        problems = (
            TextProblem(
                "quote_not_closed", what, "systemd ignores the setting: 'Unbalanced quoting'", fix, setting.line
            ),
        )
    return UnitCommand(
        tuple(words),
        tuple(env.items()),
        setting.line,
        last.get("LimitMEMLOCK"),
        last.get("Restart"),
        problems=problems,
    )


def _quadlet(settings: list[_Setting], env: dict[str, str], last: dict[str, str]) -> UnitCommand:
    """A podman `[Container]`, read as the podman run that it stands for."""
    options: list[str] = []
    for setting in settings:
        name = _QUADLET_OPTIONS.get(setting.name)
        if setting.name == "PodmanArgs":
            options += split_words(setting.value).words
        elif name == "--env":
            options += [part for word in split_words(setting.value, c_escapes=True).words for part in (name, word)]
        elif name is not None:
            options += [name, setting.value.strip()]
    line = next((setting.line for setting in settings if setting.name in ("Exec", "Image")), 1)
    command = last.get("Exec", "")
    entrypoint = ("--entrypoint", last["Entrypoint"]) if "Entrypoint" in last else ()
    words = split_words(command, c_escapes=True).words
    container = read_docker_run([*options, *entrypoint, last["Image"], *words])
    return UnitCommand((), tuple(env.items()), line, container=container, restart=last.get("Restart"))


def _expand(word: str, env: dict[str, str]) -> list[str]:
    """`$NAME` as a whole word is split at blanks, `${NAME}` never; what the unit does not set stays open."""
    if word.startswith("$") and word[1:].isidentifier() and word[1:] in env:
        return env[word[1:]].split()

    def known(match: re.Match[str]) -> str:
        value = expand_reference(match[0], env)
        return "$" if match[0] == "$$" else value if isinstance(value, str) else match[0]

    return [_VARIABLE.sub(known, word)]
