"""DeepSeek-V4's packed cache: bytes of a block by release, and what is refused."""

from dataclasses import replace
from typing import Any

import pytest

from longreach.engine.release import get_release
from longreach.errors import LongreachError
from longreach.model.catalogue import load_catalogue_model
from longreach.sizing.kv_cache import concurrency_at, size_kv_cache
from longreach.sizing.values import KvCacheRequest
from longreach.units import GIB

FLASH = load_catalogue_model("deepseek-v4-flash")


def request(release: str, **changes: Any) -> KvCacheRequest:
    plain = KvCacheRequest(FLASH, get_release(release), 262_144, 32 * GIB, max_num_batched_tokens=8192)
    return replace(plain, **changes)


@pytest.mark.parametrize(
    ("release", "bytes_per_block"),
    [
        ("0.20.2", 22 * (37_440 + 8640 + 1728)),
        ("0.23.0", 22 * 37_440 + 21 * 8640 + 20 * 1728),
        ("0.28.0", 21 * 37_440 + 21 * 8640 + 20 * 1728),
    ],
)
def test_a_block_holds_what_the_release_lays_into_it(release: str, bytes_per_block: int) -> None:
    capacity = size_kv_cache(request(release))
    assert capacity.bytes_per_block == bytes_per_block
    assert capacity.certainty == "estimate"
    assert sorted(group.num_layers for group in capacity.groups) == [20, 21, 22, 42, 62]


def test_an_early_check_takes_blocks_for_larger_than_the_pool_does() -> None:
    capacity = size_kv_cache(request("0.23.0"))
    assert capacity.needed_bytes_per_gpu == capacity.blocks_per_request * 22 * (37_440 + 8640 + 1728)
    assert size_kv_cache(request("0.29.0")).needed_bytes_per_gpu % (21 * 37_440 + 21 * 8640 + 20 * 1728) == 0


def test_concurrency_weighs_groups_by_their_bytes_before_0_27() -> None:
    assert size_kv_cache(request("0.23.0")).max_concurrency > 32 * GIB // 1_039_680 / 4485
    assert concurrency_at(request("0.23.0"), 262_144) == size_kv_cache(request("0.23.0")).max_concurrency


def test_an_mtp_layer_adds_a_window() -> None:
    capacity = size_kv_cache(request("0.32.0", use_draft_layers=True, num_speculative_tokens=1))
    assert sorted(group.num_layers for group in capacity.groups) == [20, 22, 22, 42, 62]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"release": get_release("0.19.1")}, "vLLM 0.19.1 does not know compressed attention"),
        ({"kv_cache_dtype": "nvfp4"}, "compressed attention in nvfp4 is not modelled"),
        ({"pp_size": 2}, "compressed attention split by pipeline or context is not modelled"),
        (
            {"model": replace(FLASH, compressed=replace(FLASH.compressed, ratios=(2,)))},  # type: ignore[type-var]
            "a compression ratio of 2 is not understood",
        ),
    ],
)
def test_what_is_not_modelled_is_refused(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(LongreachError) as caught:
        size_kv_cache(replace(request("0.32.0"), **changes))
    assert caught.value.what == what
