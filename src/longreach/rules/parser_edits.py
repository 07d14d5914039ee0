"""The edits that mend what vLLM's parser refuses; None where what was meant cannot be told. Pure."""

from collections.abc import Mapping

from longreach.engine.flag_values import load_json, write_value
from longreach.engine.parser import ParseProblem, Use
from longreach.engine.parsing.dialect import get_dialect
from longreach.engine.parsing.json_merge import DottedPart
from longreach.engine.parsing.parsed import is_open, writable
from longreach.engine.parsing.successors import Successor, find_successor
from longreach.rules.edit import Edit
from longreach.rules.written import WrittenCommand
from longreach.sizing.overrides import rope_dict_key

_TASKS: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "auto": (),
    "generate": (("--runner", ("generate",)),),
    "embed": (("--runner", ("pooling",)), ("--convert", ("embed",))),
    "embedding": (("--runner", ("pooling",)), ("--convert", ("embed",))),
    "classify": (("--runner", ("pooling",)), ("--convert", ("classify",))),
    "score": (("--runner", ("pooling",)), ("--convert", ("classify",))),
    "reward": (("--runner", ("pooling",)), ("--convert", ("reward",))),
}
"""What `--task` says, as --runner and --convert."""


def drop_use(written: WrittenCommand, problem: ParseProblem) -> Edit | None:
    """The use goes, and any other like it; with a flag, a value that is read as one."""
    if problem.positions:
        return Edit(remove_words=problem.positions)
    positions = tuple(position for other in _alike(written, problem) if other.use for position in other.use.positions)
    return Edit(remove_words=positions) if positions else None


def _alike(written: WrittenCommand, problem: ParseProblem) -> list[ParseProblem]:
    return [other for other in written.parsed.problems if (other.kind, other.what) == (problem.kind, problem.what)]


def split_word(written: WrittenCommand, problem: ParseProblem) -> Edit | None:
    """A flag and its value that share a word become two; other bare words go. Either way wherever they stand."""
    positions = tuple(position for other in _alike(written, problem) for position in other.positions)
    if not problem.suggestion:
        return Edit(remove_words=positions) if positions else None
    name, *values = problem.suggestion
    return Edit(set=((name.replace("_", "-"), tuple(values)),), remove_words=positions)


def mend_flag(written: WrittenCommand, problem: ParseProblem) -> Edit | None:
    """What replaces a flag that the release lacks: its successor, the name that was meant, or nothing."""
    use = problem.use
    if use is None or use.from_config or use.is_open:
        return None
    successor = find_successor(use.name, written.registry)
    if successor is not None:
        return succeed(written, use, successor)
    if problem.kind == "ambiguous_flag" or not problem.is_sure:
        return None
    if problem.suggestion:
        name, _, value = problem.suggestion[0].partition("=")
        entry = written.registry.find(name)
        plain = name if entry is None or name.startswith("--no-") else entry.name
        return Edit(set=((plain, (value,) if value else use.values),), remove=(use.name,))
    return Edit(remove=(use.name,))


def succeed(written: WrittenCommand, use: Use, successor: Successor) -> Edit | None:
    """What replaces a flag that is gone, or about to go."""
    if use.name in ("--rope-scaling", "--rope-theta"):
        return _move_rope(written, use)
    if use.name == "--task":
        task = _TASKS.get(use.value or "")
        return None if task is None else Edit(set=task, remove=(use.name,))
    if successor.variable is not None:
        known = successor.variable in written.registry.names("env") and use.value is not None
        return Edit(remove=(use.name,), set_env=((successor.variable, use.value or ""),)) if known else None
    if successor.by_hand:
        return None
    if successor.name is None:
        return Edit(remove=(use.name,))
    value = use.value if successor.keeps_value else successor.value
    flag, _, keys = successor.name.partition(".")
    if keys and value is not None:
        return _move_into(written, use, (flag, *keys.split(".")), value)
    if successor.keeps_value:
        uses = written.parsed.named(use.name)
        settings = tuple((".".join((successor.name, *one.path)), one.values) for one in uses)
        return Edit(set=settings, remove=(use.name,))
    return Edit(set=((successor.name, () if value is None else (value,)),), remove=(use.name,))


def _move_into(written: WrittenCommand, use: Use, path: tuple[str, ...], value: str) -> Edit | None:
    """A value as a key of a JSON flag: dotted, or beside the keys of an object that stands there.

    Dotted keys would take the place of the whole object, and before 0.9.2 there are none.
    """
    flag, *keys = path
    objects = [one for one in written.parsed.named(flag) if not one.path]
    if not objects and get_dialect(written.registry.version).dotted_keys:
        return Edit(set=((".".join(path), (value,)),), remove=(use.name,))
    found = _object_at(written, flag, ()) if objects else {}
    if found is None:
        return None
    nested = writable(DottedPart(tuple(keys), append=False, value=value).nest())
    assert isinstance(nested, dict)
    return Edit(set=((flag, (write_value({**found, **nested}),)),), remove=(use.name,))


def _move_rope(written: WrittenCommand, use: Use) -> Edit | None:
    """`--rope-scaling` and `--rope-theta` as keys of `--hf-overrides`."""
    try:
        value = writable(load_json(use.value or ""))
    except ValueError:
        return None
    if use.name == "--rope-theta":
        value = {"rope_theta": value}
    overrides = written.parsed.json("--hf-overrides") or {}
    if not isinstance(value, dict) or (written.parsed.named("--hf-overrides") and not overrides):
        return None
    key = rope_dict_key(written.release)
    rope = overrides.get(key)
    merged = {**(rope if isinstance(rope, Mapping) else {}), **value}
    if "type" in merged:
        merged.setdefault("rope_type", merged.pop("type"))
    return Edit(set=(("--hf-overrides", (write_value({**overrides, key: merged}),)),), remove=(use.name,))


def mend_switch(_written: WrittenCommand, problem: ParseProblem) -> Edit | None:
    """The switch without its value, or its `--no-` half, or nothing, as the value says."""
    use = problem.use
    if use is None or use.from_config:
        return None
    return Edit(set=((problem.suggestion[0], ()),)) if problem.suggestion else Edit(remove_words=use.positions)


def mend_value(written: WrittenCommand, problem: ParseProblem) -> Edit | None:
    """The value that was meant; a use that a later one replaces goes."""
    use = problem.use
    if use is None or use.from_config:
        return None
    if written.parsed.named(use.name)[-1] is not use:
        return Edit(remove_words=use.positions)
    if len(use.values) != 1 or not problem.suggestion or not problem.is_sure:
        return None
    return Edit(set=((use.name, problem.suggestion[:1]),))


def mend_json(_written: WrittenCommand, problem: ParseProblem) -> Edit | None:
    """JSON as it was meant, and without the words that it was torn into."""
    use = problem.use
    if use is None or use.from_config or not problem.suggestion:
        return None
    return Edit(set=((use.name, problem.suggestion[:1]),), remove_words=problem.positions)


def mend_key(written: WrittenCommand, problem: ParseProblem) -> Edit | None:
    """A key under its right name or with its right value; one that the release lacks goes."""
    use = problem.use
    if use is None or use.from_config or not problem.path or not problem.is_sure:
        return None
    *outer, key = problem.path
    found = _object_at(written, use.name, tuple(outer))
    if found is None or key not in found or any(is_open(str(value)) for value in found.values()):
        return None
    suggestion = problem.suggestion[0] if problem.suggestion else None
    if problem.kind == "unknown_key":
        renamed = {suggestion if name == key else name: value for name, value in found.items()}
        return _set_object(written, use.name, tuple(outer), {name: value for name, value in renamed.items() if name})
    return None if suggestion is None else _set_object(written, use.name, tuple(outer), {**found, key: suggestion})


def mend_settings(written: WrittenCommand, problem: ParseProblem) -> Edit | None:
    """The key that a combination lacks, where one value is usual."""
    use = problem.use
    if use is None or use.from_config or len(problem.suggestion) != 2:
        return None
    found = _object_at(written, use.name, problem.path)
    key, value = problem.suggestion
    return None if found is None else _set_object(written, use.name, problem.path, {**found, key: value})


def mend_model(written: WrittenCommand, problem: ParseProblem) -> Edit | None:
    """The value of `--model` as the first word after `serve`."""
    model = written.parsed.value("--model")
    if problem.kind != "model_option" or model is None:
        return None
    return Edit(remove=("--model",), model=model)


def without_keys(written: WrittenCommand, name: str, path: tuple[str, ...]) -> Edit | None:
    """A JSON flag without one key."""
    found = _object_at(written, name, path[:-1])
    if found is None:
        return None
    return _set_object(written, name, path[:-1], {key: value for key, value in found.items() if key != path[-1]})


def _object_at(written: WrittenCommand, name: str, path: tuple[str, ...]) -> Mapping[str, object] | None:
    found: object = written.parsed.json(name)
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _set_object(written: WrittenCommand, name: str, path: tuple[str, ...], inner: Mapping[str, object]) -> Edit:
    for depth in range(len(path), 0, -1):
        outer = _object_at(written, name, path[: depth - 1]) or {}
        inner = {**outer, path[depth - 1]: inner}
    return Edit(set=((name, (write_value(dict(inner)),)),))
