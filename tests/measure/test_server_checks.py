"""What the server says of itself, against the plan."""

import dataclasses

import pytest

from longreach.measure.server_checks import check_server
from longreach.measure.target import ExpectedServer
from longreach.measure.verify_report import ServerState

PLANNED = ExpectedServer(
    release="0.32.0",
    max_model_len=750_000,
    kv_capacity_tokens=1_194_731,
    max_concurrency=1.592975,
    block_size=1600,
    num_blocks=771,
    kv_cache_dtype="fp8_e4m3",
)
SAYS = ServerState("0.32.0+cpu", 750_000, 1_194_731, 1.59, 1600, 771, "fp8_e4m3")


def test_all_as_planned_passes_and_shows_both_numbers() -> None:
    items = check_server(PLANNED, SAYS)
    assert [item.verdict for item in items] == ["pass"] * 6
    capacity = next(item for item in items if item.name == "kv_capacity")
    assert capacity.evidence == "the server holds 1,194,731 tokens, 1,194,731 planned; 771 blocks, 771 planned"


def test_nothing_planned_is_nothing_to_check() -> None:
    assert check_server(ExpectedServer(), SAYS) == []


def test_a_silent_server_cannot_be_judged() -> None:
    assert {item.verdict for item in check_server(PLANNED, ServerState())} == {"cannot_tell"}


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("version", "0.33.0", "release"),
        ("max_model_len", 700_000, "max_model_len"),
        ("kv_capacity_tokens", 1_194_730, "kv_capacity"),
        ("max_concurrency", 1.58, "max_concurrency"),
        ("block_size", 16, "block_size"),
        ("kv_cache_dtype", "auto", "kv_cache_dtype"),
    ],
)
def test_one_difference_fails_one_item(field: str, value: object, name: str) -> None:
    says = dataclasses.replace(SAYS, **{field: value})  # type: ignore[arg-type] # each value fits its field
    items = check_server(PLANNED, says)
    assert [item.name for item in items if item.verdict == "fail"] == [name]


def test_another_patch_of_the_same_release_passes() -> None:
    items = check_server(PLANNED, dataclasses.replace(SAYS, version="0.32.2"))
    assert items[0].verdict == "pass"


def test_a_difference_from_an_estimate_decides_nothing() -> None:
    planned = dataclasses.replace(PLANNED, capacity_is_exact=False)
    says = dataclasses.replace(SAYS, kv_capacity_tokens=1_000_000, max_concurrency=1.33)
    assert [item.name for item in check_server(planned, says) if item.verdict == "cannot_tell"] == [
        "kv_capacity",
        "max_concurrency",
    ]
