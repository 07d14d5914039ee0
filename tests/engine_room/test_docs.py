"""The tables of docs/engine.md are the data: a row that is missing or stale fails here, with the table as it should be."""

from dataclasses import fields
from itertools import pairwise
from pathlib import Path

import pytest

from longreach.engine.failures import PATTERNS
from longreach.engine.flags import FLAGS, KV_CACHE_DTYPES, OFFLOAD_KEYS
from longreach.engine.metric_names import METRIC_NAMES
from longreach.engine.release import RELEASES

PAGE = Path(__file__).parents[2] / "docs" / "engine.md"


def table(header: list[str], rows: list[list[object]]) -> str:
    lines = [header, ["---"] * len(header), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def since(first: str | None, last: str | None) -> list[str]:
    return [first or "?", last or ""]


def releases() -> str:
    words = {True: "yes", False: "no", None: "none"}
    rows: list[list[object]] = []
    for name in (field.name for field in fields(RELEASES[0]) if field.name != "version"):
        steps = [RELEASES[0], *(new for old, new in pairwise(RELEASES) if getattr(old, name) != getattr(new, name))]
        values = [words.get(value := getattr(release, name), value) for release in steps]
        later = [f"{value} from {release.version}" for value, release in zip(values, steps, strict=True)][1:]
        rows.append([f"`{name}`", values[0], ", ".join(later)])
    return table(["rule", "first", "later"], rows)


def flags() -> str:
    rows: list[list[object]] = [
        [f"`{flag.field}`", f"`{flag.name}`", flag.kind if flag.key is None else f"key {flag.key}",
         flag.first, flag.last or "", " ".join(f"`{alias}`" for alias in flag.aliases), flag.note]
        for flag in FLAGS
    ]  # fmt: skip
    return table(["field", "flag", "kind", "first", "last", "short", "remark"], rows)


def kv_dtypes() -> str:
    return table(["dtype", "first"], [[f"`{name}`", first or "?"] for name, first in KV_CACHE_DTYPES.items()])


def offload_keys() -> str:
    return table(["key", "first", "last"], [[f"`{key}`", *since(*bounds)] for key, bounds in OFFLOAD_KEYS.items()])


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
