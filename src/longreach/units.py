"""Quantities with units: parsing what people type, printing what people read, rounding counts exactly. Pure.

Memory is bytes inside and GiB (2^30) outside; bandwidth in GB/s is decimal. Token counts follow vLLM's own
suffixes: lower-case `k m g t` are decimal, upper-case `K M G T` binary (`750k` = 750,000, `1M` = 1,048,576).
"""

import re
from difflib import get_close_matches
from itertools import groupby
from typing import Literal, get_args

from longreach.errors import UsageError

Certainty = Literal["exact", "estimate", "bound", "range", "measured", "assumed", "unknown"]
"""How sure a number is; every number that leaves longreach carries one."""

CERTAINTIES: tuple[str, ...] = get_args(Certainty)

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40

_SUFFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": KIB, "M": MIB, "G": GIB, "T": TIB}
_BYTE_WORDS = {
    "b": 1,
    "kib": KIB,
    "mib": MIB,
    "gib": GIB,
    "tib": TIB,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
}
_NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_MOST = 10**18  # more bytes or tokens than any box holds
_LONGEST_NUMBER = 40  # int() itself refuses to read thousands of digits


def _parse_scaled(text: str, scales: dict[str, int], what: str, fix: str) -> int:
    match = _NUMBER.fullmatch(text.replace("_", ""))
    scale = scales.get(match[2]) if match else None
    if match is None or scale is None:
        why = "expected a number with an optional suffix"
        raise UsageError(f"{what} '{shortened(text)}' is not understood", why, fix)
    if len(match[1]) > _LONGEST_NUMBER or float(match[1]) * scale > _MOST:
        raise UsageError(f"{what} '{shortened(text)}' is too large", "no box holds more than 10^18 of them", fix)
    value = float(match[1]) * scale if "." in match[1] else int(match[1]) * scale
    if value != int(value):
        raise UsageError(f"{what} '{text}' is not a whole number", f"it comes to {value}", fix)
    return int(value)


def shortened(text: str) -> str:
    """What was typed, in a length that a line of a message bears."""
    return text if len(text) <= _LONGEST_NUMBER else f"{text[: _LONGEST_NUMBER - 3]}..."


def parse_tokens(text: str) -> int:
    """Token count as vLLM reads it: `750k`, `0.75m`, `1M` (= 1,048,576), `262144`."""
    return _parse_scaled(text, _SUFFIXES, "token count", "write it as 750000, 750k or 1M")


def parse_bytes(text: str) -> int:
    """Byte count: vLLM's suffixes (`10G` = 10 x 2^30, `10g` = 10 x 10^9) and the words `GiB`, `GB`, `MiB`, `TB`."""
    match = _NUMBER.fullmatch(text.replace("_", ""))
    words = {match[2]: _BYTE_WORDS[match[2].lower()]} if match and match[2].lower() in _BYTE_WORDS else {}
    return _parse_scaled(
        text, _SUFFIXES | words, "size", "write it as 10G or 10GiB (2^30 bytes each), 10GB (10^9), or plain bytes"
    )


def format_tokens(tokens: int) -> str:
    """`1,194,731`."""
    return f"{tokens:,}"


def format_count(count: int, noun: str) -> str:
    """`1 run`, `1,024 runs`; for nouns that take an s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_bytes(size_bytes: float) -> str:
    """The largest binary unit that keeps the number above one: `10.00 GiB`, `32 KiB`."""
    for name, scale in (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if abs(size_bytes) >= scale:
            return f"{size_bytes / scale:,.2f} {name}".replace(".00 ", " ")
    return f"{size_bytes:,.0f} B"


def format_room(low_bytes: int, high_bytes: int) -> str:
    """What is left, which may be nothing: `8.87 GiB to 15.15 GiB`, `at most 200 MiB`, `nothing`."""
    if high_bytes <= 0:
        return "nothing"
    low, high = format_bytes(low_bytes), format_bytes(high_bytes)
    if low_bytes <= 0:
        return f"at most {high}"
    return high if low == high else f"{low} to {high}"


def format_duration(seconds: float) -> str:
    """`840 ms`, `4.2 s`, `3 min 35 s`, `1 h 04 min`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def did_you_mean(word: str, known: list[str] | tuple[str, ...]) -> str:
    """`did you mean 'RTX 4090'?` for a near miss, else an empty string. Case does not matter."""
    folded = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), list(folded), n=3, cutoff=0.5)
    return f"did you mean {' or '.join(repr(folded[name]) for name in close)}?" if close else ""


def nearest_name(word: str, known: list[str] | tuple[str, ...]) -> str | None:
    """The one known name that `word` most likely misspells; None when none is near, or its digits are others.

    Case does not matter. `glm46` is not `glm45` misspelled.
    """
    folded = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), list(folded), n=1, cutoff=0.75)
    return folded[close[0]] if close and digits_of(close[0]) == digits_of(word) else None


def digits_of(name: str) -> str:
    """The digits of a name, which make another name of it; one typed twice counts once."""
    digits = [character for character in name if character.isdigit()]
    return "".join(digit for digit, _ in groupby(digits))


def ceil_div(dividend: int, divisor: int) -> int:
    """The least integer that is not below dividend / divisor."""
    return -(-dividend // divisor)


def round_up(value: int, multiple: int) -> int:
    """The least multiple of `multiple` that is not below `value`."""
    return ceil_div(value, multiple) * multiple
