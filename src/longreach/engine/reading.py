"""Reading a command: the argv of `vllm serve` to EngineOptions, with everything that could not be read. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from longreach.engine.arguments import Argument, split_arguments
from longreach.engine.flag_values import ABSENT_TEXTS, AUTO, parse_value, read_dotted_value, read_json_object
from longreach.engine.flags import FLAGS, Flag
from longreach.engine.json_flags import JSON_FLAGS, JsonObject
from longreach.engine.options import EngineOptions, OptionProblem
from longreach.engine.release import Release
from longreach.errors import UsageError


@dataclass(frozen=True, slots=True)
class CommandReading:
    """What could be read of a command, and what could not. Arguments that do not parse leave their field unset."""

    options: EngineOptions
    arguments: tuple[Argument, ...]
    problems: tuple[OptionProblem, ...]


@dataclass(slots=True)
class _Draft:
    """What reading has gathered so far."""

    values: JsonObject = field(default_factory=dict)  # fields of EngineOptions
    extra: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)  # position, tokens
    json_uses: dict[str, list[tuple[int, Argument]]] = field(default_factory=dict)  # by EngineOptions field
    problems: list[OptionProblem] = field(default_factory=list)


def read_command(argv: Sequence[str], env: Sequence[tuple[str, str]], release: Release) -> CommandReading:
    """The options of a command with the problems beside them; UsageError only when argv starts no server.

    Of repeated flags the last one holds, as in vLLM. What the options cannot express goes untouched to `extra_args`.
    """
    arguments = split_arguments(argv, release)
    draft = _Draft()
    for position, argument in enumerate(arguments.flags):
        _read_argument(draft, position, argument)
    for name, uses in draft.json_uses.items():
        _read_json_flag(draft, name, uses)
    if arguments.model is None:
        why = "no bare word follows 'serve' and there is no --model; vLLM would serve its built-in default"
        draft.problems.append(OptionProblem("the command names no model", why, "vllm serve MODEL ..."))
    for word in arguments.stray:
        why = "it follows no flag that takes it, and the model is already named"
        draft.problems.append(OptionProblem(f"bare word {word!r} in the command", why, f"remove {word!r}"))
    extra = tuple(token for _, tokens in sorted(draft.extra) for token in tokens)
    absent = {flag.field: flag.absent for flag in FLAGS if flag.absent is not None}
    given = {"model": arguments.model or "", "extra_args": extra, "env": tuple(env)}
    options = EngineOptions(**(absent | draft.values | given))  # type: ignore[arg-type] # checked by the round-trip test
    return CommandReading(options, arguments.flags, tuple(draft.problems))


def _read_argument(draft: _Draft, position: int, argument: Argument) -> None:
    flag = argument.flag
    if flag is None or (flag.kind == "text" and len(argument.values) > 1):
        draft.extra.append((position, argument.tokens))
    elif flag.kind == "json" or flag.key is not None:
        draft.json_uses.setdefault(flag.field, []).append((position, argument))
    elif flag.kind == "bool" and not argument.values and not argument.path:
        draft.values[flag.field] = not argument.negated
    elif flag.kind == "bool" or argument.path or not argument.values:
        why = f"{flag.name} takes {'no value' if flag.kind == 'bool' else 'one value'}"
        draft.problems.append(OptionProblem(f"'{' '.join(argument.tokens)}' does not parse", why, f"write {flag.name}"))
    else:
        _read_scalar(draft, flag, argument.values)


def _read_scalar(draft: _Draft, flag: Flag, values: tuple[str, ...]) -> None:
    value = _try_value(draft, flag, values)
    if flag.kind == "length" and value is not None:
        is_auto = value == AUTO
        draft.values |= {"max_model_len": None if is_auto else value, "max_model_len_auto": is_auto}
    elif value in ABSENT_TEXTS:
        draft.values.pop(flag.field, None)
    elif value is not None:
        draft.values[flag.field] = value


def _try_value(draft: _Draft, flag: Flag, values: tuple[str, ...]) -> object:
    try:
        return parse_value(flag, values)
    except UsageError as error:
        draft.problems.append(OptionProblem(error.what, error.why, error.fix))
        return None


_JSON_NAMES = {flag.field: flag.name for flag in FLAGS if flag.kind == "json"}


def _read_json_flag(draft: _Draft, field_name: str, uses: Sequence[tuple[int, Argument]]) -> None:
    """Merge the uses of one JSON flag as vLLM does: dotted keys replace a whole object, shortcuts join either."""
    name = _JSON_NAMES[field_name]
    dotted: JsonObject = {}
    whole: JsonObject | None = {}
    shortcuts: JsonObject = {}
    for _, argument in uses:
        if argument.path:
            _merge(dotted, _nest(argument))
        elif argument.flag is not None and argument.flag.key is not None:
            shortcuts[argument.flag.key] = _try_value(draft, argument.flag, argument.values)
        else:
            whole = _read_whole(draft, name, argument)
    merged = dotted or whole
    decoded = None if merged is None else JSON_FLAGS[name].decode(merged | shortcuts)
    if decoded is None:
        draft.extra += [(position, argument.tokens) for position, argument in uses]
    else:
        draft.values |= decoded


def _read_whole(draft: _Draft, name: str, argument: Argument) -> JsonObject | None:
    value = argument.value or ""
    read = read_json_object(value)
    may_be_text = name == "--hf-overrides" and not value.lstrip().startswith("{")  # it also takes a function's name
    if read is None and value not in ABSENT_TEXTS and not may_be_text:
        fix = f'quote it once for the shell: {name} \'{{"key": "value"}}\''
        draft.problems.append(OptionProblem(f"{name} {value!r} is not a JSON object", "vLLM cannot parse it", fix))
    return read


def _nest(argument: Argument) -> JsonObject:
    text = argument.value or ""
    value: object = text.split(",") if argument.append else read_dotted_value(text)
    for key in reversed(argument.path):
        value = {key: value}
    return value if isinstance(value, dict) else {}


def _merge(target: JsonObject, update: JsonObject) -> None:
    for key, value in update.items():
        present = target.get(key)
        if isinstance(present, dict) and isinstance(value, dict):
            _merge(present, value)
        elif isinstance(present, list) and isinstance(value, list):
            target[key] = present + value
        else:
            target[key] = value
