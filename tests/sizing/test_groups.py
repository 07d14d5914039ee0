"""Grouping of layers, and the mixtures vLLM cannot group."""

from collections.abc import Sequence

import pytest

from longreach.engine.release import get_release
from longreach.errors import UnknownModelError, UsageError
from longreach.sizing.groups import group_layers
from longreach.sizing.pages import LayerCache

V32 = get_release("0.32.0")
FULL = LayerCache("full_attention", 16, 1024)
SLIDING = LayerCache("sliding_window", 16, 1024, bound_tokens=512)
LATENT = LayerCache("mla", 64, 576)
NARROW_LATENT = LayerCache("mla", 16, 576)
STATE = LayerCache("recurrent", 16, state_bytes=9000, states_per_request=2, padded_page_bytes=16384)


def sizes(caches: Sequence[LayerCache], *, hybrid_manager: bool = True) -> list[int]:
    return [len(group.positions) for group in group_layers(caches, V32, hybrid_manager=hybrid_manager)]


@pytest.mark.parametrize(
    ("caches", "expected"),
    [
        pytest.param([FULL] * 10 + [SLIDING] * 52, [10, 9, 9, 9, 9, 8, 8], id="gemma-3-27b: by the smaller bucket"),
        pytest.param(
            [FULL, SLIDING] * 12 + [FULL], [13, 12], id="gpt-oss with a draft: near buckets share the larger size"
        ),
        pytest.param([STATE] * 48 + [FULL] * 17, [16, 16, 16, 17], id="qwen3.5-27b with MTP"),
        pytest.param([FULL] * 2 + [SLIDING] * 3, [2, 2, 1], id="one and a half is not near"),
        pytest.param([FULL, FULL], [2], id="all alike"),
        pytest.param(
            [LATENT, LayerCache("mla", 64, 132)] * 3, [6], id="latents and indexers: one family, pages add up"
        ),
        pytest.param([STATE, STATE], [2], id="states alone"),
    ],
)
def test_layers_are_dealt_into_groups(caches: Sequence[LayerCache], expected: list[int]) -> None:
    assert sorted(sizes(caches)) == sorted(expected)


def test_layers_are_dealt_round_robin() -> None:
    groups = group_layers([FULL] + [SLIDING] * 3, V32, hybrid_manager=True)
    assert [group.positions for group in groups] == [(0,), (1,), (2,), (3,)]


def test_a_smaller_page_that_divides_gets_a_larger_block() -> None:
    small = LayerCache("sliding_window", 16, 256, bound_tokens=512)
    (_, group) = group_layers([FULL, small], V32, hybrid_manager=True)
    assert (group.representative.block_size, group.representative.page_size_bytes) == (64, 16384)


def test_a_page_that_does_not_divide_is_padded() -> None:
    odd = LayerCache("sliding_window", 16, 300, bound_tokens=512)
    (_, group) = group_layers([FULL, odd], V32, hybrid_manager=True)
    assert (group.representative.block_size, group.representative.page_size_bytes) == (16, 16384)


def test_windows_count_as_full_attention_without_the_hybrid_manager() -> None:
    (group,) = group_layers([FULL, SLIDING, SLIDING], V32, hybrid_manager=False)
    assert {cache.kind for cache in group.caches} == {"full_attention"}
    assert group.bytes_per_block() == 3 * 16384


def test_windows_beside_latents_that_cannot_share_a_page_count_as_full_attention() -> None:
    (group,) = group_layers([NARROW_LATENT, SLIDING], V32, hybrid_manager=True)
    assert group.bytes_per_block() == 16 * (576 + 1024)


@pytest.mark.parametrize(
    "caches",
    [
        pytest.param([FULL, STATE], id="recurrent layers"),
        pytest.param([FULL, SLIDING, LayerCache("sliding_window", 16, 1024, bound_tokens=99)], id="two windows"),
    ],
)
def test_some_models_need_the_hybrid_manager(caches: Sequence[LayerCache]) -> None:
    with pytest.raises(UsageError, match="disable-hybrid-kv-cache-manager"):
        group_layers(caches, V32, hybrid_manager=False)


@pytest.mark.parametrize(
    "caches",
    [
        pytest.param([NARROW_LATENT, STATE], id="a latent smaller than a state"),
        pytest.param(
            [NARROW_LATENT, LayerCache("chunked_local", 16, 1024, bound_tokens=8192), SLIDING],
            id="chunks beside a latent",
        ),
        pytest.param(
            [LayerCache("recurrent", 16, state_bytes=9, states_per_request=2), SLIDING, NARROW_LATENT],
            id="no family for all",
        ),
    ],
)
def test_pages_that_cannot_be_unified_are_refused(caches: Sequence[LayerCache]) -> None:
    with pytest.raises(UnknownModelError, match="cannot be unified"):
        group_layers(caches, V32, hybrid_manager=True)


def test_a_padded_page_does_not_grow() -> None:
    padded = LayerCache("sliding_window", 16, 100, bound_tokens=512, padded_page_bytes=4096)
    with pytest.raises(UnknownModelError, match="would have to grow 4 times"):
        group_layers([FULL, padded], V32, hybrid_manager=True)


def test_a_page_larger_than_its_padding_is_refused() -> None:
    with pytest.raises(UsageError, match="do not fit the page"):
        group_layers(
            [FULL, LayerCache("sliding_window", 16, 2048, bound_tokens=512, padded_page_bytes=16384)],
            V32,
            hybrid_manager=True,
        )
