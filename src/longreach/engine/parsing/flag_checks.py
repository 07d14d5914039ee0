"""Whether a flag's values are what vLLM's parser converts: numbers, choices, JSON. Pure."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from longreach.engine.flag_values import ABSENT_TEXTS, expand_suffixes, load_json, parse_size
from longreach.engine.parsing.dialect import Dialect
from longreach.engine.parsing.json_merge import DottedPart, merge_parts
from longreach.engine.parsing.json_repair import repair_json
from longreach.engine.parsing.lora_modules import check_lora_module
from longreach.engine.parsing.parsed import ParseProblem, Use, is_open
from longreach.engine.parsing.settings import check_settings
from longreach.engine.parsing.similar import is_sure, nearest
from longreach.engine.registry import FlagEntry, FlagKind, Registry

_IN_BRACES = re.compile(r"\s*{.*}\s*", re.DOTALL)


def check_values(uses: Sequence[Use], registry: Registry, dialect: Dialect) -> Iterator[ParseProblem]:
    """Problems of one use's values, or of all dotted keys of one spelling together; none of an unknown flag."""
    use = uses[-1]
    entry = use.entry
    if entry is None or entry.nargs == "0":
        return
    if use.path:
        parts = [DottedPart(item.path, item.append, item.value or "") for item in uses]
        merged = merge_parts(parts, suffixes=dialect.suffixes_in_json)
        values: tuple[str, ...] = (json.dumps(merged),)
    else:
        values = use.values
    for value in values:
        if value in ABSENT_TEXTS and entry.optional:
            continue
        if entry.kind in ("json", "json_or_text", "pairs"):
            yield from _check_json(uses, entry, value, registry, dialect)
        elif entry.name == "--lora-modules":
            yield from check_lora_module(use, value)
        elif not is_open(value):
            yield from _check_plain(use, entry, value)


def _int(text: str) -> object:
    return int(text)


def _length(text: str) -> object:
    return -1 if text.strip().lower() in ("auto", "-1") else parse_size(text)


_CONVERT: Mapping[FlagKind, Callable[[str], object]] = {
    "int": _int,
    "float": float,
    "size": parse_size,
    "length": _length,
}
_WORDS = {
    "int": "a whole number: digits, without suffix, comma or unit",
    "float": "a number",
    "size": "a whole number, or one with k m g t (decimal) or K M G T (binary, no decimals) behind it; no comma, no GiB",
    "length": "a whole number, one with k m g t (decimal) or K M G T (binary) behind it, or auto; no comma, no GiB",
}


def _check_plain(use: Use, entry: FlagEntry, value: str) -> Iterator[ParseProblem]:
    convert = _CONVERT.get(entry.kind)
    try:
        converted = value if convert is None else convert(value)
    except (ValueError, OverflowError):
        near = _mend_number(entry.kind, value)
        fix = f"{entry.name} {near}" if near else f"give {entry.name} a number"
        what = f"{entry.name} {value!r} is not a number that vLLM reads"
        yield ParseProblem(
            "wrong_value",
            what,
            f"{entry.name} takes {_WORDS[entry.kind]}",
            fix,
            use,
            suggestion=(near,) if near else (),
        )
        return
    if entry.choices and converted not in entry.choices and not (entry.folds and _fold(value) in entry.choices):
        yield _wrong_choice(use, entry, value)


def _fold(value: str) -> str:
    return value.lower().replace("-", "_")


def _wrong_choice(use: Use, entry: FlagEntry, value: str) -> ParseProblem:
    names = [str(choice) for choice in entry.choices]
    near = nearest(value, names)
    why = f"{entry.name} takes {', '.join(names)}"
    fix = f"{entry.name} {near[0]}" if near else f"give {entry.name} one of {', '.join(names)}"
    return ParseProblem(
        "wrong_choice",
        f"{entry.name} {value!r} is not known",
        why,
        fix,
        use,
        suggestion=near,
        is_sure=is_sure(value, near),
    )


_UNITS = {"kib": "K", "mib": "M", "gib": "G", "tib": "T", "kb": "k", "mb": "m", "gb": "g", "tb": "t"}
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)\s*([A-Za-z%]*)")


def _mend_number(kind: FlagKind, text: str) -> str | None:
    """The number that was meant: `10GiB` is `10G`, `750,000` is `750000`, `4k` of a plain number is `4000`."""
    bare = text.strip().strip("'\"").strip()
    if re.fullmatch(r"\d{1,3}([,. ]\d{3})+", bare):
        bare = re.sub(r"[,. ]", "", bare)
    match = _NUMBER.fullmatch(bare.replace(",", "."))
    if match is None:
        return None
    number, unit = match.groups()
    if kind == "float":
        return number if not unit else f"{float(number) / 100:g}" if unit == "%" else None
    scaled = number + _UNITS.get(unit.lower(), unit)
    candidates = (scaled, scaled.lower() if "." in number else "", number if not unit and number.endswith(".0") else "")
    for candidate in candidates:
        try:
            size = parse_size(candidate.removesuffix(".0") if not unit else candidate)
        except ValueError:
            continue
        return str(size) if kind == "int" or not unit else candidate
    return None


def _check_json(
    uses: Sequence[Use], entry: FlagEntry, value: str, registry: Registry, dialect: Dialect
) -> Iterator[ParseProblem]:
    if entry.kind == "json_or_text" and not _IN_BRACES.fullmatch(value):
        return
    if entry.kind == "pairs" and not re.match("^{.*}$", value):
        yield from _check_pairs(uses[-1], entry, value)
        return
    try:
        text = expand_suffixes(value) if entry.settings_are_parsed and dialect.suffixes_in_json else value
        read = load_json(text)
    except ValueError as error:
        takes_python = dialect.python_compilation and entry.settings == "CompilationConfig"
        if not is_open(value) and not takes_python:
            yield _bad_json(uses[-1], entry, value, str(error))
        return
    if isinstance(read, int) and dialect.python_compilation and entry.settings == "CompilationConfig":
        return
    if entry.settings_are_parsed:
        yield from check_settings(read, entry, uses, registry)


def _check_pairs(use: Use, entry: FlagEntry, value: str) -> Iterator[ParseProblem]:
    if is_open(value) or all(re.fullmatch(r"[^=]*=\s*[+-]?\d+\s*", item) for item in value.split(",")):
        return
    why = "it takes a JSON object, or KEY=NUMBER with commas between"
    yield ParseProblem(
        "bad_json", f"{entry.name} {value!r} is not understood", why, f"{entry.name} '{{\"image\": 4}}'", use
    )


def _bad_json(use: Use, entry: FlagEntry, value: str, error: str) -> ParseProblem:
    mended = repair_json(value)
    shown = value if len(value) <= 60 else f"{value[:57]}..."
    fix = f"{entry.name} '{mended}'" if mended else f'quote it once for the shell: {entry.name} \'{{"key": "value"}}\''
    return ParseProblem(
        "bad_json",
        f"{entry.name} {shown!r} is not JSON",
        f"vLLM cannot parse it: {error}",
        fix,
        use,
        suggestion=(mended,) if mended else (),
    )
