"""Reading a command: the argv of `vllm serve` to EngineOptions, with everything that could not be read. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from longreach.engine.arguments import Argument, Arguments, split_arguments
from longreach.engine.flag_values import ABSENT_TEXTS, AUTO, parse_value
from longreach.engine.flags import FLAGS, Flag
from longreach.engine.json_flags import JSON_FLAGS, JsonObject
from longreach.engine.options import EngineOptions, OptionProblem
from longreach.engine.parser import ParsedCommand, Use
from longreach.engine.release import Release


@dataclass(frozen=True, slots=True)
class CommandReading:
    """What could be read of a command, and what could not. Arguments that do not parse leave their field unset."""

    options: EngineOptions
    parsed: ParsedCommand
    arguments: tuple[Argument, ...]
    problems: tuple[OptionProblem, ...]


@dataclass(slots=True)
class _Draft:
    """What reading has gathered so far."""

    parsed: ParsedCommand
    values: JsonObject = field(default_factory=dict)  # fields of EngineOptions
    extra: list[Use] = field(default_factory=list)
    json_uses: dict[str, list[Argument]] = field(default_factory=dict)  # by EngineOptions field

    def is_sound(self, use: Use) -> bool:
        """Whether the parser finds nothing wrong with this use."""
        return all(problem.use is not use for problem in self.parsed.problems)


def read_command(
    argv: Sequence[str],
    env: Sequence[tuple[str, str]],
    release: Release,
    config: Mapping[str, object] | None = None,
) -> CommandReading:
    """The options of a command, and of its `--config` file, with the problems beside them.

    UsageError only when argv starts no server.

    Of repeated flags the last one holds, as in vLLM. What the options cannot express goes untouched to `extra_args`.
    """
    arguments = split_arguments(argv, release, config)
    draft = _Draft(arguments.parsed)
    for argument in arguments.flags:
        _read_argument(draft, argument)
    for name, uses in draft.json_uses.items():
        _read_json_flag(draft, name, uses)
    extra = tuple(token for use in sorted(draft.extra, key=lambda use: use.position) for token in use.tokens)
    absent = {flag.field: flag.absent for flag in FLAGS if flag.absent is not None}
    given = {"model": arguments.model or "", "extra_args": extra, "env": tuple(env)}
    options = EngineOptions(**(absent | draft.values | given))  # type: ignore[arg-type] # checked by the round-trip test
    return CommandReading(options, arguments.parsed, arguments.flags, _problems(arguments))


def _problems(arguments: Arguments) -> tuple[OptionProblem, ...]:
    problems = [OptionProblem(problem.what, problem.why, problem.fix) for problem in arguments.parsed.problems]
    if arguments.model is None and arguments.parsed.config_path is None:
        why = "no bare word follows 'serve' and there is no --model; vLLM would serve its built-in default"
        problems.append(OptionProblem("the command names no model", why, "vllm serve MODEL ..."))
    return tuple(problems)


def _read_argument(draft: _Draft, argument: Argument) -> None:
    use, flag = argument.use, argument.flag
    if flag is None or (flag.kind == "text" and len(use.values) > 1):
        draft.extra.append(use)
    elif flag.kind == "json" or flag.key is not None:
        draft.json_uses.setdefault(flag.field, []).append(argument)
    elif not draft.is_sound(use) or use.path:
        return
    elif flag.kind == "bool":
        draft.values[flag.field] = not use.negated
    else:
        _read_scalar(draft, flag, use)


def _read_scalar(draft: _Draft, flag: Flag, use: Use) -> None:
    if use.value in ABSENT_TEXTS:
        draft.values.pop(flag.field, None)
        return
    value = _try_value(flag, use)
    if value is None:
        return
    if flag.kind == "length":
        is_auto = value == AUTO
        draft.values |= {"max_model_len": None if is_auto else value, "max_model_len_auto": is_auto}
    else:
        draft.values[flag.field] = value


def _try_value(flag: Flag, use: Use) -> object:
    """None where an open variable stands for a number, or nothing at all."""
    try:
        return parse_value(flag.kind, use.values)
    except (ValueError, IndexError):
        return None


_JSON_NAMES = {flag.field: flag.name for flag in FLAGS if flag.kind == "json"}


def _read_json_flag(draft: _Draft, field_name: str, arguments: Sequence[Argument]) -> None:
    """The object of one JSON flag, with the shortcuts for single keys of it."""
    name = _JSON_NAMES[field_name]
    sound = [argument for argument in arguments if draft.is_sound(argument.use)]
    shortcuts: JsonObject = {
        argument.flag.key: _try_value(argument.flag, argument.use)
        for argument in sound
        if argument.flag is not None and argument.flag.key is not None
    }
    whole = draft.parsed.json(name)
    is_absent = not draft.parsed.named(name)
    decoded = None if whole is None and not is_absent else JSON_FLAGS[name].decode({**(whole or {}), **shortcuts})
    if decoded is None or len(sound) < len(arguments):
        draft.extra += [argument.use for argument in arguments]
    else:
        draft.values |= decoded
