"""What a list of words starts: the server itself, a shell with a script in it, a container, or nothing of ours. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

API_SERVER = "vllm.entrypoints.openai.api_server"
_MODULES = {API_SERVER: "api_server", "vllm.entrypoints.api_server": "api_server", "vllm.entrypoints.cli.main": "vllm"}
_SCRIPTS = {"vllm/entrypoints/openai/api_server.py": "api_server", "vllm/entrypoints/cli/main.py": "vllm"}
SERVE = ("vllm", "serve")
MODULE = ("python3", "-m", API_SERVER)

_SHELL = re.compile(r"(ba|da|z|k|a)?sh|busybox")
_WRAPPER = re.compile(
    r"""exec|command|coproc|nohup|sudo|doas|env|nice|ionice|chrt|taskset|numactl|stdbuf|setsid|timeout|time|unbuffer|prlimit|cgexec
      | systemd-run|systemd-cat|flock|tini|dumb-init|start|pm2|xvfb-run|proxychains4?|strace|catchsegv
      | uvx?|poetry|pdm|pipenv|pixi|hatch|rye|conda|mamba|micromamba|python3
      | srun|mpirun|mpiexec|torchrun|accelerate|ray|nsys|ncu|rocprof|rocprofv3|perf|gdb
      | ssh|tmux|screen|eval|su|runuser|watch|kubectl|oc|docker|docker-compose|podman|nerdctl|apptainer|singularity|enroot""",
    re.VERBOSE,
)
_RUNNERS = frozenset(("docker", "podman", "nerdctl"))
_OPTION_GROUP = re.compile(r"-[a-z]*c[a-z]*")
_VERSIONED = re.compile(r"(python|pypy)\d?(\.\d+)?t?")


@dataclass(frozen=True, slots=True)
class ServerStart:
    """`vllm serve` or the api_server module, and the position of its first argument."""

    entry: Literal["vllm serve", "api_server"]
    first: int


@dataclass(frozen=True, slots=True)
class ScriptStart:
    """A shell or its like that is handed a script as one word."""

    position: int


@dataclass(frozen=True, slots=True)
class ContainerStart:
    """`docker run` and its like, and the position of the first option."""

    first: int


Start = ServerStart | ScriptStart | ContainerStart


def read_start(words: Sequence[str]) -> Start | None:
    """What the words start, whatever wraps it (`exec`, `numactl ...`, `uv run`, `sudo -E env A=1`); None: nothing known."""
    direct = _server_at(words, 0)
    if direct is not None:
        return direct
    if not words or not _is_wrapper(words[0]):
        return None
    for position, word in enumerate(words):
        if position and word == "run" and base_name(words[position - 1]) in _RUNNERS:
            return ContainerStart(position + 1)
        if position and word == "run" and words[position - 1] == "container":
            return ContainerStart(position + 1)
        if (server := _server_at(words, position)) is not None:
            return server
        if _SHELL.fullmatch(base_name(word)) and (script := _script_of_shell(words, position)) is not None:
            return ScriptStart(script)
        if position and (" " in word or "\n" in word) and mentions_server(word):
            return ScriptStart(position)
    return None


def base_name(word: str) -> str:
    """The last component of a path; a version behind `python` is dropped."""
    name = word.rsplit("/", 1)[-1]
    return "python3" if _VERSIONED.fullmatch(name) else name


def mentions_server(text: str) -> bool:
    """Whether a server may be started somewhere in this text."""
    return "vllm" in text and ("serve" in text or "entrypoints" in text or "run" in text)


def _is_wrapper(word: str) -> bool:
    return any(pattern.fullmatch(base_name(word)) for pattern in (_WRAPPER, _SHELL))


def _server_at(words: Sequence[str], position: int) -> ServerStart | None:
    word = words[position] if position < len(words) else ""
    following = words[position + 1] if position + 1 < len(words) else ""
    if base_name(word).partition("@")[0] == "vllm" and following == "serve":  # `uvx vllm@0.9.2 serve`
        return ServerStart("vllm serve", position + 2)
    module = _MODULES.get(following) if word == "-m" else _script(word)
    behind = position + (2 if word == "-m" else 1)
    if module == "vllm" and words[behind : behind + 1] == ["serve"]:
        return ServerStart("vllm serve", behind + 1)
    return ServerStart("api_server", behind) if module == "api_server" else None


def _script(word: str) -> str | None:
    return next((kind for path, kind in _SCRIPTS.items() if word.endswith(path)), None)


def _script_of_shell(words: Sequence[str], position: int) -> int | None:
    """The word after `bash -c`, `sh -lc`, `bash -c -i`, `bash -o pipefail -c`."""
    has_command = False
    for index in range(position + 1, len(words)):
        word = words[index]
        if _OPTION_GROUP.fullmatch(word):
            has_command = True
        elif not word.startswith(("-", "+")) and words[index - 1] not in ("-o", "-O", "+o"):
            return index if has_command else None
    return None
