"""Values of flags as vLLM's parser reads and longreach writes them. Pure."""

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Literal

from longreach.units import GIB, KIB, MIB, TIB

Kind = Literal["int", "size", "length", "float", "text", "bool", "ints", "texts", "json"]
"""`size` takes vLLM's k/m/g/t (decimal) and K/M/G/T (binary) suffixes; `length` also `auto` and -1."""

AUTO = "auto"
"""`--max-model-len auto` (also -1): the largest length that fits."""

ABSENT_TEXTS = ("", "None")
"""Texts that vLLM's parser reads as no value."""

_SCALES = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": KIB, "M": MIB, "G": GIB, "T": TIB}
_SCALED = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT])")
_BARE_SCALED = re.compile(r"\b\d+(?:\.\d+)?[kKmMgGtT]\b")
_QUOTED = re.compile(r'("(?:[^"\\]|\\.)*")')


def parse_size(text: str) -> int:
    """Read a human-readable integer as vLLM does: `750k` and `0.75m` decimal, `10G` binary and whole; ValueError for the rest."""
    match = _SCALED.fullmatch(text.strip())
    if match is None:
        return int(text)
    number, suffix = match.groups()
    if suffix.isupper():
        return int(number) * _SCALES[suffix]
    scaled = float(number) * _SCALES[suffix]
    if math.isinf(scaled):
        raise ValueError(f"{text[:20]}... is too large")
    return int(scaled)


_DEEPEST = 100  # settings nest five deep; json gives up near 1000, where it raises no ValueError


def load_json(text: str) -> object:
    """JSON as Python reads it; ValueError also for what is nested deeper than any setting."""
    depth = deepest = 0
    for part in _QUOTED.split(text)[::2] if text.count("[") + text.count("{") > _DEEPEST else ():
        for character in part:
            depth += (character in "[{") - (character in "]}")
            deepest = max(deepest, depth)
    if deepest > _DEEPEST:
        raise ValueError(f"nested {deepest} deep")
    return json.loads(text)


def parse_value(kind: Kind, values: Sequence[str]) -> object:
    """The value of a flag that is neither boolean nor JSON; ValueError for what vLLM's parser refuses too."""
    return _READERS[kind](values)


def _read_length(text: str) -> int | str:
    return AUTO if text.strip().lower() in (AUTO, "-1") else parse_size(text)


_READERS: dict[Kind, Callable[[Sequence[str]], object]] = {
    "int": lambda values: int(values[0]),
    "float": lambda values: float(values[0]),
    "size": lambda values: parse_size(values[0]),
    "length": lambda values: _read_length(values[0]),
    "ints": lambda values: tuple(int(value) for value in values),
    "text": lambda values: values[0],
    "texts": tuple,
}


def write_value(value: object) -> str:
    """The token for a value; JSON compact, in the order given, non-ASCII text as it is."""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return repr(value) if isinstance(value, float) else str(value)


def read_json_object(text: str) -> dict[str, object] | None:
    """A JSON object, bare numbers with suffixes (`{"cpu_bytes_to_use": 80G}`) expanded; None for anything else."""
    try:
        value = load_json(expand_suffixes(text))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def expand_suffixes(text: str) -> str:
    """JSON text with bare numbers like `80g` written out; ValueError where vLLM refuses one (`1.5G`)."""
    parts = _QUOTED.split(text)
    parts[::2] = [_BARE_SCALED.sub(lambda match: str(parse_size(match.group())), part) for part in parts[::2]]
    return "".join(parts)


def read_dotted_value(text: str, *, suffixes: bool = True) -> object:
    """The value of `--flag.key VALUE`: JSON, else (with `suffixes`) a number with suffix, else the text itself."""
    try:
        value = load_json(text)
    except ValueError:
        try:
            value = parse_size(text) if suffixes else text
        except ValueError:
            value = text
    return value
