"""A foreign command as vLLM's parser takes it apart, with every reason for which that parser would refuse it. Pure."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from longreach.engine.flag_values import read_json_object
from longreach.engine.parsing.dialect import get_dialect
from longreach.engine.parsing.json_merge import DottedPart, merge_parts
from longreach.engine.registry import FlagEntry, Registry

ProblemKind = Literal[
    "unknown_flag",
    "ambiguous_flag",  # a prefix of several flags
    "stray_word",  # a bare word that belongs to nothing
    "missing_value",
    "unwanted_value",  # `--enforce-eager=true`
    "wrong_value",  # not of the flag's type
    "wrong_choice",
    "bad_json",
    "unknown_key",  # of a JSON flag
    "wrong_key_value",  # type or choice of a key of a JSON flag
    "rejected_settings",  # keys that the settings class refuses together
    "model_option",  # `vllm serve --model X` where the release refuses it
    "no_model",
    "bad_config",
    "help",  # prints help and exits
]
"""The ways in which vLLM's parser refuses a command."""

Entry = Literal["serve", "api_server"]
"""`vllm serve`, or the module vllm.entrypoints.openai.api_server."""

_OPEN = re.compile(r"\$[\w{(@*#]|`")


def is_open(text: str) -> bool:
    """Whether the text holds a shell variable or substitution, so that nobody knows what it will be."""
    return _OPEN.search(text) is not None


@dataclass(frozen=True, slots=True)
class Use:
    """One flag as it stands in the command."""

    tokens: tuple[str, ...]  # as written
    spelling: str  # as written, without `=value` and dotted keys, dashes for underscores
    entry: FlagEntry | None = None  # None: the release has no such flag
    values: tuple[str, ...] = ()
    path: tuple[str, ...] = ()  # dotted keys
    append: bool = False  # `--flag.key+`
    negated: bool = False
    positions: tuple[int, ...] = ()  # of the tokens in argv; none for a use that the config file holds

    @property
    def name(self) -> str:
        """The canonical long name, or the spelling where the release has no such flag."""
        return self.entry.name if self.entry is not None else self.spelling

    @property
    def value(self) -> str | None:
        """The only value, or None when there is none or more than one."""
        return self.values[0] if len(self.values) == 1 else None

    @property
    def position(self) -> int:
        """Of the first token in argv; -1 for a use that the config file holds."""
        return self.positions[0] if self.positions else -1

    @property
    def from_config(self) -> bool:
        """Whether it stands in the config file."""
        return not self.positions

    @property
    def is_abbreviated(self) -> bool:
        """Whether only a prefix of the flag's name is written."""
        return self.entry is not None and self.spelling not in self.entry.spellings

    @property
    def is_open(self) -> bool:
        """Whether a value holds an open shell variable."""
        return any(map(is_open, self.values))


@dataclass(frozen=True, slots=True)
class ParseProblem:
    """One reason for which vLLM's parser refuses the command."""

    kind: ProblemKind
    what: str
    why: str
    fix: str
    use: Use | None = None
    positions: tuple[int, ...] = ()  # of bare words that belong to nothing
    suggestion: tuple[str, ...] = ()  # what may stand instead: a flag's name, a value, a key
    path: tuple[str, ...] = ()  # of the key of a JSON flag
    is_sure: bool = True  # the suggestion can only be what was meant


@dataclass(frozen=True, slots=True)
class ParsedCommand:
    """A command, taken apart for one release. `uses` stand in the order in which the parser meets them."""

    entry: Entry
    model: str | None
    uses: tuple[Use, ...]
    problems: tuple[ParseProblem, ...]
    registry: Registry
    config_path: str | None = None  # of `--config FILE`
    config_is_read: bool = False  # the file's content was given
    dropped: tuple[
        str, ...
    ] = ()  # keys of the config file whose `false` is passed over, though the flag is on without it

    passed_over: tuple[int, str] | None = None  # a bare word that the server module takes and forgets, and its place

    def named(self, name: str) -> tuple[Use, ...]:
        """All uses of one flag, by its canonical long name (or its spelling where the release lacks it)."""
        return tuple(use for use in self.uses if use.name == name)

    def value(self, name: str) -> str | None:
        """The value of the last use; None when the flag is absent or takes several values or none."""
        uses = [use for use in self.named(name) if not use.path]
        return uses[-1].value if uses else None

    def values(self, name: str) -> tuple[str, ...]:
        """The values of the last use, of all uses where each adds one."""
        uses = [use for use in self.named(name) if not use.path]
        if uses and uses[-1].entry is not None and uses[-1].entry.repeats:
            return tuple(value for use in uses for value in use.values)
        return uses[-1].values if uses else ()

    def is_on(self, name: str) -> bool | None:
        """Whether the last use turns a flag on or off; None when it is absent."""
        uses = self.named(name)
        return None if not uses else not uses[-1].negated

    def json(self, name: str) -> Mapping[str, object] | None:
        """The object a JSON flag carries; None when it is absent or holds none.

        As in vLLM the last use wins, and dotted keys, merged, win over whole objects; those of one spelling
        (`-cc.mode`) do not meet those of another (`--compilation-config.mode`).
        """
        groups: dict[str, list[DottedPart]] = {}
        for use in self.named(name):
            if use.path:
                groups.setdefault(use.spelling, []).append(DottedPart(use.path, use.append, use.value or ""))
        if groups:
            suffixes = get_dialect(self.registry.version).suffixes_in_json
            return _writable_object(merge_parts(list(groups.values())[-1], suffixes=suffixes))
        value = self.value(name)
        read = None if value is None else read_json_object(value)
        return None if read is None else _writable_object(read)


def _writable_object(read: Mapping[str, object]) -> Mapping[str, object]:
    return {key: writable(value) for key, value in read.items()}


def writable(value: object) -> object:
    """A value of JSON with texts for NaN and infinities, for which JSON has no word."""
    if isinstance(value, Mapping):
        return _writable_object(value)
    if isinstance(value, list):
        return [writable(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
