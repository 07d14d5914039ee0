"""Which commands a text holds, whatever kind of text it is. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from textwrap import dedent

from longreach.engine.launchfiles.compose import read_service
from longreach.engine.launchfiles.container import Container
from longreach.engine.launchfiles.dockerfile import DOCKERFILE, read_dockerfile
from longreach.engine.launchfiles.found import FoundCommand, TextProblem
from longreach.engine.launchfiles.kubernetes import ALONE, read_container, read_pod
from longreach.engine.launchfiles.makefile import MAKEFILE, read_makefile
from longreach.engine.launchfiles.python_source import PYTHON, read_python
from longreach.engine.launchfiles.start import mentions_server
from longreach.engine.launchfiles.systemd import UNIT, UnitCommand, read_unit
from longreach.engine.launchfiles.typography import PlainText, make_plain
from longreach.engine.launchfiles.unfold import (
    Surroundings,
    commands_of_container,
    commands_of_script,
    commands_of_words,
)
from longreach.engine.launchfiles.yaml_nodes import Mapping, Scalar, as_mapping, mappings, read_documents
from longreach.engine.launchfiles.yaml_scripts import read_scripts
from longreach.errors import InputFileError, UsageError

MAX_CHARACTERS = 500_000
_MAX_DOCUMENTS = 20
_DOCUMENT = re.compile(r"<<-?[ \t]*['\"]?(\w{1,40})")
_FENCE = re.compile(r"[ \t]*(```+|~~~+)")
_READ = (
    "shell scripts, docker run, compose, Kubernetes, Dockerfiles, Makefiles, units of systemd and supervisord, 'run:' and "
    "'script:' in YAML, lists of words in Python"
)
_KSERVE = re.compile(r"modelFormat:\s*(\{\s*)?name:\s*[\"']?huggingface")
_NAMED = tuple(
    map(
        re.compile,
        (r"vllm serve\b", r"vllm\.entrypoints[.\w]*", r"[^\s\"']{0,80}vllm-openai\b[^\s\"']{0,80}", r"\bvllm\b"),
    )
)
_DOCKER_NAME = re.compile(r"(^|/)(Dockerfile|Containerfile)[^/]*$|\.(Dockerfile|dockerfile)$")
_MAKE_NAME = re.compile(r"(^|/)(GNUm|M|m)akefile$|\.mk$")
_WRITES = re.compile(r"\A\s*#!|<<-?[ \t]*['\"]?\w")  # a script, which may write a unit
_YAML_NAME = re.compile(r"\.(ya?ml|json)$", re.IGNORECASE)
_YAML = re.compile(
    r"^[ \t]*(?:-[ \t]*)?\"?(services|apiVersion|kind|image|command|args|entrypoint|spec|containers)\"?[ \t]*:"
    r"|^[ \t]*(?:-[ \t]*)?(?:(?:steps|jobs|hosts)[ \t]*:|(?:run|script|shell):[ \t]*[|>])"
    r"|\A\s*(\[\s*[\"'\w-]|\{\s*\")",
    re.MULTILINE,
)
_SHELL = re.compile(
    r"\A\s*#!|^[ \t]*([^\s:]+[ \t]+)?(vllm serve|docker run|podman run)\b|<<-?[ \t]*['\"]?\w", re.MULTILINE
)
_PROMPT = re.compile(
    r"^[ \t]*(?:\([\w.-]+\)[ \t]*)?(?:[\w.-]+@[\w.-]+[^\n$#]{0,80}[$#]|\$|PS[^\n>]{0,80}>)[ \t]+(?=\S)", re.MULTILINE
)
_OTHER_CONTINUATION = re.compile(r"(?<=[ \t])[`^][ \t]*$", re.MULTILINE)


def find_commands(text: str, name: str = "") -> tuple[FoundCommand, ...]:
    """Every command in a text that starts a vLLM server, in its order. `name` is the file's, for its ending and for errors.

    A shell script (docker run in it), a compose file, a Kubernetes manifest, a unit, a Dockerfile, a Makefile, Python, scripts
    in YAML, a fragment of one of them, or Markdown with any of them between fences. UsageError when it is none of these or
    holds no such command, InputFileError when it is no text or too long.
    """
    shown = name or "the text"
    if "\0" in text:
        raise InputFileError(f"{shown} is not a text file", "there are zero bytes in it", _ADVICE)
    if len(text) > MAX_CHARACTERS:
        why = f"{len(text):,} characters; the commands of a deployment take a few thousand"
        raise InputFileError(f"{shown} is too large for a launch file", why, _ADVICE)
    plain = make_plain(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"))
    blocks = [] if _SHELL.match(plain.text) else list(_fenced(plain.text))
    found = [command for line, block in blocks for command in _of_block(line, block)] or _of_text(plain.text, name)
    if not found:
        raise UsageError(f"{shown} holds no command that starts a vLLM server", _why_none(plain.text), _ADVICE)
    return _with_typography(sorted(found, key=lambda command: command.line), plain)


def find_in_words(words: Sequence[str]) -> FoundCommand:
    """The server that an argument vector starts, whatever wraps it: docker run, numactl, bash -c. UsageError for none."""
    source = list(words)
    env: list[tuple[str, str]] = []
    while source and (pair := re.fullmatch(r"([A-Za-z_]\w*)=(.*)", source[0], re.DOTALL)):
        env.append((pair[1], pair[2]))
        source.pop(0)
    found = next(commands_of_words(source, Surroundings(env=tuple(env))), None)
    if found is None:
        shown = " ".join(words)[:80]
        raise UsageError(f"'{shown}' does not start a vLLM server", "it neither is nor holds 'vllm serve'", _ADVICE)
    return found


_ADVICE = "give the command itself: longreach lint -- vllm serve MODEL ..."


def _why_none(text: str) -> str:
    if _KSERVE.search(text):
        return "modelFormat huggingface has KServe start vLLM inside a server with flags of its own, which is not read"
    named = next((found for pattern in _NAMED if (found := pattern.search(text)) is not None), None)
    if named is None:
        return "neither 'vllm serve' nor vllm.entrypoints.openai.api_server is run, and no image that starts a server"
    line = text.count("\n", 0, named.start()) + 1
    return f"'{named[0]}' stands on line {line}, but not as a command in a format that is read: {_READ}"


def _of_text(text: str, name: str) -> list[FoundCommand]:
    if _YAML_NAME.search(name) is None:
        if UNIT.search(text) and not _WRITES.search(text):
            return list(_of_unit(text, name))
        found = list(_of_build_file(text, name))
        if found:
            return found
    is_yaml = _YAML_NAME.search(name) or (_YAML.search(text) and not _SHELL.search(_without_yaml_items(text)))
    return list(_of_yaml(text, name)) if is_yaml else _of_shell(text)


def _without_comments(text: str) -> str:
    return re.sub(r"\A(?:[ \t]*(?:#[^\n]*|ARG[^\n]*)?\n)+", "", text)


def _without_yaml_items(text: str) -> str:
    """Only lines that are not indented: a shell command inside a YAML block is."""
    return "\n".join(line for line in text.split("\n") if not line[:1].isspace())


def _fenced(text: str) -> Iterator[tuple[int, str]]:
    """The blocks between the fences of a Markdown text, each with the number of lines before it."""
    opened: str | None = None
    block: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        fence = _FENCE.match(line)
        if opened is None and fence is not None:
            opened, block = fence[1], []
        elif opened is not None and fence is not None and fence[1] == opened and line.strip() == opened:
            yield number - 1 - len(block), "\n".join(block)
            opened = None
        else:
            block.append(line)


def _of_block(before: int, block: str) -> Iterator[FoundCommand]:
    if "vllm" not in block:
        return
    try:
        found = _of_text(dedent(block), "")
    except UsageError:  # prose and output stand between fences, too
        return
    for command in found:
        problems = tuple(replace(item, line=item.line and item.line + before) for item in command.problems)
        yield replace(command, line=command.line + before, problems=problems)


def _of_shell(text: str) -> list[FoundCommand]:
    text = _OTHER_CONTINUATION.sub(r"\\", _PROMPT.sub("", text))
    found = list(commands_of_script(text, Surroundings("shell")))
    documents = [(line, block) for line, block in _documents(text) if not found or UNIT.search(block)]
    found += [command for line, block in documents for command in _of_block(line, block)]
    if found or not text.lstrip().startswith("-"):
        return found
    bare = commands_of_script(f"vllm serve {text.lstrip()}", Surroundings("shell"))
    return [replace(command, entry="image") for command in bare]  # arguments as they follow an image


def _documents(text: str) -> Iterator[tuple[int, str]]:
    """Here-documents, which may hold a script or a manifest that is to be written or applied."""
    for opener in islice(_DOCUMENT.finditer(text), _MAX_DOCUMENTS):
        begins = text.find("\n", opener.end()) + 1
        end = re.compile(rf"^[ \t]*{opener[1]}[ \t]*$", re.MULTILINE).search(text, begins)
        if begins and end is not None:
            yield text.count("\n", 0, begins), text[begins : end.start()]


def _of_build_file(text: str, name: str) -> Iterator[FoundCommand]:
    """Those of a Dockerfile, a Python file or a Makefile; none of what is none of these."""
    if _DOCKER_NAME.search(name) or DOCKERFILE.match(_without_comments(text)):
        yield from _of_dockerfile(text)
    elif name.endswith(".py") or PYTHON.search(text):
        yield from _of_python(text)
    elif _MAKE_NAME.search(name) or (MAKEFILE.search(text) and not text.startswith("#!")):
        yield from _of_makefile(text)


def _of_dockerfile(text: str) -> Iterator[FoundCommand]:
    for container in read_dockerfile(text):
        yield from _unfold(container, ())


def _of_makefile(text: str) -> Iterator[FoundCommand]:
    for recipe in read_makefile(text):
        if mentions_server(recipe.text):
            yield from commands_of_script(recipe.text, Surroundings("shell", recipe.line))


def _of_python(text: str) -> Iterator[FoundCommand]:
    for command in read_python(text):
        around = Surroundings("shell", command.line)
        if command.is_script and mentions_server(command.words[0]):
            yield from commands_of_script(command.words[0], around)
        elif not command.is_script:
            yield from commands_of_words(command.words, around)


def _of_unit(text: str, name: str) -> Iterator[FoundCommand]:
    service = name.rsplit("/", 1)[-1] or None
    for unit in read_unit(text):
        around = Surroundings("systemd", unit.line, unit.env, service, memlock=unit.memlock, problems=unit.problems)
        for command in _of_unit_command(unit, around):
            yield replace(command, restart=command.restart or unit.restart)


def _of_unit_command(unit: UnitCommand, around: Surroundings) -> Iterator[FoundCommand]:
    if unit.container is not None:
        return commands_of_container(unit.container, around)
    return commands_of_words(unit.words, around)


def _of_yaml(text: str, name: str) -> Iterator[FoundCommand]:
    for document in read_documents(text, name):
        if not isinstance(document, Mapping):
            yield from _of_list(document)
            continue
        for script in read_scripts(document):
            yield from commands_of_script(script.text, Surroundings("shell", script.line, script.env))
        if document.get("services") is not None:
            yield from _of_compose(document)
        elif document.get("apiVersion") is not None or document.get("kind") is not None:
            yield from _of_manifest(document)
        else:
            yield from _of_fragment(document)


def _of_list(words: tuple[Scalar, ...]) -> Iterator[FoundCommand]:
    yield from commands_of_words([word.text for word in words], Surroundings("words", words[0].line))


def _of_compose(document: Mapping) -> Iterator[FoundCommand]:
    services = as_mapping(document.get("services"))
    for name, node in services.pairs().items() if services is not None else ():
        service = as_mapping(node)
        if service is not None:
            yield from _unfold(*read_service(service, name))


def _of_manifest(document: Mapping) -> Iterator[FoundCommand]:
    pods = {}
    for mapping in mappings(document):
        for key in ("containers", "initContainers"):
            pods.update({id(node): mapping for node in mapping.items(key)})
        if mapping.get("modelFormat") is not None and mapping.get("image") is None:
            continue  # KServe picks a server of its own, whose flags are others
        if mapping.get("args") is not None or mapping.get("command") is not None or mapping.get("image") is not None:
            spec = pods.get(id(mapping.node))
            yield from _unfold(*read_container(mapping, read_pod(spec) if spec is not None else ALONE))


def _of_fragment(document: Mapping) -> Iterator[FoundCommand]:
    """A piece of a compose file or a manifest: only a manifest has `args`, only a compose file has `entrypoint`."""
    if document.get("containers") is not None:
        yield from _of_manifest(document)
        return
    for mapping in mappings(document):
        if mapping.get("args") is not None:
            yield from _unfold(*read_container(mapping, ALONE))
        elif (
            mapping.get("command") is not None
            or mapping.get("entrypoint") is not None
            or mapping.get("image") is not None
        ):
            yield from _unfold(*read_service(mapping, None))


def _unfold(container: Container, problems: tuple[TextProblem, ...]) -> Iterator[FoundCommand]:
    yield from commands_of_container(container, Surroundings(container.format, container.line, problems=problems))


def _with_typography(found: list[FoundCommand], plain: PlainText) -> tuple[FoundCommand, ...]:
    """Give each command the lines with odd characters that stand between it and the next one."""
    done = []
    for index, command in enumerate(found):
        begins = command.line if index else 0
        ends = found[index + 1].line if index + 1 < len(found) else MAX_CHARACTERS
        lines = {line: odd for line, odd in plain.replaced.items() if begins <= line < ends}
        problem = (_typography_problem(lines),) if lines else ()
        done.append(replace(command, problems=(*problem, *command.problems)))
    return tuple(done)


def _typography_problem(lines: dict[int, str]) -> TextProblem:
    first = min(lines)
    odd = ", ".join(f"U+{ord(letter):04X}" for letter in "".join(sorted(set("".join(lines.values())))))
    where = f"line {first}" if len(lines) == 1 else f"{len(lines)} lines, first on line {first},"
    return TextProblem(
        "typographic_characters",
        f"{where} holds characters of a web page or a word processor: {odd}",
        "they look like '--', quotes or blanks and are none, for the shell as for vLLM",
        "type the dashes, quotes and blanks anew, or take the command from here",
        first,
    )
