"""What holds of every count, on seeded random plans."""

from dataclasses import replace

import pytest
from tests.engine.random_plans import PlanSource

from longreach.engine.release import get_release
from longreach.errors import LongreachError
from longreach.sizing.kv_cache import size_kv_cache
from longreach.sizing.startup import LONGEST_SEARCHED_TOKENS
from longreach.sizing.values import KvCacheRequest, KvCapacity


def countable_plans(seed: int, count: int) -> list[tuple[KvCacheRequest, KvCapacity]]:
    """Plans that vLLM would count, with their counts."""
    source, plans = PlanSource(seed), []
    for _ in range(count):
        request = source.draw()
        try:
            plans.append((request, size_kv_cache(request)))
        except LongreachError:
            continue
    return plans


PLANS = countable_plans(seed=7, count=160)


def test_the_plans_cover_starts_and_refusals() -> None:
    starts = sum(capacity.starts for _, capacity in PLANS)
    assert 40 < starts < len(PLANS) - 15


def test_more_memory_never_holds_fewer_tokens() -> None:
    for request, capacity in PLANS:
        more = size_kv_cache(replace(request, available_bytes_per_gpu=request.available_bytes_per_gpu + 10**8))
        assert more.kv_capacity_tokens >= capacity.kv_capacity_tokens
        assert more.largest_max_model_len >= capacity.largest_max_model_len


def test_the_engine_refuses_exactly_when_it_needs_more_than_there_is() -> None:
    for _, capacity in PLANS:
        assert capacity.starts == (capacity.needed_bytes_per_gpu <= capacity.available_bytes_per_gpu)
        assert (capacity.refusal is None) == capacity.starts


def test_the_needed_bytes_start_and_one_byte_less_does_not() -> None:
    for request, capacity in PLANS:
        needed = capacity.needed_bytes_per_gpu
        assert size_kv_cache(replace(request, available_bytes_per_gpu=needed)).starts
        assert not size_kv_cache(replace(request, available_bytes_per_gpu=needed - 1)).starts


def test_the_largest_length_starts_and_one_token_more_does_not() -> None:
    for request, capacity in PLANS:
        largest = capacity.largest_max_model_len
        if largest > 0:
            assert size_kv_cache(replace(request, max_model_len=largest)).starts
        if largest < LONGEST_SEARCHED_TOKENS:
            assert not size_kv_cache(replace(request, max_model_len=largest + 1)).starts


def test_the_largest_length_does_not_depend_on_the_length_asked_for() -> None:
    for request, capacity in PLANS:
        other = size_kv_cache(replace(request, max_model_len=12345))
        assert other.largest_max_model_len == capacity.largest_max_model_len


def test_groups_hold_every_layer_once_and_the_widest_makes_the_block() -> None:
    for request, capacity in PLANS:
        drafts = len(request.model.draft_layers) if request.use_draft_layers else 0
        assert sum(group.num_layers for group in capacity.groups) == len(request.model.layers) + drafts
        assert sum(group.blocks_per_request for group in capacity.groups) == capacity.blocks_per_request
        if request.pp_size == 1:
            assert max(group.bytes_per_block for group in capacity.groups) == capacity.bytes_per_block


@pytest.mark.parametrize("version", ["0.28.0", "0.33.0"])
def test_releases_differ_in_what_a_request_needs_not_in_the_pool(version: str) -> None:
    for request, capacity in PLANS[:80]:
        other = size_kv_cache(replace(request, release=get_release(version)))
        assert other.num_blocks == capacity.num_blocks
        assert other.needed_bytes_per_gpu <= capacity.needed_bytes_per_gpu
