from dataclasses import replace

import pytest
from tests.measure.bench.results import phase, record, result

from longreach.measure.bench.selection import (
    busy_time_s,
    came_in_one_piece,
    counted_phases,
    describe_load,
    sources_of,
    states_of,
    total,
)
from longreach.measure.bench.values import Load, PhaseReport


def test_of_several_passes_in_one_state_the_last_one_counts() -> None:
    passes = ("warm 1", "warm 2")
    run = result(
        record(),
        *(record(state="warm", phase=name) for name in passes),
        record(state="flood"),
        phases=(phase(), *(phase("warm", name=name) for name in passes), phase("flood")),
    )
    assert [item.name for item in counted_phases(run)] == ["cold", "warm 2"]
    assert states_of(run) == ("cold", "warm")


def test_time_between_phases_and_sittings_is_not_busy() -> None:
    sittings = (phase(began_s=0, ended_s=10), phase(began_s=100, ended_s=110))
    records = [record(0, sent_s=1), record(1, sent_s=4), record(2, sent_s=101), record(3, "warm", sent_s=200)]
    assert busy_time_s(records, sittings) == 6 + 3 + 3
    assert busy_time_s(records[:3], ()) == 103
    assert busy_time_s([], ()) == 0


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (
            phase(hits_by_source=(("device", 5), ("disk", 0), ("host", 3)), prefix_hit_tokens=9),
            {"device": 5, "host": 3},
        ),
        (phase(prefix_hit_tokens=4, external_hit_tokens=2), {"device": 4, "outside the GPU": 2}),
        (phase(prefix_hit_tokens=None, external_hit_tokens=None), {}),
    ],
    ids=["by source", "before 0.32", "not counted"],
)
def test_hits_are_told_apart_as_far_as_the_server_does(report: PhaseReport, expected: dict[str, int]) -> None:
    assert dict(sources_of(report)) == expected


@pytest.mark.parametrize(("values", "expected"), [([1, 2], 3), ([1, None], None), ([], None), ([0], 0)])
def test_a_sum_with_an_unknown_part_is_unknown(values: list[int | None], expected: int | None) -> None:
    assert total(values) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"itl_s": None, "chunk_gap_max_s": 0.0}, True),
        ({"itl_s": None, "chunk_gap_max_s": 0.0, "output_tokens": None}, True),
        ({"itl_s": 2e-4, "chunk_gap_max_s": 1e-5}, True),
        ({"itl_s": 2e-6, "chunk_gap_max_s": 3e-4}, True),
        ({"itl_s": None, "chunk_gap_max_s": None, "num_chunks": 1}, True),
        ({"itl_s": None, "chunk_gap_max_s": None, "num_chunks": 1, "output_tokens": 1}, False),
        ({"itl_s": None, "chunk_gap_max_s": None, "num_chunks": 0}, False),
        ({"itl_s": 0.1, "chunk_gap_max_s": None, "num_chunks": 1}, False),
    ],
    ids=[
        *("streamed", "all at once", "nor counted", "with a late end", "in several reads", "one chunk", "one token"),
        *("nothing", "an end token without text"),
    ],
)
def test_an_answer_without_time_between_its_tokens_came_in_one_piece(
    changes: dict[str, float | None], expected: bool
) -> None:
    assert came_in_one_piece(replace(record(), **changes)) is expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (Load(), "one at a time"),
        (Load("closed", 4), "4 at once"),
        (Load("poisson", 8, 0.5), "0.5 a second (poisson), at most 8 at once"),
        (Load("trace", None, None, 2.0), "at the trace's own times, on a clock 2 times as long"),
    ],
)
def test_a_load_is_told_in_words(load: Load, words: str) -> None:
    assert describe_load(load) == words
