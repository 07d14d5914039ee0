"""DeepSeek-V4's cache: compressed vectors, windows of whole ones and compressor states in blocks of one pool.

Read in vLLM 0.20 to 0.33 (`models/deepseek_v4`, `v1/core/kv_cache_utils.py`), for FlashMLA's rows of 584 bytes, every page a
multiple of 576. Blocks differ in tokens: 256 for what is compressed, 64 for windows, 4 and 8 for states. What grows with the
prompt makes one group; windows and states are dealt into groups of as many layers as it has of its commonest page.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from longreach.errors import UnknownModelError, UsageError
from longreach.model.spec import CompressedCache
from longreach.sizing.groups import CacheGroup
from longreach.sizing.kv_plan import KvPlan
from longreach.sizing.pages import LayerCache, RequestShape
from longreach.sizing.values import KvCacheRequest
from longreach.units import ceil_div, round_up

_ROW_BYTES = 584  # 448 fp8 values, 64 bfloat16 of rope, 8 scales
_PAGE_MULTIPLE = 576
_BLOCK_TOKENS = 256
_WINDOW_BLOCK_TOKENS = 64
_STATE_BLOCK_TOKENS = {4: 4, 128: 8}  # by compression ratio
_STATE_VALUE_BYTES = 4
_INDEX_RATIO = 4  # the layers that also keep index keys, in overlapping runs of tokens
_INDEX_SCALE_BYTES = 4  # for 128 keys
_DTYPES = ("auto", "fp8", "fp8_ds_mla")


def plan_compressed(request: KvCacheRequest, compressed: CompressedCache, shape: RequestShape) -> KvPlan:
    """Lay out the cache of such a model. Raises UnknownModelError for what is not modelled."""
    _check(request)
    release = request.release
    buckets = _buckets(compressed, use_drafts=request.use_draft_layers)
    if release.compressed_layout != "overlaid":
        buckets = [buckets[0], *(_pad(bucket, buckets[0]) for bucket in buckets[1:])]
    repeats = _repeats([_commonest(bucket) for bucket in buckets])
    groups = tuple(_as_groups(buckets, repeats))
    tuple_bytes = sum({cache.page_size_bytes for cache in buckets[0]}) * max(
        _commonest(group.caches) for group in groups
    )
    bytes_per_block = {
        "tuples": tuple_bytes,
        "slots": _slot_bytes(groups),
        "overlaid": max(group.bytes_per_block() for group in groups),
    }[release.compressed_layout or "overlaid"]
    return KvPlan(
        groups=groups,
        stage_block_bytes=(bytes_per_block,),
        stage_caches=(),
        shape=shape,
        release=release,
        estimate_reason=request.model.kv_estimate_reason,
        checked_block_bytes=tuple_bytes if release.compressed_check_in_tuples else None,
        weighs_groups=release.compressed_groups_weighed,
    )


def _check(request: KvCacheRequest) -> None:
    release = request.release
    if release.compressed_layout is None:
        raise UnknownModelError(
            f"vLLM {release.version} does not know compressed attention",
            "DeepSeek-V4 comes with 0.20",
            "vLLM 0.20 or later",
        )
    if request.kv_cache_dtype not in _DTYPES:
        raise UnknownModelError(
            f"compressed attention in {request.kv_cache_dtype} is not modelled",
            f"its rows are known for {', '.join(_DTYPES)}",
            "--kv-cache-dtype fp8, or auto",
        )
    if request.pp_size > 1 or request.dcp_size > 1:
        raise UsageError(
            "compressed attention split by pipeline or context is not modelled",
            "how its groups fall on stages and ranks is not known",
            "--pp 1 and --dcp 1",
        )


def _buckets(compressed: CompressedCache, *, use_drafts: bool) -> list[tuple[LayerCache, ...]]:
    """What grows with the prompt, windows, states of ratio 4, states of ratio 128; layers of a bucket in model order."""
    ratios = compressed.ratios + (compressed.draft_ratios if use_drafts else ())
    growing: list[LayerCache] = []
    states: dict[int, list[LayerCache]] = {}
    for ratio in ratios:
        if ratio <= 1:
            continue
        if ratio not in _STATE_BLOCK_TOKENS:
            raise UnknownModelError(
                f"a compression ratio of {ratio} is not understood",
                f"vLLM has blocks for {', '.join(map(str, _STATE_BLOCK_TOKENS))}",
                "none: longreach does not know how vLLM keeps its states",
            )
        growing.append(_vectors(ratio, _ROW_BYTES))
        states.setdefault(ratio, []).append(_state(ratio, compressed.head_dim))
        if ratio == _INDEX_RATIO:
            growing.append(_vectors(ratio, compressed.index_head_dim + _INDEX_SCALE_BYTES))
            states[ratio].append(_state(ratio, compressed.index_head_dim))
    window = _page(
        LayerCache("sliding_window", _WINDOW_BLOCK_TOKENS, _ROW_BYTES, bound_tokens=compressed.window_tokens)
    )
    return [tuple(growing), (window,) * len(ratios), *(tuple(states[ratio]) for ratio in sorted(states))]


def _vectors(ratio: int, row_bytes: int) -> LayerCache:
    return _page(LayerCache("mla", _BLOCK_TOKENS, row_bytes, tokens_per_state=ratio))


def _state(ratio: int, width: int) -> LayerCache:
    """Value and score of each open token; runs of ratio 4 overlap, so that two of them are open."""
    runs = 2 if ratio == _INDEX_RATIO else 1
    row_bytes = 2 * runs * width * _STATE_VALUE_BYTES
    return _page(LayerCache("sliding_window", _STATE_BLOCK_TOKENS[ratio], row_bytes, bound_tokens=runs * ratio))


def _page(cache: LayerCache) -> LayerCache:
    return replace(cache, padded_page_bytes=round_up(cache.unpadded_page_bytes, _PAGE_MULTIPLE))


def _pad(bucket: Sequence[LayerCache], growing: Sequence[LayerCache]) -> tuple[LayerCache, ...]:
    """Pages of windows and states take the next larger size among those that grow."""
    sizes = {cache.page_size_bytes for cache in growing}
    return tuple(
        replace(cache, padded_page_bytes=min(size for size in sizes if size >= cache.page_size_bytes))
        for cache in bucket
    )


def _commonest(caches: Sequence[LayerCache]) -> int:
    return max(Counter(cache.page_size_bytes for cache in caches).values())


def _repeats(counts: Sequence[int]) -> int:
    """Layers of one page size in a group: at least the growing bucket's, else what leaves least unused (the larger of equals)."""
    return min(range(counts[0], max(counts) + 1), key=lambda size: (sum(-count % size for count in counts), -size))


def _as_groups(buckets: Sequence[tuple[LayerCache, ...]], repeats: int) -> list[CacheGroup]:
    groups, first = [], 0
    for place, bucket in enumerate(buckets):
        count = _commonest(bucket)
        runs = len(bucket) // count if place else 1  # layers of different pages stay together
        num_groups = ceil_div(count, repeats) if place else 1
        layers = [tuple(range(start, start + runs)) for start in range(0, len(bucket), runs)]
        for number in range(num_groups):
            dealt = [position for layer in layers[number::num_groups] for position in layer]
            groups.append(CacheGroup(tuple(first + position for position in dealt), tuple(bucket[p] for p in dealt)))
        first += len(bucket)
    return groups


def _slot_bytes(groups: Sequence[CacheGroup]) -> int:
    slots: Counter[int] = Counter()
    for group in groups:
        slots |= Counter(cache.page_size_bytes for cache in group.caches)  # the most of each size
    return sum(size * count for size, count in slots.items())
