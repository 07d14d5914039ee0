"""The known name that a misspelled one was meant to be. Pure."""

from collections.abc import Sequence
from difflib import get_close_matches

_OTHER_NAMES = {"bf16": "bfloat16", "fp16": "float16", "f16": "float16", "fp32": "float32", "f32": "float32"}


def nearest(word: str, names: Sequence[str]) -> tuple[str, ...]:
    """The known names closest to a word, at most three, whatever its case and dashes; `bf16` is bfloat16."""
    folded = {name.lower().replace("-", "_"): name for name in names}
    key = word.strip("'\" ").lower().replace("-", "_")
    key = _OTHER_NAMES.get(key, key)
    return tuple(folded[name] for name in get_close_matches(key, list(folded), n=3, cutoff=0.6))
