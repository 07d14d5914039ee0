"""Start-up logs that others published from real GPUs come out of the count."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.sizing.cases import load_cases

from longreach.engine.release import get_release
from longreach.model.catalogue import load_catalogue_model
from longreach.sizing.kv_cache import plan_kv_cache, size_kv_cache
from longreach.sizing.values import KvCacheRequest, KvCapacity
from longreach.units import GIB

HALF_A_HUNDREDTH_GIB = 0.005 * GIB


def possible_capacities(case: Mapping[str, Any]) -> list[KvCapacity]:
    """One for each number of blocks that the logged memory, rounded to 0.01 GiB, allows.

    The logs are older than the null block; rules that differ otherwise are stated by the case.
    """
    logged = int(case["available_gib"] * GIB)
    request = KvCacheRequest(
        load_catalogue_model(case["model"]), get_release("0.28.0"), available_bytes_per_gpu=logged, **case["request"]
    )
    block = plan_kv_cache(request).bytes_per_block
    fewest, most = (int(logged + side * HALF_A_HUNDREDTH_GIB) // block for side in (-1, 1))
    return [size_kv_cache(replace(request, available_bytes_per_gpu=count * block)) for count in range(fewest, most + 1)]


def agrees(capacity: KvCapacity, printed: Mapping[str, Any]) -> bool:
    """Every printed number is the capacity's, at the log's own precision."""
    needed = capacity.blocks_per_request * capacity.bytes_per_block
    found = {
        "kv_tokens": capacity.kv_capacity_tokens,
        "max_concurrency": round(capacity.max_concurrency, 2),
        "kv_needed_gib": round(needed / GIB, 2),
        "estimated_max_model_len": capacity.largest_max_model_len,
    }
    return all(
        found[name] == pytest.approx(value, rel=0, abs=0.011 if isinstance(value, float) else 0)
        for name, value in printed.items()
    )


@pytest.mark.parametrize("case", load_cases("published_logs"))
def test_published_logs_are_reproduced(case: Mapping[str, Any]) -> None:
    capacities = possible_capacities(case)
    assert any(agrees(capacity, case["printed"]) for capacity in capacities), (
        case["printed"],
        capacities[0],
        capacities[-1],
    )
