"""The command: EngineOptions to the argv of `vllm serve`, and back. The two are inverse. Pure."""

from collections.abc import Sequence
from dataclasses import fields

from longreach.engine.checks import check_options, raise_problems
from longreach.engine.flag_values import AUTO, write_value
from longreach.engine.flags import FLAGS, Flag
from longreach.engine.json_flags import JSON_FLAGS
from longreach.engine.options import EngineOptions, OptionProblem, ServeCommand
from longreach.engine.reading import read_command
from longreach.engine.release import Release


def render_command(options: EngineOptions, release: Release) -> ServeCommand:
    """`("vllm", "serve", MODEL, flags in table order, extra_args)`; UsageError tells every problem of the options."""
    raise_problems(check_options(options, release))
    argv = ["vllm", "serve", options.model]
    for flag in FLAGS:
        argv += _render_flag(flag, options)
    command = ServeCommand((*argv, *options.extra_args), options.env)
    raise_problems(_check_round_trip(options, command, release))
    return command


def parse_command(argv: Sequence[str], env: Sequence[tuple[str, str]], release: Release) -> EngineOptions:
    """The options of a command; what they cannot express stands untouched in `extra_args`.

    UsageError tells every value that vLLM's own parser would refuse, too; `read_command` keeps going instead.
    """
    reading = read_command(argv, env, release)
    raise_problems(reading.problems)
    return reading.options


def render_flags(options: EngineOptions) -> dict[str, tuple[str, ...]]:
    """The words after each flag that the options render, by the flag's spelling; unlike a whole command, nothing is checked."""
    rendered = (_render_flag(flag, options) for flag in FLAGS)
    return {words[0]: tuple(words[1:]) for words in rendered if words}


def _render_flag(flag: Flag, options: EngineOptions) -> list[str]:
    if flag.key is not None:
        return []
    if flag.kind == "json":
        written = JSON_FLAGS[flag.name].encode(options)
        return [] if written is None else [flag.name, write_value(written)]
    value = getattr(options, flag.field)
    if flag.kind == "length" and options.max_model_len_auto:
        return [flag.name, AUTO]
    if value is None or (flag.kind == "int" and value == flag.absent):
        return []
    if flag.kind == "bool":
        return [flag.name if value else flag.negated]
    if flag.kind in ("ints", "texts"):
        return [flag.name, *map(str, value)]
    return [flag.name, write_value(value)]


def _check_round_trip(options: EngineOptions, command: ServeCommand, release: Release) -> tuple[OptionProblem, ...]:
    """A command must read back as the options it was made from; else, say, an extra argument sets what a field sets."""
    reading = read_command(command.argv, command.env, release)
    names = [
        item.name for item in fields(options) if getattr(reading.options, item.name) != getattr(options, item.name)
    ]
    if not names and not reading.problems:
        return ()
    words = {flag.field: flag.name for flag in FLAGS if flag.key is None}
    clashing = ", ".join(words[name] for name in names if name in words) or ", ".join(names)
    why = "; ".join(f"{name} reads back as {getattr(reading.options, name)!r}" for name in names)
    fix = f"say {clashing} once: as an option of its own, or among the extra arguments"
    problem = OptionProblem(f"the extra arguments set {clashing} to something else", why, fix)
    return (*reading.problems, problem) if names else reading.problems
