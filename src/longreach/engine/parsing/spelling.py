"""Which option a word of a command means, as argparse decides it: exact, before `=`, by unique prefix, short with value. Pure."""

import re
from dataclasses import dataclass

from longreach.engine.registry import FlagEntry, Registry

HELP = FlagEntry("--help", "switch", nargs="0", aliases=("-h",))
"""argparse's own option, which is in no registry."""

_NEGATIVE_NUMBER = re.compile(r"-\d+$|-\d*\.\d+$")


@dataclass(frozen=True, slots=True)
class Match:
    """What a word that looks like an option means. `entry` is None where nothing has that name."""

    written: str  # without `=value`
    entry: FlagEntry | None = None
    meant: str = ""  # the full option string
    value: str | None = None  # given in the same word
    candidates: tuple[str, ...] = ()  # several options have this prefix

    @property
    def negated(self) -> bool:
        """Whether the `--no-` half of a pair is meant."""
        entry = self.entry
        return entry is not None and entry.kind == "bool" and self.meant not in (entry.name, *entry.aliases)


def match_option(text: str, registry: Registry) -> Match | None:
    """The option a word means; None for a bare word, to which a lone dash, a negative number and text with a space belong."""
    if not text.startswith("-"):
        return None
    exact = _match_exactly(text, registry)
    if exact is not None or len(text) == 1:
        return exact
    name = text.partition("=")[0]
    found = _match_long(text, registry) if text.startswith("--") else _match_short(text, registry)
    if len(found) > 1:
        return Match(name, candidates=tuple(match.meant for match in found))
    if found:
        return found[0]
    if _NEGATIVE_NUMBER.match(text) or " " in text:
        return None
    return Match(name)


def _find(spelling: str, registry: Registry) -> FlagEntry | None:
    return HELP if spelling in HELP.spellings else registry.find(spelling)


def _match_exactly(text: str, registry: Registry) -> Match | None:
    entry = _find(text, registry)
    if entry is not None:
        return Match(text, entry, text)
    name, equals, value = text.partition("=")
    entry = _find(name, registry) if equals else None
    return None if entry is None else Match(name, entry, name, value)


def _match_long(text: str, registry: Registry) -> list[Match]:
    prefix, equals, value = text.partition("=")
    meant = [*registry.spellings(prefix), *(word for word in (HELP.name,) if word.startswith(prefix))]
    return [Match(prefix, _find(word, registry), word, value if equals else None) for word in meant]


def _match_short(text: str, registry: Registry) -> list[Match]:
    """`-n4` is `-n 4`, as one letter may be followed by its value; `-tp4` is nothing; `-t` is `-tp` where that is unique."""
    shorts = sorted({word for entry in registry.flags.values() for word in entry.aliases if not word.startswith("--")})
    found = [Match(word, _find(word, registry), word, text[2:]) for word in (*shorts, "-h") if word == text[:2]]
    return found + [Match(text, _find(word, registry), word) for word in shorts if word.startswith(text)]
