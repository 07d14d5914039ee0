"""Whether the object a JSON flag carries fills its settings class: keys, types, choices, keys that exclude each other. Pure.

As pydantic reads JSON where it is not strict: `"4"` and `4.0` are whole numbers, `"yes"` is true, but a number is no text.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from longreach.engine.parsing.json_values import is_truth, read_number, read_whole
from longreach.engine.parsing.parsed import ParseProblem, ProblemKind, Use, is_open
from longreach.engine.parsing.settings_together import check_together
from longreach.engine.parsing.similar import is_sure, nearest
from longreach.engine.registry import FlagEntry, Registry, SettingEntry, releases_with_setting


@dataclass(frozen=True, slots=True)
class _Said:
    """What is wrong with one key, before it is known where in the command it stands."""

    kind: ProblemKind
    path: tuple[str, ...]
    what: str
    why: str
    fix: str
    suggestion: tuple[str, ...] = ()
    is_sure: bool = True


def check_settings(read: object, entry: FlagEntry, uses: Sequence[Use], registry: Registry) -> Iterator[ParseProblem]:
    """Problems of the value of one JSON flag whose settings class the parser fills itself."""
    assert entry.settings is not None
    if not isinstance(read, Mapping):
        why = f"it fills {entry.settings}, so it takes an object in braces"
        if uses[-1].is_abbreviated:
            why += f"; vLLM reads {uses[-1].spelling} as {entry.name}, the only flag that begins so"
        level = _level(read, registry.settings.get(entry.settings, {}))
        meant = None if level is None else f'{{"{level}": {read}}}'
        fix = f"{entry.name} '{meant or '{...}'}'"
        what, suggestion = f"{entry.name} {read!r} is not a JSON object", () if meant is None else (meant,)
        yield ParseProblem("bad_json", what, why, fix, uses[-1], suggestion=suggestion)
        return
    for said in _check_object(read, entry.settings, (), registry):
        use = next((use for use in uses if use.path[: len(said.path)] == said.path[: len(use.path)]), uses[-1])
        what = f"{entry.name}: {said.what}"
        yield ParseProblem(
            said.kind, what, said.why, said.fix, use, suggestion=said.suggestion, path=said.path, is_sure=said.is_sure
        )


_LEVELS = range(4)


def _level(read: object, keys: Mapping[str, SettingEntry]) -> str | None:
    """The key of a number that stands alone: what `-O 3` sets, if there is such a level."""
    known = (key for key in ("mode", "level") if key in keys)
    is_level = isinstance(read, int) and not isinstance(read, bool) and read in _LEVELS
    return next(known, None) if is_level else None


def ignored_keys(
    read: Mapping[str, object], settings: str, registry: Registry, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """Paths of the keys that a class which is not strict passes over in silence."""
    known = registry.settings.get(settings, {})
    for key, value in read.items():
        entry = known.get(key)
        if entry is None and known and settings not in registry.strict_settings:
            yield (*path, key)
        elif entry is not None and entry.settings is not None and isinstance(value, Mapping):
            yield from ignored_keys(value, entry.settings, registry, (*path, key))


def _check_object(
    read: Mapping[str, object], settings: str, path: tuple[str, ...], registry: Registry
) -> Iterator[_Said]:
    keys = registry.settings.get(settings, {})
    if not keys:
        return
    sound = True
    for key, value in read.items():
        entry = keys.get(key)
        for said in (
            _unknown_key(key, settings, path, registry)
            if entry is None
            else _check_key(key, value, entry, path, registry)
        ):
            sound = False
            yield said
    if sound:
        for text, usual in check_together(settings, read, registry.version):
            yield _Said(
                "rejected_settings",
                path,
                text,
                f"{settings} of vLLM {registry.version} refuses it",
                f'add "{usual[0]}": "{usual[1]}"' if usual else "change one of the keys",
                usual,
            )


def _unknown_key(key: str, settings: str, path: tuple[str, ...], registry: Registry) -> Iterator[_Said]:
    if is_open(key) or settings not in registry.strict_settings:
        return
    releases = releases_with_setting(settings, key)
    span = f"it exists from {releases[0]} to {releases[-1]}" if releases else f"{settings} never had it"
    near = () if releases else nearest(key, list(registry.settings[settings]))
    fix = f"did you mean {' or '.join(near)}?" if near else f"remove {key!r}"
    what = f"key {'.'.join((*path, key))!r} does not exist in vLLM {registry.version}"
    yield _Said(
        "unknown_key",
        (*path, key),
        what,
        f"{span}; vLLM says 'Unexpected keyword argument'",
        fix,
        near,
        is_sure(key, near),
    )


def _check_key(
    key: str, value: object, entry: SettingEntry, path: tuple[str, ...], registry: Registry
) -> Iterator[_Said]:
    own, kinds = (*path, key), entry.kind.split("|")
    if (value is None and entry.optional) or (isinstance(value, str) and is_open(value)):
        return
    if isinstance(value, Mapping) and entry.settings is not None and "json" in kinds:
        yield from _check_object(value, entry.settings, own, registry)
    elif not any(fits(value, kind, entry) for kind in kinds):
        yield _wrong_value(value, entry, own)


def _wrong_value(value: object, entry: SettingEntry, path: tuple[str, ...]) -> _Said:
    name = ".".join(path)
    if entry.choices and isinstance(value, str | int) and not isinstance(value, bool):
        names = [choice for choice in entry.choices if isinstance(choice, str)] or [
            str(choice) for choice in entry.choices
        ]
        near = nearest(str(value), names)
        fix = f"{name} {near[0]}" if near else f"give {name!r} one of {', '.join(names)}"
        return _Said(
            "wrong_key_value",
            path,
            f"{name} {value!r} is not known",
            f"it takes {', '.join(names)}",
            fix,
            near,
            is_sure(str(value), near),
        )
    limits = "".join(
        f", {word} {limit}" for word, limit in (("at least", entry.low), ("at most", entry.high)) if limit is not None
    )
    wanted = " or ".join(_KIND_WORDS.get(kind.partition("[")[0], kind) for kind in entry.kind.split("|")) + limits
    why = f"it takes {wanted}"
    return _Said("wrong_key_value", path, f"{name} cannot be {value!r}", why, f"give {name!r} {wanted}")


_KIND_WORDS = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "text": "a text",
    "list": "a list",
    "map": "an object",
    "json": "an object",
}


def fits(value: object, kind: str, entry: SettingEntry) -> bool:
    """Whether pydantic takes a JSON value for one kind of the entry: its type, its choices, its limits."""
    outer, _, inner = kind.removesuffix("]").partition("[")
    if outer == "any":
        return True
    if outer == "list":
        is_list = isinstance(value, list) and (not entry.filled or bool(value))
        return is_list and all(_fits_any(item, inner, entry) for item in value)  # type: ignore[attr-defined]
    if outer in ("json", "map"):
        is_object = isinstance(value, Mapping) and (not entry.filled or bool(value))
        return is_object and all(_fits_any(item, inner, entry) for item in value.values())  # type: ignore[attr-defined]
    return _fits_item(value, outer, entry)


def _fits_any(value: object, kinds: str, entry: SettingEntry) -> bool:
    """`kinds` of an element: "int/text"; empty where nothing is known of it."""
    return any(_fits_item(value, kind, entry) for kind in kinds.split("/"))


def _fits_item(value: object, kind: str, entry: SettingEntry) -> bool:
    if not kind or (isinstance(value, str) and is_open(value)):
        return True
    if kind == "text":
        return isinstance(value, str) and _is_choice(value, entry)
    if kind == "bool":
        return is_truth(value)
    number = read_whole(value) if kind == "int" else read_number(value)
    if number is None:
        return False
    numbers = [choice for choice in entry.choices if isinstance(choice, int)]
    if numbers and kind == "int":
        return isinstance(value, int) and not isinstance(value, bool) and value in numbers
    return (entry.low is None or number >= entry.low) and (entry.high is None or number <= entry.high)


def _is_choice(value: str, entry: SettingEntry) -> bool:
    names = [choice for choice in entry.choices if isinstance(choice, str)]
    if not names or value in names:
        return True
    return entry.folds and _fold(value) in map(_fold, names)


def _fold(name: str) -> str:
    return name.lower().replace("-", "_")
