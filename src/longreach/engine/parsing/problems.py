"""The words for what vLLM's parser refuses: what, why, what to write instead. Pure."""

import re
import shlex
from collections.abc import Sequence
from difflib import get_close_matches

from longreach.engine.parsing.parsed import ParseProblem, Use
from longreach.engine.parsing.similar import misspelled
from longreach.engine.parsing.successors import Successor, find_successor
from longreach.engine.registry import REGISTRY_VERSIONS, Registry, releases_with_flag


def unknown_flag(use: Use, candidates: Sequence[str], registry: Registry) -> ParseProblem:
    """A name that no option of the release has, or that is a prefix of several."""
    name, version = use.spelling, registry.version
    successor = find_successor(name, registry)
    if candidates:
        why = f"vLLM {version} takes a prefix that only one flag has; this one begins {', '.join(candidates)}"
        return ParseProblem(
            "ambiguous_flag",
            f"{name} is not one flag",
            why,
            f"write {' or '.join(candidates)}" if successor is None else _fix(successor, name),
            use,
            suggestion=tuple(candidates),
        )
    releases = releases_with_flag(name)
    if releases:
        why = f"the flag exists {_span(releases)}; vLLM {version} exits with 'unrecognized arguments'"
    else:
        why = f"no release from {_FIRST} on has it; vLLM {version} exits with 'unrecognized arguments'"
    if successor is not None:
        suggestion = (successor.name,) if successor.name else ()
        return ParseProblem(
            "unknown_flag",
            f"vLLM {version} has no {name}",
            f"{why}; {successor.remark}",
            _fix(successor, name),
            use,
            suggestion=suggestion,
        )
    return _near(use, registry, why)


_FIRST = "0.8.5"


def _span(releases: Sequence[str]) -> str:
    """`from 0.8.5.post1 to 0.16.0 and in 0.33.0`: each unbroken run."""
    places = [REGISTRY_VERSIONS.index(version) for version in releases]
    starts = [place for place in places if place - 1 not in places]
    ends = [place for place in places if place + 1 not in places]
    runs = [(REGISTRY_VERSIONS[start], REGISTRY_VERSIONS[end]) for start, end in zip(starts, ends, strict=True)]
    return " and ".join(f"in {first}" if first == last else f"from {first} to {last}" for first, last in runs)


def _fix(successor: Successor, name: str) -> str:
    if successor.variable is not None:
        return f"set {successor.variable} in the environment instead of {name}"
    if successor.name is None:
        return f"remove {name}"
    return f"use {' '.join(filter(None, (successor.name, successor.value)))} instead of {name}"


_OFF = ("--no-", "--disable-")


def _near(use: Use, registry: Registry, why: str) -> ParseProblem:
    name = use.spelling
    alike = [word for word in registry.spellings() if word.startswith(_OFF) is name.startswith(_OFF)]
    is_known = bool(releases_with_flag(name))  # elsewhere: then it is no misspelling
    meant = _respelled(name, registry) or (() if is_known else misspelled(name, alike))
    entries = {id(registry.find(word.partition("=")[0])) for word in meant}
    near = meant or (() if is_known else get_close_matches(name, alike, n=3, cutoff=0.75))
    return ParseProblem(
        "unknown_flag",
        f"vLLM {registry.version} has no {name}",
        why,
        f"did you mean {' or '.join(near)}?" if near else f"remove {name}",
        use,
        suggestion=tuple(near),
        is_sure=not near or len(entries) == 1,
    )


def _respelled(name: str, registry: Registry) -> list[str]:
    """`-max-model-len` with its second dash, `-tp4` as `-tp=4`, `--disable-x` as the other half of `--enable-x`."""
    if name.startswith("--"):
        halves = ((f"--{one}-", f"--no-{other}-") for one, other in (("disable", "enable"), ("enable", "disable")))
        meant = [half + name.removeprefix(one) for one, half in halves if name.startswith(one)]
        return [word for word in meant if registry.find(word) is not None]
    if registry.find(f"-{name}") is not None:
        return [f"-{name}"]
    glued = _SHORT_WITH_NUMBER.fullmatch(name)
    return [f"{glued[1]}={glued[2]}"] if glued and registry.find(glued[1]) is not None else []


_SHORT_WITH_NUMBER = re.compile(r"(-[a-z]+)(\d+)")


def missing_value(use: Use) -> ParseProblem:
    """An option that takes a value and stands alone."""
    wanted = "at least one value" if use.entry is not None and use.entry.nargs == "+" else "one value"
    why = f"vLLM takes {wanted} for it; a value that begins with '-' needs {use.spelling}=VALUE"
    return ParseProblem(
        "missing_value", f"{use.spelling} has no value", why, f"{use.spelling} VALUE, or remove it", use
    )


def unwanted_value(use: Use) -> ParseProblem:
    """A switch with a value, in its word or behind it: refused, whatever it says; `--no-x=false` is on."""
    assert use.entry is not None
    off = f"--no-{use.name.removeprefix('--')}"
    is_off = ((use.value or "").strip().lower() in ("false", "0", "no", "off")) is not use.negated
    meant = use.name if not is_off else off if use.entry.kind == "bool" else None
    why = f"{use.name} is a switch; it takes no value"
    fix = f"write {meant}" if meant else f"remove {use.spelling}"
    return ParseProblem(
        "unwanted_value",
        f"{' '.join(use.tokens)} is not understood",
        why,
        fix,
        use,
        suggestion=(meant,) if meant else (),
    )


def stray_words(texts: Sequence[str], positions: tuple[int, ...], model: str | None, *, is_serve: bool) -> ParseProblem:
    """Bare words that no option takes."""
    said = " ".join(texts)
    if is_serve:
        why = f"it follows no flag that takes it, and the model is already named: {model!r}"
    else:
        why = "the module takes no bare word; it names its model with --model"
    if "" in texts:
        why += "; an empty word is what a quoted variable without a value leaves"
    what = f"bare word{'s' if len(texts) > 1 else ''} {said!r} in the command"
    if not is_serve and model is None and len(texts) == 1 and texts[0] and not texts[0].startswith("-"):
        meant = ("--model", texts[0])  # nothing else names one
        return ParseProblem("stray_word", what, why, shlex.join(meant), positions=positions, suggestion=meant)
    return ParseProblem("stray_word", what, why, f"remove {shlex.join(texts)}", positions=positions)


def negative_value(flag: str, value: str, positions: tuple[int, ...]) -> ParseProblem:
    """A value that begins with a dash, and so is read as the next flag."""
    what = f"{flag} {value} is read as two flags"
    why = f"a word that begins with '-' is a flag to vLLM's parser, unless it is a whole number; a value is written {flag}={value}"
    return ParseProblem("missing_value", what, why, f"{flag}={value}, if it may be negative", positions=positions)
