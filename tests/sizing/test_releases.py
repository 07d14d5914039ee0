"""What each release's own planning functions answered for published models, called with that release's specs.

One line a plan in `release_plans.jsonl`; 0.32.0 is asked anew by `tests/engine/test_sizing_oracle.py`.
"""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from tests.sizing.cases import load_cases, read_cases

from longreach.engine.release import DEFAULT_RELEASE, RELEASES, get_release
from longreach.errors import LongreachError
from longreach.model.catalogue import load_catalogue_model
from longreach.sizing.kv_cache import size_kv_cache
from longreach.sizing.values import KvCacheRequest


def build(case: Mapping[str, Any]) -> KvCacheRequest:
    return KvCacheRequest(load_catalogue_model(case["model"]), get_release(case["release"]), **case["request"])


@pytest.mark.parametrize("case", load_cases("release_plans"))
def test_a_release_counts_as_its_own_functions_do(case: Mapping[str, Any]) -> None:
    if "stops" in case:
        with pytest.raises(LongreachError):
            size_kv_cache(build(case))
        return
    capacity = size_kv_cache(build(case))
    if "refusal_needs_gib" in case:
        found = re.search(r"\(([\d.]+) GiB KV cache is needed.*?(?:length is (\d+)\.)?$", capacity.refusal or "")
        assert found is not None
        proposed = int(found[2]) if found[2] else None
        assert (found[1], proposed) == (case["refusal_needs_gib"], case["refusal_proposes"])
        return
    assert capacity.starts
    assert (capacity.num_blocks, len(capacity.groups)) == (case["num_blocks"], case["num_groups"])
    assert (capacity.block_size, capacity.kv_capacity_tokens) == (case["block_size"], case["kv_capacity_tokens"])
    assert capacity.max_concurrency == pytest.approx(case["max_concurrency"], abs=0.0051)


def test_every_release_was_asked() -> None:
    asked = {case["release"] for case in read_cases("release_plans")}
    assert asked == {release.version for release in RELEASES} - {DEFAULT_RELEASE}
