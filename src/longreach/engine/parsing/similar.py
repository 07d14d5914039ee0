"""The known name that a misspelled one was meant to be. Pure."""

from collections.abc import Sequence
from difflib import get_close_matches

from longreach.units import digits_of

_OTHER_NAMES = {"bf16": "bfloat16", "fp16": "float16", "f16": "float16", "fp32": "float32", "f32": "float32"}


def nearest(word: str, names: Sequence[str]) -> tuple[str, ...]:
    """The known names closest to a word, at most three, whatever its case and dashes; `bf16` is bfloat16."""
    folded = {name.lower().replace("-", "_"): name for name in names}
    key = word.strip("'\" ").lower().replace("-", "_")
    key = _OTHER_NAMES.get(key, key)
    return tuple(folded[name] for name in get_close_matches(key, list(folded), n=3, cutoff=0.6))


def is_sure(word: str, names: Sequence[str]) -> bool:
    """Whether the first of the nearest names can only be what was meant: `int4` is not `int8`."""
    if not names:
        return True
    key = word.strip("'\" ").lower().replace("-", "_")
    return key in _OTHER_NAMES or (digits_of(names[0]) == digits_of(word) and bool(misspelled(key, names[:1])))


_LETTERS_PER_SLIP = 4
_STEM_SHARE = 0.7  # of the shorter word: caching and cache, sequences and seqs


def misspelled(word: str, names: Sequence[str]) -> tuple[str, ...]:
    """The names that a word can only be, mistyped or with its parts cut short; what is merely alike may mean something else.

    `--max-modle-len` is `--max-model-len`, `--gpu-mem-util` is `--gpu-memory-utilization`; `--min-model-len` is not
    `--max-model-len`. A name that is spelled to its end goes before longer ones.
    """
    parts = _parts(word)
    fits = {name: _parts(name) for name in names if _begins(parts, _parts(name))}
    whole = tuple(name for name, own in fits.items() if len(own) == len(parts) or "".join(own) == "".join(parts))
    return whole or tuple(fits)


def _parts(name: str) -> list[str]:
    return name.strip("-").replace("_", "-").lower().split("-")


def _begins(parts: list[str], own: list[str]) -> bool:
    """Whether the parts are those of a name, or the first two or more of them."""
    if "".join(parts) == "".join(own):
        return True
    return (len(parts) == len(own) or 1 < len(parts) < len(own)) and all(map(_is_part, parts, own))


def _is_part(part: str, whole: str) -> bool:
    """Whether one part of a name is another, cut short, with another ending, or with a slip in every few letters."""
    if len(part) > 1 and whole.startswith(part):
        return True
    shared = next(
        (at for at, pair in enumerate(zip(part, whole, strict=False)) if pair[0] != pair[1]), min(len(part), len(whole))
    )
    if shared >= max(3, _STEM_SHARE * min(len(part), len(whole))):
        return True
    return part[:1] == whole[:1] and _distance(part, whole) <= len(whole) // _LETTERS_PER_SLIP


def _distance(one: str, other: str) -> int:
    """Letters put in, left out, changed or swapped with the next, at least."""
    before, last = list(range(len(other) + 1)), [0] * (len(other) + 1)
    for row, letter in enumerate(one, 1):
        line = [row]
        for column, wanted in enumerate(other, 1):
            best = min(before[column] + 1, line[column - 1] + 1, before[column - 1] + (letter != wanted))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == wanted:
                best = min(best, last[column - 2] + 1)
            line.append(best)
        last, before = before, line
    return before[-1]
