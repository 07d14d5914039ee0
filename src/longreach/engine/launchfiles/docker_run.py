"""`docker run` and its like: the options that count, the image, and what stands behind it. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from longreach.engine.launchfiles.container import Container
from longreach.engine.launchfiles.spelling import part_of
from longreach.errors import UsageError
from longreach.units import parse_bytes

_SWITCH = re.compile(
    r"""--(detach|interactive|tty|rm|privileged|init|no-healthcheck|oom-kill-disable|publish-all|read-only|sig-proxy|quiet|help
      | disable-content-trust|use-api-socket|replace|no-hosts|no-hostname|rmi
      | env-host|http-proxy|tls-verify|passwd|unsetenv-all)""",
    re.VERBOSE,
)
_OWN = re.compile(  # options that vLLM does not have
    r"-[evp]|--(name|env|env-file|entrypoint|gpus|volume|mount|shm-size|ipc|network|rm|restart|publish|ulimit|device|runtime)"
)
_SHORT_SWITCHES = frozenset("ditPq")
_SHORT = {"-e": "--env", "-p": "--publish", "-v": "--volume", "-h": "--hostname", "-u": "--user", "-m": "--memory"}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([bkmgt]?)(?:i?b)?", re.IGNORECASE)
_SCALES = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4}


@dataclass(frozen=True, slots=True)
class _Option:
    name: str
    value: str


def read_docker_run(words: Sequence[str]) -> Container | None:
    """The container of what follows `docker run`; None when it names no image."""
    options, position = _split(words)
    if position >= len(words):
        return None
    given: dict[str, list[str]] = {}
    for option in options:
        given.setdefault(option.name, []).append(option.value)
    entrypoint = _last(given, "--entrypoint")
    return Container(
        image=words[position],
        entrypoint=None if entrypoint is None else tuple(entrypoint.split()),
        args=tuple(words[position + 1 :]),
        env=tuple(_environment(given.get("--env", []))),
        service=_last(given, "--name"),
        gpus=_gpus(given),
        shm_bytes=docker_bytes(_last(given, "--shm-size")),
        host_ipc=_last(given, "--ipc") == "host",
        host_network="host" in (_last(given, "--network"), _last(given, "--net")),
        memlock=_memlock(given.get("--ulimit", [])),
        capabilities=tuple(name.removeprefix("CAP_") for name in given.get("--cap-add", [])),
        ports=tuple(given.get("--publish", [])),
        restart=_last(given, "--restart"),
        privileged=_last(given, "--privileged") in ("", "true"),
    )


def docker_bytes(text: str | None) -> int | None:
    """A size as docker reads it: `16g`, `16gb` and `10.24gb` are binary; None where it is open or unreadable."""
    match = _SIZE.fullmatch(text.strip()) if text else None
    return int(float(match[1]) * 1024 ** _SCALES[match[2].lower()]) if match else None


def kubernetes_bytes(text: str | None) -> int | None:
    """A Kubernetes quantity: `16Gi` is binary, `16G` decimal."""
    if not text:
        return None
    try:
        return parse_bytes(f"{text}B" if text[-1:].isalpha() else text)
    except UsageError:
        return None


def _split(words: Sequence[str]) -> tuple[list[_Option], int]:
    """The options before the image, and the image's position."""
    options: list[_Option] = []
    position = 0
    while position < len(words) and words[position] != "-":
        word = words[position]
        if word.startswith("$") and _OWN.fullmatch("".join(words[position + 1 : position + 2]).partition("=")[0]):
            position += 1  # more options, in a variable that is open
            continue
        if not word.startswith("-"):
            break
        name, equals, value = word.partition("=")
        if not word.startswith("--"):
            name, value, is_whole = _short(word)
        else:
            is_whole = bool(equals) or _SWITCH.fullmatch(name) is not None
        if not is_whole and position + 1 < len(words):
            position += 1
            value = words[position]
        options.append(_Option(name, value))
        position += 1
    return options, position


def _short(word: str) -> tuple[str, str, bool]:
    """Name, value, and whether the word holds all: `-itd`, `-p8000:8000`, `-e` (whose value follows), `-itp` (too)."""
    for index, letter in enumerate(word[1:], start=1):
        if letter not in _SHORT_SWITCHES:
            name = _SHORT.get(f"-{letter}", f"-{letter}")
            rest = word[index + 1 :].removeprefix("=")
            return name, rest, bool(rest)
    return word, "", True


def _environment(values: Sequence[str]) -> Iterator[tuple[str, str]]:
    for value in values:
        name, equals, text = value.partition("=")
        yield name, part_of(value, text) if equals else f"${name}"  # the caller's own value is handed through


def _gpus(given: dict[str, list[str]]) -> str | None:
    asked = _last(given, "--gpus")
    if asked is not None:
        return asked.strip("\"'")
    devices = [name.removeprefix("nvidia.com/gpu=") for name in given.get("--device", []) if "nvidia.com/gpu=" in name]
    return ",".join(devices) or None


def _memlock(limits: Sequence[str]) -> str | None:
    found = [limit.partition("=")[2] for limit in limits if limit.startswith("memlock=")]
    return found[-1].partition(":")[0] if found else None


def _last(given: dict[str, list[str]], name: str) -> str | None:
    return given[name][-1] if name in given else None
