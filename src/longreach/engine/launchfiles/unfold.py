"""From a script, words or a container to the servers that they start, through every shell and wrapper between. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from longreach.engine.launchfiles.container import Container, starts_server
from longreach.engine.launchfiles.docker_run import read_docker_run
from longreach.engine.launchfiles.found import Entry, FoundCommand, LaunchFormat, TextProblem
from longreach.engine.launchfiles.shell_script import read_script
from longreach.engine.launchfiles.spelling import NO_SOURCE, SourceLine, SourceWord, part_of, spell, spelling_of
from longreach.engine.launchfiles.start import (
    MODULE,
    SERVE,
    ContainerStart,
    ScriptStart,
    ServerStart,
    base_name,
    mentions_server,
    read_start,
)

_MAX_DEPTH = 4  # a shell in a container in a shell
_MODULE_RELEASES = re.compile(r"v?0\.(\d|10|11\.0)\b")  # tags whose entry point is the api_server module
_REQUIREMENT = re.compile(r"(?:--with=|--from=)?vllm(?:\[[\w,-]*\])?(?:==|@)(\d[\w.]*)")
_NO_NAME = re.compile(
    r"[${}<>%]|\A[^:@]*[A-Z]|\A[0-9a-f]{12,64}\Z"
)  # open, a placeholder (names are lower case), an id
_BARE_JSON = re.compile(r"""'\{\s*[A-Za-z_]\w*\s*:[^"'{}]*\}'""")
_SERVER_FLAGS = frozenset(
    ("--model", "--max-model-len", "--tensor-parallel-size", "-tp", "--gpu-memory-utilization", "--served-model-name")
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What stands around words: where they are from, and what the environment holds."""

    format: LaunchFormat = "words"
    line: int = 1
    env: tuple[tuple[str, str], ...] = ()
    service: str | None = None
    container: Container | None = None
    memlock: str | None = None
    depth: int = 0
    problems: tuple[TextProblem, ...] = ()
    source: SourceLine = NO_SOURCE  # what a shell text has around the words

    def with_env(self, added: Sequence[tuple[str, str]]) -> "Surroundings":
        """The same with more variables; later ones replace earlier ones."""
        return replace(self, env=tuple((dict(self.env) | dict(added)).items()))


def commands_of_script(text: str, around: Surroundings) -> Iterator[FoundCommand]:
    """The servers that a shell script starts."""
    if around.depth > _MAX_DEPTH:
        return
    for run in read_script(text, dict(around.env)):
        line = around.line + run.line - 1
        problems = tuple(_at_line(problem, around.line - 1) for problem in run.problems)
        source = replace(around.source, after=run.after, left_out=(*around.source.left_out, *run.left_out))
        here = replace(around.with_env(run.env), line=line, problems=(*around.problems, *problems), source=source)
        yield from commands_of_words(run.words, here)


def commands_of_words(words: Sequence[str], around: Surroundings) -> Iterator[FoundCommand]:
    """The servers that one list of words starts: none, one, or those of the script in it."""
    start = read_start(words)
    if isinstance(start, ServerStart):
        entry: Entry = start.entry
        env = _prefix_env(words[: start.first])
        found = _found(entry, words[start.first :], around.with_env(env))
        yield replace(
            found, source=_with_start(found, words[: start.first]), release=_named_release(words[: start.first])
        )
    elif isinstance(start, ScriptStart):
        script = words[start.position]
        inner = replace(around.with_env(_prefix_env(words[: start.position])), depth=around.depth + 1)
        inner = replace(inner, source=_left_behind(around.source, words[: start.position]))
        yield from commands_of_script(
            script, replace(inner, problems=(*inner.problems, *_lost_quotes(script, around.line)))
        )
    elif isinstance(start, ContainerStart):
        container = read_docker_run(words[start.first :])
        if container is not None:
            runner = words[: len(words) - len(container.args)]
            inner = replace(around, format="docker", source=_left_behind(around.source, runner))
            yield from commands_of_container(container, inner)


def commands_of_container(container: Container, around: Surroundings) -> Iterator[FoundCommand]:
    """The servers that a container of docker run, a compose file, a pod or a unit starts."""
    args = container.args
    around = replace(around, container=container, service=container.service, depth=around.depth + 1)
    # Outside variables do not reach into a container; its own are all there are.
    around = replace(around, env=container.env)
    if around.depth > _MAX_DEPTH:
        return
    if container.entrypoint is not None:
        yield from _without_second_serve((*container.entrypoint, *args), around)
        return
    serves = starts_server(container.image)
    start = read_start(args)
    if start is None and len(args) == 1 and mentions_server(args[0]):
        yield from _whole_command_in_one_word(args[0], serves=serves, around=around)
    elif start is not None:
        problem = _repeated(args, around, serves=serves) if serves else ()
        for command in commands_of_words(args, around):
            yield replace(
                command,
                problems=(*problem, *command.problems),
                received=(*SERVE, *args) if serves else command.received,
            )
    elif args[:1] == ("serve",) and (serves or _may_be_vllm(container.image)):
        found = _found("image", args[1:], around)
        yield replace(
            found, problems=(*_repeated(args, around, serves=serves), *found.problems), received=(*SERVE, *args)
        )
    elif serves or (serves is None and _are_server_args(args, container.image)):
        yield _found("image", args, around)


def _without_second_serve(words: Sequence[str], around: Surroundings) -> Iterator[FoundCommand]:
    for command in commands_of_words(words, around):
        if command.argv[:3] != (*SERVE, "serve"):
            yield command
            continue
        problem = TextProblem(
            "stray_serve_in_image_args",
            "'serve' stands twice: at the end of the entry point and at the start of its arguments",
            "vLLM takes the second 'serve' for the model, and the model for a word that belongs to nothing",
            "remove 'serve' from the arguments",
            command.line,
        )
        yield replace(
            command, argv=(*SERVE, *command.argv[3:]), problems=(problem, *command.problems), received=command.argv
        )


def _whole_command_in_one_word(word: str, *, serves: bool | None, around: Surroundings) -> Iterator[FoundCommand]:
    """`args: ["vllm serve M ..."]`: right behind `sh -c` only."""
    problem = TextProblem(
        "joined_words",
        f"'{word.split(maxsplit=3)[0]} ...' is one word that holds a whole command",
        "nothing takes it apart without a shell: it is looked up as the name of a program ('no such file'), or is one argument",
        'write every word as an item of its own, or run it with command: ["sh", "-c"]',
        around.line,
    )
    is_told = around.container is not None and around.container.image is not None
    for command in commands_of_script(word, around):
        problems = (problem, *command.problems) if is_told or serves else command.problems
        yield replace(command, problems=problems)


def _lost_quotes(script: str, line: int) -> tuple[TextProblem, ...]:
    """`bash -c "... '{"key": 1}' ..."`: the inner double quotes end the outer ones."""
    lost = _BARE_JSON.search(script)
    if lost is None:
        return ()
    return (
        TextProblem(
            "quotes_inside_quotes",
            f"{lost[0][:80]} has lost the double quotes of its JSON",
            "a '\"' inside a script in double quotes ends it, so the shell takes all of them away",
            'write \\" for each inner one, or put the script in single quotes and the JSON in \\"...\\"',
            line,
        ),
    )


def _repeated(values: Sequence[str], around: Surroundings, *, serves: bool | None) -> tuple[TextProblem, ...]:
    image = around.container.image if around.container is not None else None
    words = "serve" if values[0] == "serve" else " ".join(values[:2])
    if serves:
        return (
            TextProblem(
                "stray_serve_in_image_args",
                f"'{words}' is repeated behind image {image}",
                "its entry point starts the server, what follows are arguments of it, and vLLM exits with 'unrecognized arguments'",
                f"remove '{words}', so that the model or the first flag follows the image, or set the entry point",
                around.line,
            ),
        )
    return (
        TextProblem(
            "serve_after_unknown_image",
            f"'serve' begins the arguments of {image or 'an image that is not named'}",
            "right only where the image's entry point is 'vllm' alone; vLLM's own images start the server, and refuse it",
            "look at it with docker image inspect, and remove 'serve' where the entry point already starts the server",
            around.line,
        ),
    )


def _are_server_args(values: Sequence[str], image: str | None) -> bool:
    if not values:
        return False
    names = {value.partition("=")[0].replace("_", "-") for value in values}
    if image is None:
        return values[0].startswith("--") or bool(names & _SERVER_FLAGS)
    if not _may_be_vllm(image):
        return False
    return bool(names & _SERVER_FLAGS) or ("vllm" in image and (values[0].startswith("--") or "/" in values[0]))


def _may_be_vllm(image: str | None) -> bool:
    """Whether the image's name is not told, or names vLLM: other servers have a `serve` and a --model, too."""
    return image is None or "vllm" in image or _NO_NAME.search(image) is not None


def _found(entry: Entry, args: Sequence[str], around: Surroundings) -> FoundCommand:
    container = around.container or Container()
    is_module = entry == "api_server" or (entry == "image" and _has_module_entry(container.image))
    start = MODULE if is_module else SERVE
    return FoundCommand(
        argv=(*start, *args),
        env=around.env,
        entry=entry,
        format=around.format,
        line=around.line,
        problems=around.problems,
        source=_source(start, args, around),
        image=container.image,
        service=around.service,
        gpus=container.gpus,
        shm_bytes=container.shm_bytes,
        host_ipc=container.host_ipc,
        host_network=container.host_network,
        memlock=container.memlock or around.memlock,
        capabilities=container.capabilities,
        ports=container.ports,
        restart=container.restart,
        privileged=container.privileged,
    )


def _has_module_entry(image: str | None) -> bool:
    """Images of vLLM up to 0.11.0 start the api_server module, later ones `vllm serve`."""
    return _MODULE_RELEASES.match((image or "").rpartition(":")[2]) is not None


def _source(start: Sequence[str], args: Sequence[str], around: Surroundings) -> SourceLine:
    words = ((word, spelling_of(word)) for word in (*start, *args))
    env = ((name, value, spelling_of(value)) for name, value in around.env)
    return replace(around.source, words=tuple(words), env=tuple(env))


def _with_start(found: FoundCommand, head: Sequence[str]) -> SourceLine:
    """With what stands before the arguments: the way to the program, and the wrappers around it."""
    source = found.source
    if not all(isinstance(word, SourceWord) for word in head):
        return source
    programs = [place for place, word in enumerate(head) if base_name(word).partition("@")[0] in ("vllm", "python3")]
    program = programs[-1] if programs else 0
    assigned = [place for place in _assigned(head[:program]) if not place or head[place - 1] not in ("-e", "--env")]
    before = [spell(word) for place, word in enumerate(head[:program]) if place not in assigned]
    last = (len(MODULE) if found.argv[: len(MODULE)] == MODULE else len(SERVE)) - 1  # the program is the first
    own = head[max(program + 1, len(head) - last) :]
    first = " ".join(map(spell, head[program : len(head) - len(own)]))
    spelled = [first, *map(spell, own)]
    if len(spelled) == last + 1:
        start = zip(found.argv, spelled, strict=False)
        source = replace(source, words=(*start, *source.words[last + 1 :]))
    return replace(source, before=tuple(before), env_at=assigned[0] if assigned else 0)


def _left_behind(source: SourceLine, runner: Sequence[str]) -> SourceLine:
    """For a command inside of a shell or a container: what it stands in is not on its line."""
    if not all(isinstance(word, SourceWord) for word in runner):
        return source
    shown = " ".join(" ".join([*map(spell, runner), "...", source.after]).split())
    return SourceLine(left_out=(*source.left_out, shown))


def _named_release(words: Sequence[str]) -> str | None:
    """`uv run --with vllm==0.9.2 vllm serve`, `uvx vllm@0.9.2 serve`."""
    named = [match[1] for word in words if (match := _REQUIREMENT.fullmatch(word))]
    return named[-1] if named else None


def _prefix_env(words: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Assignments among what precedes the server: `env A=1 vllm serve`."""
    pairs = ((words[place], words[place].partition("=")) for place in _assigned(words))
    return tuple((name, part_of(word, value)) for word, (name, _, value) in pairs)


def _assigned(words: Sequence[str]) -> list[int]:
    """Where assignments stand; `--with vllm==0.9.2` is the value of an option, and none."""
    places = []
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        is_value = place > 0 and words[place - 1].startswith("--") and words[place - 1] != "--env"
        if equals and name.isidentifier() and not value.startswith("=") and not is_value:
            places.append(place)
    return places


def _at_line(problem: TextProblem, added: int) -> TextProblem:
    return problem if problem.line is None or not added else replace(problem, line=problem.line + added)
