"""The tables of docs/engine.md are the data: a row that is missing or stale fails here, with the table as it should be."""

from dataclasses import fields
from itertools import pairwise
from pathlib import Path

import pytest

from longreach.engine.failures import PATTERNS
from longreach.engine.flags import FLAGS
from longreach.engine.metric_names import METRIC_NAMES
from longreach.engine.registry import (
    REGISTRY_VERSIONS,
    get_registry,
    releases_with_flag,
    releases_with_name,
    releases_with_offload_key,
)
from longreach.engine.release import RELEASES

NEWEST = get_registry(REGISTRY_VERSIONS[-1])
PAGE = Path(__file__).parents[2] / "docs" / "engine.md"


def table(header: list[str], rows: list[list[object]]) -> str:
    lines = [header, ["---"] * len(header), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def since(releases: tuple[str, ...]) -> list[object]:
    """First and last release; no last where the newest has it."""
    return [releases[0], "" if releases[-1] == REGISTRY_VERSIONS[-1] else releases[-1]]


def releases() -> str:
    words = {"True": "yes", "False": "no", "None": "none"}
    rows: list[list[object]] = []
    for name in (field.name for field in fields(RELEASES[0]) if field.name != "version"):
        steps = [RELEASES[0], *(new for old, new in pairwise(RELEASES) if getattr(old, name) != getattr(new, name))]
        values = [words.get(value := str(getattr(release, name)), value) for release in steps]
        later = [f"{value} from {release.version}" for value, release in zip(values, steps, strict=True)][1:]
        rows.append([f"`{name}`", values[0], ", ".join(later)])
    return table(["rule", "first", "later"], rows)


def flags() -> str:
    rows: list[list[object]] = [
        [f"`{flag.field}`", f"`{flag.name}`", flag.kind if flag.key is None else f"key {flag.key}",
         *since(releases_with_flag(flag.name)), " ".join(f"`{alias}`" for alias in NEWEST.flags[flag.name].aliases), flag.note]
        for flag in FLAGS
    ]  # fmt: skip
    return table(["field", "flag", "kind", "first", "last", "short", "remark"], rows)


def kv_dtypes() -> str:
    releases = {name: releases_with_name("kv_cache_dtype", name) for name in NEWEST.names("kv_cache_dtype")}
    rows = sorted(releases, key=lambda name: (REGISTRY_VERSIONS.index(releases[name][0]), name))
    return table(["dtype", "first"], [[f"`{name}`", releases[name][0]] for name in rows])


def offload_keys() -> str:
    owners = ("OffloadingConnector", "CPUOffloadingSpec", "TieringOffloadingSpec")
    keys = {key for version in REGISTRY_VERSIONS for owner in owners for key in read_by(version, owner)}
    return table(
        ["key", "first", "last"], [[f"`{key}`", *since(releases_with_offload_key(key))] for key in sorted(keys)]
    )


def read_by(version: str, owner: str) -> frozenset[str]:
    return get_registry(version).offload_keys.get(owner, frozenset())


def metrics() -> str:
    rows: list[list[object]] = [
        [f"`{row.field}`", f"`{row.name}`", row.kind, row.by or "", row.first or "", row.last or ""]
        for row in METRIC_NAMES
    ]
    return table(["field", "metric", "kind", "by label", "first", "last"], rows)


def failures() -> str:
    rows: dict[str, list[object]] = {row.cause: [f"`{row.cause}`", row.meaning.replace("|", "\\|")] for row in PATTERNS}
    return table(["cause", "meaning"], list(rows.values()))


TABLES = {
    "releases": releases,
    "flags": flags,
    "kv dtypes": kv_dtypes,
    "offload keys": offload_keys,
    "metrics": metrics,
    "failures": failures,
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_the_page_is_the_data(name: str) -> None:
    expected = TABLES[name]()
    assert expected in PAGE.read_text(encoding="utf-8"), f"docs/engine.md should hold:\n{expected}"
