"""Everything the registry holds of one release, and what of it differs from the release before."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.registry.families import read_families, read_former_architectures
from tools.registry.interpreter import Interpreter
from tools.registry.offload import read_offload_keys
from tools.registry.options import read_options, start
from tools.registry.settings import read_settings, read_strict_settings

Sections = Mapping[str, Mapping[str, Any]]
"""Section ("flags", "settings", "offload_keys", a family) -> name -> entry."""


_FAMILY_OF_CHOICES = {"--tool-call-parser": "tool_parser", "--reasoning-parser": "reasoning_parser"}


def read_release(folder: Path) -> Sections:
    """All entries of the release whose package `vllm` is in `folder`."""
    running, typed = start(folder), start(folder, typed=True)
    options = read_options(running, typed)
    families = read_families(typed)
    for option in options:
        if option.lists_when_run:
            option.entry["choices"] = sorted(families[_FAMILY_OF_CHOICES[option.name]])
    classes = {
        typed.import_value(f"{cls.__module__}.{cls.__name__}"): option.entry.get("settings_are_parsed")
        for option in options
        if (cls := option.settings)
    }
    called = [cls for cls, is_parsed in classes.items() if not is_parsed]
    sections: dict[str, Mapping[str, Any]] = {
        "flags": {option.name: option.entry for option in options},
        "settings": read_settings(typed, classes),
        "strict_settings": dict.fromkeys(read_strict_settings(typed, classes, called), 1),
        "offload_keys": read_offload_keys(typed),
        "former_architecture": read_former_architectures(typed),
        "traits": dict.fromkeys(read_traits(running), 1),
    }
    _name_lists(sections, families)
    return sections | {family: dict.fromkeys(names, 1) for family, names in families.items()}


def read_traits(interpreter: Interpreter) -> list[str]:
    """What the release's parser does to every option of a kind, by our own names."""
    pairs = interpreter.import_value(
        "vllm.utils.argparse_utils.EnableDisableAction"
    )  # `--disable-x` beside `--enable-x`
    return ["enable_disable_pairs"] if isinstance(pairs, type) else []


def _name_lists(sections: Mapping[str, Mapping[str, Any]], families: Mapping[str, set[str]]) -> None:
    """Name the family, or for a setting the option, in place of a list of the same names: lists change often."""
    lists: dict[frozenset[Any], str] = {frozenset(names): family for family, names in families.items() if names}
    for section in ("flags", "settings"):
        for name, entry in sections[section].items():
            for key in {"choices", "known"} & entry.keys():
                names = frozenset(entry[key])
                if names in lists:
                    entry[key] = lists[names]
                elif key == "choices" and section == "flags" and len(names) > _LONG:
                    lists[names] = name


_LONG = 4  # names; a shorter list is as plain as a reference


def differences(before: Sections, after: Sections) -> Sections:
    """What to apply to one release's entries to get the next one's; None takes an entry away."""
    found: dict[str, Mapping[str, Any]] = {}
    for section, entries in after.items():
        old = before.get(section, {})
        changed: dict[str, Any] = {name: entry for name, entry in entries.items() if old.get(name) != entry}
        changed |= dict.fromkeys(name for name in old if name not in entries)
        if changed:
            found[section] = changed
    return found


def render(sections: Sections) -> str:
    """JSON with one entry a line, sorted, so that the next release is a readable difference."""
    parts = []
    for section, entries in sorted(sections.items()):
        rows = [f"{json.dumps(name)}:{_minified(entry)}" for name, entry in sorted(entries.items())]
        parts.append(f"{json.dumps(section)}:{{\n" + ",\n".join(rows) + "}")
    return "{" + ",\n".join(parts) + "}\n"


def _minified(entry: Any) -> str:
    return json.dumps(entry, separators=(",", ":"), ensure_ascii=False)
