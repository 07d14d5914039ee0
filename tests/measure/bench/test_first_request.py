from dataclasses import replace
from typing import Any

import pytest
from tests.measure.bench.results import record, result

from longreach.measure.bench.first_request import describe_slow_first
from longreach.measure.bench.values import RequestRecord


def _records(first_s: float, num_others: int = 5, **first: Any) -> list[RequestRecord]:
    return [record(0, ttft_s=first_s, **first), *(record(index, ttft_s=0.1) for index in range(1, 1 + num_others))]


def test_a_first_request_that_stands_out_is_told() -> None:
    told = describe_slow_first(result(*_records(3.0)))
    assert told is not None
    assert "the first request waited 3.0 s for its first token, 30 times the median" in told
    assert "--warmup 1" in told


@pytest.mark.parametrize(
    "records",
    [
        _records(0.2),
        _records(3.0, num_others=2),
        _records(3.0, wanted_prompt_tokens=100_000),
        [replace(each, state="as_it_comes") for each in _records(3.0)],
        [replace(each, reusable_tokens=500) for each in _records(3.0)],
        [replace(each, ok=False) for each in _records(3.0)],
        [],
    ],
    ids=["alike", "few others", "a longer prompt", "others may hit", "others share", "failed", "none"],
)
def test_nothing_is_said_that_may_have_another_cause(records: list[RequestRecord]) -> None:
    assert describe_slow_first(result(*records)) is None
