"""The KV cache is counted as vLLM counts it."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.sizing.cases import build_request, load_cases

from longreach.sizing.kv_cache import size_kv_cache


@pytest.mark.parametrize("case", load_cases("worked_examples"))
def test_worked_examples_come_to_their_exact_numbers(case: Mapping[str, Any]) -> None:
    capacity = size_kv_cache(build_request(case["model"], case["request"]))
    expected = dict(case["expected"])
    concurrency = expected.pop("max_concurrency", None)
    assert {name: getattr(capacity, name) for name in expected} == expected
    if concurrency is not None:
        assert capacity.max_concurrency == pytest.approx(concurrency, abs=0.005)
