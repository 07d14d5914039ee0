"""A mix of prompts: how many of the requests are how long. Pure."""

import math

from longreach.errors import UsageError
from longreach.plan.values import PromptClass
from longreach.units import parse_tokens, shortened

_EXAMPLE = "--mix 90%:8k,10%:500k"
_MOST_CLASSES = 16
_ROUNDING = 0.5  # percent


def parse_mix(text: str) -> tuple[PromptClass, ...]:
    """`90%:8k,10%:500k`, or weights, `9:8k,1:500k`; shortest first, shares that sum to one. Raises UsageError."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > _MOST_CLASSES:
        raise UsageError(f"the mix has {len(parts)} classes", f"at most {_MOST_CLASSES} are told apart", _EXAMPLE)
    shares, lengths = zip(*(_parse_class(part) for part in parts), strict=True)
    if len({share.endswith("%") for share in shares}) > 1:
        why = "shares are percent or weights, not both"
        raise UsageError(f"the mix '{text}' gives some shares in percent", why, _EXAMPLE)
    weights = [_parse_share(share, text) for share in shares]
    total = sum(weights)
    if shares[0].endswith("%") and abs(total - 100) > _ROUNDING:
        raise UsageError(f"the mix '{text}' comes to {total:g} %", "all requests together are 100 %", _EXAMPLE)
    if len(set(lengths)) < len(lengths):
        raise UsageError(f"the mix '{text}' names one length twice", "each length has one share", _EXAMPLE)
    if len(lengths) < 2:
        why = "one length is no mix"
        raise UsageError(f"the mix '{text}' has one class", why, f"{_EXAMPLE}, or --mean-input {lengths[0]}")
    classes = (PromptClass(weight / total, length) for weight, length in zip(weights, lengths, strict=True))
    return tuple(sorted(classes, key=lambda item: item.prompt_tokens))


def mean_tokens(classes: tuple[PromptClass, ...]) -> int:
    """The mean prompt of these classes."""
    return math.ceil(sum(item.share * item.prompt_tokens for item in classes) / share_of(classes))


def share_of(classes: tuple[PromptClass, ...]) -> float:
    """Of all requests."""
    return sum(item.share for item in classes)


def _parse_class(part: str) -> tuple[str, int]:
    share, separator, length = part.partition(":")
    if not separator or not share or not length:
        raise UsageError(f"'{part}' in the mix is not understood", "each class is SHARE:TOKENS", _EXAMPLE)
    tokens = parse_tokens(length)
    if tokens < 1:
        raise UsageError(f"'{part}' in the mix has no prompt", "a prompt has at least one token", _EXAMPLE)
    return share, tokens


def _parse_share(share: str, text: str) -> float:
    try:
        value = float(share.removesuffix("%"))
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise UsageError(
            f"share '{shortened(share)}' in the mix '{shortened(text)}' is not understood",
            "expected a number above zero",
            _EXAMPLE,
        )
    return value
