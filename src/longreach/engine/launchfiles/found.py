"""A command as a text holds it: its words, what surrounds it, and the mistakes of the text itself."""

from dataclasses import dataclass
from typing import Literal

from longreach.engine.launchfiles.spelling import NO_SOURCE, SourceLine

LaunchFormat = Literal["words", "shell", "docker", "dockerfile", "compose", "kubernetes", "systemd"]

Entry = Literal["vllm serve", "api_server", "image"]
"""What starts: `vllm serve`, the api_server module, or whichever of the two the image's entry point is."""

ProblemKind = Literal[
    "stray_serve_in_image_args",
    "serve_after_unknown_image",
    "joined_words",
    "folded_yaml_backslash",
    "comment_in_continuation",
    "continuation_missing",
    "blank_after_backslash",
    "quotes_inside_quotes",
    "quote_not_closed",
    "typographic_characters",
]


@dataclass(frozen=True, slots=True)
class TextProblem:
    """A mistake of the text: the shell, YAML or docker makes something else of it than was meant."""

    kind: ProblemKind
    what: str
    why: str
    fix: str
    line: int | None = None  # 1-based


@dataclass(frozen=True, slots=True)
class FoundCommand:
    """One command that starts a server. What the text leaves open stays as `$NAME` in argv and env; None: not said.

    `argv` begins `("vllm", "serve", ...)` or `("python3", "-m", "vllm.entrypoints.openai.api_server", ...)`. It is exactly what
    the shell, YAML or docker passes on; where a problem of the text spoils that, it is what was meant, and `received` is what is
    passed on.
    """

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    entry: Entry = "vllm serve"
    format: LaunchFormat = "words"
    line: int = 1  # where it begins, 1-based
    problems: tuple[TextProblem, ...] = ()
    received: tuple[str, ...] | None = None  # None: the same as argv
    image: str | None = None
    service: str | None = None  # of compose, container or unit
    gpus: str | None = None  # as written: "all", "2", "device=4,5"
    shm_bytes: int | None = None  # size given to /dev/shm
    host_ipc: bool = False
    host_network: bool = False
    memlock: str | None = None  # bytes or "-1"/"infinity"
    capabilities: tuple[str, ...] = ()  # added ones: SYS_NICE
    ports: tuple[str, ...] = ()  # as published: "8000:8000"
    restart: str | None = None
    privileged: bool = False
    release: str | None = None  # of vLLM, where the line names it: `uv run --with vllm==0.9.2 vllm serve`
    source: SourceLine = NO_SOURCE  # how a shell text spells it
