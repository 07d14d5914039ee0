"""What each vLLM release accepts: options of `vllm serve`, environment variables, names, keys of JSON options. Pure.

The data is read out of vLLM's published source (docs/registry.md): one file a release, which holds what differs from the
release before it. The oldest release holds all that it accepts.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from longreach.errors import UsageError
from longreach.units import did_you_mean

FlagKind = Literal[
    "bool",  # a pair: --name and --no-name
    "switch",  # --name alone
    "int",
    "float",
    "text",
    "size",  # an int that takes k m g t (decimal) and K M G T (binary)
    "length",  # a size, `auto` or -1
    "json",
    "json_or_text",  # JSON where the value stands in braces, else text
    "truth",  # any text but the empty one is true
    "pairs",  # key=value,key=value; JSON is taken too
]
Family = Literal[
    "env",
    "kv_cache_dtype",
    "spec_method",
    "connector",
    "offload_spec",
    "secondary_tier",
    "tool_parser",
    "reasoning_parser",
    "quantization",
    "attention_backend",
    "architecture",
    "former_architecture",  # in the release's own table of models that it no longer supports
]
FAMILIES: tuple[Family, ...] = get_args(Family)

_Entry: TypeAlias = Mapping[str, Any]
_Sections: TypeAlias = Mapping[str, Mapping[str, Any]]  # section -> name -> entry
_TUPLES = frozenset({"aliases", "choices", "known"})
_NO_VALUES = frozenset({"bool", "switch"})
_FAMILY_OF_FLAG: Mapping[str, Family] = {
    "--tool-call-parser": "tool_parser",
    "--reasoning-parser": "reasoning_parser",
    "--quantization": "quantization",
    "--attention-backend": "attention_backend",
    "--spec-method": "spec_method",
}


@dataclass(frozen=True, slots=True)
class FlagEntry:
    """One option of `vllm serve`, as one release has it."""

    name: str  # the canonical long name: "--max-model-len"
    kind: FlagKind
    nargs: str = "1"  # values it takes: "0", "1", "?", "*", "+"
    aliases: tuple[str, ...] = ()  # every other spelling, those that turn it off excepted
    inverses: tuple[str, ...] = ()  # what turns it off beside the `--no-` halves: `--disable-x` of `--enable-x`
    choices: tuple[str | int, ...] = ()  # the parser refuses every other value; empty: it refuses none
    known: tuple[str | int, ...] = ()  # names that are checked after parsing, where the source lists them
    default: Any = None
    default_is_static: bool = True  # False: the default is worked out when vLLM starts
    deprecated: str | None = None  # the release that is to remove it, as this one says; "" where it names none
    no_effect: bool = False  # deprecated, and this release says that it does nothing
    settings: str | None = None  # the class whose fields its JSON fills, a key of `Registry.settings`
    settings_are_parsed: bool = False  # the parser itself fills that class and refuses what does not fit it
    optional: bool = False  # "" and "None" are taken as no value
    folds: bool = False  # case does not matter, nor whether words are joined by "-" or "_"
    repeats: bool = False  # each use adds a value; elsewhere the last use wins

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every option string, those that turn it off included."""
        own = (self.name, *self.aliases)
        pair = self.kind == "bool"
        halves = (f"--no-{name.removeprefix('--')}" for name in own if pair and name.startswith("--"))
        return (*own, *halves, *self.inverses)


@dataclass(frozen=True, slots=True)
class SettingEntry:
    """One key of a JSON option."""

    kind: (
        str  # "bool", "int", "float", "text", "list[int]", "map[text]", "json", "any"; joined by "|" where any is taken
    )
    choices: tuple[str | int, ...] = ()  # of a text or number, or of the elements
    folds: bool = False  # case does not matter for the choices, nor whether words are joined by "-" or "_"
    low: float | None = None  # least number
    high: float | None = None  # greatest number
    filled: bool = False  # an empty list or object is refused
    settings: str | None = None  # the class of the object that belongs here
    optional: bool = False  # null is taken
    deprecated: str | None = None
    no_effect: bool = False


@dataclass(frozen=True, slots=True)
class Registry:
    """All that one release accepts."""

    version: str
    flags: Mapping[str, FlagEntry]  # by canonical long name
    settings: Mapping[str, Mapping[str, SettingEntry]]  # class -> key -> entry
    strict_settings: frozenset[str]  # classes that refuse keys they lack; the others pass over them in silence
    offload_keys: Mapping[str, frozenset[str]]  # offload spec, tier type or connector -> keys that its code reads
    former_architectures: Mapping[str, str]  # architecture -> last release that had it, as this release tells
    _names: Mapping[Family, frozenset[str]] = field(repr=False)
    _spellings: Mapping[str, FlagEntry] = field(repr=False)

    def find(self, spelling: str) -> FlagEntry | None:
        """The option that is spelled exactly so: canonical name, alias or `--no-` half."""
        return self._spellings.get(spelling)

    def matching(self, prefix: str) -> tuple[FlagEntry, ...]:
        """Options with a long spelling that begins so, each once: argparse takes a prefix that only one spelling has."""
        found = {self._spellings[spelling].name: self._spellings[spelling] for spelling in self.spellings(prefix)}
        return tuple(found.values())

    def spellings(self, prefix: str = "--") -> tuple[str, ...]:
        """Every long option string that begins with `prefix`, `--no-` halves included, sorted."""
        return tuple(sorted(word for word in self._spellings if word.startswith("--") and word.startswith(prefix)))

    def names(self, family: Family) -> frozenset[str]:
        """The names of one family."""
        return self._names.get(family, frozenset())


def version_key(version: str) -> tuple[int, ...]:
    """Sorts releases by age: `0.8.5.post1` before `0.9.2` before `0.10.0`."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _list_versions() -> tuple[str, ...]:
    names = (item.name for item in files("longreach.engine").joinpath("registry_data").iterdir())
    return tuple(sorted((name.removesuffix(".json") for name in names if name.endswith(".json")), key=version_key))


REGISTRY_VERSIONS: tuple[str, ...] = _list_versions()
"""Every release with an entry, oldest first."""


@cache
def get_registry(version: str) -> Registry:
    """The entry of exactly this release. UsageError when there is none."""
    if version not in REGISTRY_VERSIONS:
        known = ", ".join(REGISTRY_VERSIONS)
        fix = did_you_mean(version, REGISTRY_VERSIONS) or f"name one of {known}"
        raise UsageError(f"vLLM {version} is not in the registry", f"it holds {known}", fix)
    return _build(version, _snapshot(version))


def releases_with_flag(name: str) -> tuple[str, ...]:
    """Releases in which an option has this spelling (canonical, alias or `--no-` half), oldest first."""
    return _releases(lambda registry: registry.find(name) is not None)


def releases_with_name(family: Family, name: str) -> tuple[str, ...]:
    """Releases whose family holds this name, oldest first."""
    return _releases(lambda registry: name in registry.names(family))


def releases_with_setting(settings: str, key: str) -> tuple[str, ...]:
    """Releases in which this settings class has this key, oldest first."""
    return _releases(lambda registry: key in registry.settings.get(settings, {}))


def releases_with_offload_key(key: str) -> tuple[str, ...]:
    """Releases in which the offloading connector or one of its specs reads this key, oldest first."""
    owners = ("OffloadingConnector", "CPUOffloadingSpec", "TieringOffloadingSpec")
    return _releases(lambda registry: any(key in registry.offload_keys.get(owner, ()) for owner in owners))


def _releases(has: Callable[[Registry], bool]) -> tuple[str, ...]:
    return tuple(version for version in REGISTRY_VERSIONS if has(get_registry(version)))


@cache
def _snapshot(version: str) -> _Sections:
    """All entries of a release by section: those of the release before it, with its own differences applied."""
    index = REGISTRY_VERSIONS.index(version)
    before = _snapshot(REGISTRY_VERSIONS[index - 1]) if index else {}
    text = files("longreach.engine").joinpath("registry_data", f"{version}.json").read_text(encoding="utf-8")
    return apply_differences(before, json.loads(text))


def apply_differences(before: _Sections, differences: _Sections) -> _Sections:
    """Sections of entries with the differences of the next release applied; None takes an entry away."""
    after = {section: dict(entries) for section, entries in before.items()}
    for section, entries in differences.items():
        own = after.setdefault(section, {})
        own.update(entries)
        for name in [name for name, entry in entries.items() if entry is None]:
            del own[name]
    return after


def _build(version: str, sections: _Sections) -> Registry:
    flags = {name: _flag(name, entry, sections) for name, entry in sorted(sections["flags"].items())}
    settings: dict[str, dict[str, SettingEntry]] = {}
    for place, entry in sections["settings"].items():
        owner, _, key = place.rpartition(".")
        settings.setdefault(owner, {})[key] = SettingEntry(**_values(entry, sections))
    return Registry(
        version=version,
        flags=MappingProxyType(flags),
        settings=MappingProxyType({owner: MappingProxyType(keys) for owner, keys in settings.items()}),
        strict_settings=frozenset(sections.get("strict_settings", ())),
        offload_keys=MappingProxyType({owner: frozenset(keys) for owner, keys in sections["offload_keys"].items()}),
        former_architectures=MappingProxyType(dict(sections.get("former_architecture", {}))),
        _names=MappingProxyType({family: frozenset(sections.get(family, ())) for family in FAMILIES}),
        _spellings=MappingProxyType({spelling: flag for flag in flags.values() for spelling in flag.spellings}),
    )


def _flag(name: str, entry: _Entry, sections: _Sections) -> FlagEntry:
    values = _values(entry, sections)
    if values["kind"] in _NO_VALUES:
        values["nargs"] = "0"
    if values["kind"] == "switch":
        values.setdefault("default", False)
    if name in _FAMILY_OF_FLAG and not values.get("choices"):
        values["known"] = _list_names(_FAMILY_OF_FLAG[name], sections)
    if values["kind"] == "bool" and "enable_disable_pairs" in sections.get("traits", ()):
        values["inverses"] = tuple(filter(None, map(_inverse, (name, *values.get("aliases", ())))))
    return FlagEntry(name=name, **values)


def _inverse(spelling: str) -> str | None:
    """`--disable-x` of `--enable-x`, and the other way round."""
    for prefix, other in (("--enable-", "--disable-"), ("--disable-", "--enable-")):
        if spelling.startswith(prefix):
            return other + spelling.removeprefix(prefix)
    return None


def _values(entry: _Entry, sections: _Sections) -> dict[str, Any]:
    """Keyword arguments: lists are kept as tuples, a default is as JSON has it."""
    values = dict(entry)
    for key in _TUPLES & values.keys():
        value = values[key]
        values[key] = _list_names(value, sections) if isinstance(value, str) else tuple(value)
    return values


def _list_names(reference: str, sections: _Sections) -> tuple[str, ...]:
    """The names that an entry refers to: those of a family, or the choices of the option that it names."""
    if reference.startswith("--"):
        return tuple(sections["flags"][reference]["choices"])
    return tuple(sorted(sections[reference]))
