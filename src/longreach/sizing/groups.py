"""Grouping: which layers share a block table, and what one block costs.

vLLM draws all groups' blocks from one pool, so every group's block must have the same size: pages are unified and layers
dealt into groups of equal number. Read in `v1/core/kv_cache_utils.py` of every release, for layer-outermost cache layouts; what
differs between releases is a field of `Release`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from longreach.engine.release import Release
from longreach.errors import UnknownModelError, UsageError
from longreach.model.repeats import tally
from longreach.sizing.pages import LayerCache
from longreach.units import ceil_div


@dataclass(frozen=True, slots=True)
class CacheGroup:
    """Layers that share a block table: positions among all layers, and each one's cache after unification."""

    positions: tuple[int, ...]
    caches: tuple[LayerCache, ...]

    @property
    def representative(self) -> LayerCache:
        """Any layer of the group: all need the same number of blocks."""
        return self.caches[0]

    def bytes_per_block(self, held: Callable[[int], bool] = lambda _: True) -> int:
        """One block in those of its layers that a worker holds."""
        caches = (cache for position, cache in zip(self.positions, self.caches, strict=True) if held(position))
        return sum(count * cache.page_size_bytes for cache, count in tally(caches))


def group_layers(caches: Sequence[LayerCache], release: Release, *, hybrid_manager: bool) -> tuple[CacheGroup, ...]:
    """Group the whole model's layers.

    One group when all layers keep the same tokens in blocks of one size (their pages add up). Otherwise pages are unified to
    the largest, layers bucketed by cache, and each bucket dealt into groups of equal size. Raises UsageError or
    UnknownModelError where the release cannot unify.
    """
    if not hybrid_manager:
        caches = _promote_local(caches, may_differ=not release.hybrid_kv_cache_manager)
    _check_padding(caches)
    if _is_one_family(caches) and (release.mixed_pages_share_group or len(_page_sizes(caches)) == 1):
        return (CacheGroup(tuple(range(len(caches))), tuple(caches)),)
    unified = _unify_pages(caches, release)
    if unified is None:
        return (_full_allocation(caches, release),)
    return _deal(unified, release.near_bucket_ratio)


def _page_sizes(caches: Sequence[LayerCache]) -> set[int]:
    return {cache.page_size_bytes for cache in caches}


def _check_padding(caches: Sequence[LayerCache]) -> None:
    for cache in caches:
        if cache.page_size_bytes < cache.unpadded_page_bytes:
            raise UsageError(
                "the sliding-window layers do not fit the page of a quantized KV cache with layers left unquantized",
                f"{cache.block_size} tokens of {cache.token_bytes} bytes exceed {cache.page_size_bytes} bytes; "
                "vLLM stops at start-up",
                "another --kv-cache-dtype, or no --kv-cache-dtype-skip-layers",
            )


def _is_one_family(caches: Sequence[LayerCache]) -> bool:
    """All keep the same tokens: full and latent attention are one family, windows and chunks only with their like."""
    if len({cache.block_size for cache in caches}) > 1:
        return False
    first = caches[0]
    if first.kind == "recurrent":
        return all(
            cache.kind == "recurrent"
            and (cache.page_size_bytes, cache.states_per_request) == (first.page_size_bytes, first.states_per_request)
            for cache in caches
        )
    if first.is_full_attention:
        return all(cache.is_full_attention for cache in caches)
    return all((cache.kind, cache.bound_tokens) == (first.kind, first.bound_tokens) for cache in caches)


def _unify_pages(caches: Sequence[LayerCache], release: Release) -> tuple[LayerCache, ...] | None:
    """Give every layer the largest page: by a larger block where it divides, else by padding. None: a latent cannot be
    padded, since sparse kernels read whole rows.
    """
    largest = max(_page_sizes(caches))
    unified = []
    for cache in caches:
        page = cache.page_size_bytes
        if page == largest:
            unified.append(cache)
        elif release.pages_widen and cache.kind != "recurrent" and largest % page == 0:
            unified.append(_widen(cache, largest // page))
        elif cache.kind == "mla" and release.windows_fall_back_to_full:
            return None
        elif cache.kind != "mla" and (
            release.recurrent_pages_pad if cache.kind == "recurrent" else release.attention_pages_pad
        ):
            unified.append(replace(cache, padded_page_bytes=largest))
        else:
            raise _cannot_unify(caches, release)
    return tuple(unified)


def _cannot_unify(caches: Sequence[LayerCache], release: Release) -> UnknownModelError:
    kinds = sorted({cache.kind for cache in caches})
    return UnknownModelError(
        "the KV pages of this model cannot be unified",
        f"vLLM {release.version} has no layout for {', '.join(kinds)} layers with pages of {sorted(_page_sizes(caches))} bytes: "
        "it stops at start-up",
        "another --kv-cache-dtype, or a newer vLLM",
    )


def _widen(cache: LayerCache, factor: int) -> LayerCache:
    # vLLM multiplies the block and keeps an existing padding, which then no longer matches: it asserts
    if cache.padded_page_bytes is not None:
        raise UnknownModelError(
            "the KV pages of this model cannot be unified",
            f"a page padded to {cache.padded_page_bytes} bytes would have to grow {factor} times; vLLM stops at this",
            "another --kv-cache-dtype, or no --kv-cache-dtype-skip-layers",
        )
    return replace(cache, block_size=cache.block_size * factor)


def _deal(caches: Sequence[LayerCache], near_ratio: float | None) -> tuple[CacheGroup, ...]:
    """Bucket equal caches; deal each bucket round-robin, so that every pipeline stage gets a share of every group.

    Groups have the smallest bucket's size; the largest's, when that is less than `near_ratio` times the smallest.
    """
    buckets: dict[LayerCache, list[int]] = {}
    for position, cache in enumerate(caches):
        buckets.setdefault(cache, []).append(position)
    counts = [len(positions) for positions in buckets.values()]
    is_near = near_ratio is not None and max(counts) < min(counts) * near_ratio
    size = max(counts) if is_near else min(counts)
    groups = []
    for positions in buckets.values():
        num_groups = ceil_div(len(positions), size)
        for first in range(num_groups):
            dealt = tuple(positions[first::num_groups])
            groups.append(CacheGroup(dealt, tuple(caches[position] for position in dealt)))
    return tuple(groups)


def _promote_local(caches: Sequence[LayerCache], *, may_differ: bool) -> tuple[LayerCache, ...]:
    """Without the hybrid manager windows and chunks are allocated like full attention; windows of two lengths only where
    the release never looked (`may_differ`).
    """
    if _is_one_family(caches):
        return tuple(caches)
    promoted = _as_full_attention(caches)
    if promoted is None or (_has_two_reaches(caches) and not may_differ):
        raise UsageError(
            "this model does not start without the hybrid KV cache manager",
            "its layers cannot all be counted as full attention: recurrent layers or two window sizes are in the way, "
            "and vLLM stops at start-up",
            "leave --disable-hybrid-kv-cache-manager out (older releases also turn the manager off for a KV connector)",
        )
    return promoted


def _has_two_reaches(caches: Sequence[LayerCache]) -> bool:
    """Two window or chunk sizes among plain attention layers, which vLLM's merge of the promoted layers rejects."""
    reaches = [
        {cache.bound_tokens for cache in caches if cache.kind == kind} for kind in ("sliding_window", "chunked_local")
    ]
    return all(cache.kind != "mla" for cache in caches) and any(len(found) > 1 for found in reaches)


def _full_allocation(caches: Sequence[LayerCache], release: Release) -> CacheGroup:
    """The fallback for latents beside windows that cannot share a page: windows are allocated like full attention."""
    kinds = {cache.kind for cache in caches}
    promoted = _as_full_attention(caches) if "sliding_window" in kinds and "chunked_local" not in kinds else None
    if promoted is None:
        raise _cannot_unify(caches, release)
    return CacheGroup(tuple(range(len(promoted))), promoted)


def _as_full_attention(caches: Sequence[LayerCache]) -> tuple[LayerCache, ...] | None:
    """None when the layers are still of several families."""
    full_sizes = {cache.block_size for cache in caches if cache.is_full_attention}
    common = full_sizes.pop() if len(full_sizes) == 1 else None
    promoted = tuple(
        _promote(cache, common or cache.block_size) if cache.kind in ("sliding_window", "chunked_local") else cache
        for cache in caches
    )
    has_full = any(cache.is_full_attention for cache in caches)
    return promoted if has_full and _is_one_family(promoted) else None


def _promote(cache: LayerCache, block_size: int) -> LayerCache:
    padded = cache.padded_page_bytes
    if padded is not None:
        padded = max(padded, block_size * cache.token_bytes)
    return replace(cache, kind="full_attention", block_size=block_size, bound_tokens=None, padded_page_bytes=padded)
