"""vLLM's own count of the GPU KV cache: blocks, printed tokens, concurrency, and whether the engine starts.

bytes_per_block = max over groups of the page bytes of the layers a worker holds
num_blocks      = available bytes // bytes_per_block, least over the pipeline stages
per_request     = sum over groups of the blocks of one request of max_model_len
concurrency     = num_blocks / per_request        (a float division)
tokens          = int(concurrency * max_model_len) (a float product, truncated)
it starts when per_request * bytes_per_block fits what is available, one block less where the null block is reserved

Older releases print and check otherwise; `startup` holds what differs in the check.
"""

from collections.abc import Sequence

from longreach.engine.release import Release
from longreach.model.repeats import tally
from longreach.model.spec import AttentionLayer, IndexerLayer, RecurrentLayer
from longreach.sizing.compressed import plan_compressed
from longreach.sizing.groups import CacheGroup, group_layers
from longreach.sizing.kv_plan import KvPlan
from longreach.sizing.layers import LayerPlan, plan_layers
from longreach.sizing.pages import RequestShape, blocks_for_tokens
from longreach.sizing.request_checks import check_context_parallel, check_request
from longreach.sizing.stages import split_stages
from longreach.sizing.startup import find_refusal, largest_length, needed_bytes
from longreach.sizing.values import KvCacheRequest, KvCapacity, KvGroup


def size_kv_cache(request: KvCacheRequest) -> KvCapacity:
    """Count the KV cache of one instance as its vLLM release does. Raises UsageError and UnknownModelError."""
    plan = plan_kv_cache(request)
    available, length = request.available_bytes_per_gpu, request.max_model_len
    refusal = find_refusal(plan, length, available)
    tokens, concurrency = _report(plan, request)
    return KvCapacity(
        certainty="exact" if plan.estimate_reason is None else "estimate",
        block_size=plan.block_size,
        bytes_per_block=plan.bytes_per_block,
        num_blocks=plan.num_blocks(available),
        blocks_per_request=plan.blocks_per_request(length),
        kv_capacity_tokens=tokens,
        max_concurrency=concurrency,
        needed_bytes_per_gpu=needed_bytes(plan, length),
        available_bytes_per_gpu=available,
        largest_max_model_len=largest_length(plan, available),
        starts=refusal is None,
        groups=tuple(_describe(group, length, plan.shape) for group in plan.groups),
        refusal=refusal,
        estimate_reason=plan.estimate_reason,
    )


def _report(plan: KvPlan, request: KvCacheRequest) -> tuple[int, float]:
    """(tokens, concurrency) as the release prints them; in float arithmetic, as the engine's."""
    length, release = request.max_model_len, request.release
    num_blocks = plan.num_blocks(request.available_bytes_per_gpu)
    concurrency = num_blocks / plan.blocks_for_concurrency(length)
    if release.tokens_from_concurrency:
        return int(concurrency * length), concurrency
    tokens = num_blocks // len(plan.groups) * plan.block_size * request.dcp_size * request.pcp_size
    return tokens, concurrency if release.concurrency_in_blocks else tokens / length


def concurrency_at(request: KvCacheRequest, num_tokens: int) -> float:
    """How many requests of `num_tokens` the pool holds at once, counted as vLLM counts its max_concurrency."""
    plan = plan_kv_cache(request)
    return plan.num_blocks(request.available_bytes_per_gpu) / plan.blocks_for_concurrency(num_tokens)


def plan_kv_cache(request: KvCacheRequest) -> KvPlan:
    """Lay out the cache: layers, groups, bytes of a block on each stage."""
    check_request(request)
    if request.model.compressed is not None:
        return plan_compressed(request, request.model.compressed, _request_shape(request))
    layers = plan_layers(request)
    groups = group_layers(layers.caches, request.release, hybrid_manager=_uses_hybrid_manager(request))
    checked_early = request.release.startup_check == "layers"  # before windows may have become full attention
    counted = layers.caches if checked_early else [group.representative for group in groups]
    check_context_parallel(counted, request.dcp_size)
    stages = split_stages(request.model, layers.places, request.pp_size)
    return KvPlan(
        groups=groups,
        stage_block_bytes=tuple(_stage_block_bytes(groups, stage, request.release) for stage in stages),
        stage_caches=tuple(tuple(tally(layers.caches[place] for place in stage)) for stage in stages),
        shape=_request_shape(request),
        release=request.release,
        estimate_reason=_estimate_reason(request, layers),
    )


def _stage_block_bytes(groups: Sequence[CacheGroup], stage: Sequence[int], release: Release) -> int:
    is_mixed = len({cache.page_size_bytes for cache in groups[0].caches}) > 1
    if is_mixed and not release.mixed_group_splits_by_stage:
        return groups[0].bytes_per_block()
    return max(group.bytes_per_block(frozenset(stage).__contains__) for group in groups)


def _uses_hybrid_manager(request: KvCacheRequest) -> bool:
    release = request.release
    if request.has_kv_connector and release.connector_disables_hybrid_manager:
        return False
    has_chunks = any(
        isinstance(layer, AttentionLayer) and layer.chunk_tokens is not None for layer in request.model.layers
    )
    if has_chunks and release.chunked_local_counted and not release.chunked_local_frees_blocks:
        return False
    return release.hybrid_kv_cache_manager and request.hybrid_kv_cache_manager


def _request_shape(request: KvCacheRequest) -> RequestShape:
    release, batches = request.release, request.pp_size
    if not release.window_keeps_in_flight_batches:
        batches = 1
    elif request.async_scheduling:  # the V1 runner overlaps no batch once a pipeline does
        batches = request.pp_size + 1 if request.model_runner_v2 or request.pp_size == 1 else request.pp_size
    drafts = sum(not isinstance(layer, IndexerLayer) for layer in request.model.draft_layers)
    chained = (
        release.windows_keep_draft_tokens
        and request.use_draft_layers
        and min(drafts, request.num_speculative_tokens) > 1
    )
    return RequestShape(
        context_parallel_size=request.dcp_size * (request.pcp_size if release.prefill_context_parallel_splits else 1),
        in_flight_tokens=batches * request.max_num_batched_tokens,
        lookahead_tokens=request.num_speculative_tokens - 1 if chained else 0,
    )


def _describe(group: CacheGroup, max_model_len: int, shape: RequestShape) -> KvGroup:
    cache = group.representative
    return KvGroup(
        kind=cache.kind,
        num_layers=len(group.positions),
        block_size=cache.block_size,
        page_size_bytes=max(found.page_size_bytes for found in group.caches),
        blocks_per_request=blocks_for_tokens(cache, max_model_len, shape),
        bytes_per_block=group.bytes_per_block(),
    )


def _estimate_reason(request: KvCacheRequest, layers: LayerPlan) -> str | None:
    if request.model.kv_estimate_reason is not None:
        return request.model.kv_estimate_reason
    if layers.has_boundary_layers:
        return "the block size of a packed KV format beside layers kept at the model's dtype is not confirmed by a run"
    if request.has_unknown_drafter:
        return "the drafter's layers join the pool, and its config is not known: they are not counted"
    has_states = any(isinstance(layer, RecurrentLayer) for layer in request.model.layers)
    if has_states and request.release.states_follow_kv_dtype:
        return f"states in vLLM {request.release.version} are read in its source, and no log or call confirms them"
    if request.pp_size > 1 and not layers.places.is_exact:
        return "which pipeline stage holds which layer is not recorded for this model; its layers are spread evenly"
    return None
