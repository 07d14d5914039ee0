"""vLLM's own count of the GPU KV cache: blocks, printed tokens, concurrency, and whether the engine starts.

bytes_per_block = max over groups of the page bytes of the layers a worker holds
num_blocks      = available bytes // bytes_per_block, least over the pipeline stages
per_request     = sum over groups of the blocks of one request of max_model_len
concurrency     = num_blocks / per_request        (a float division)
tokens          = int(concurrency * max_model_len) (a float product, truncated)
it starts when per_request * bytes_per_block fits what is available, one block less where the null block is reserved
"""

from collections.abc import Callable
from dataclasses import dataclass

from longreach.errors import UsageError
from longreach.model.spec import IndexerLayer
from longreach.sizing.groups import CacheGroup, group_layers
from longreach.sizing.layers import LayerPlan, plan_layers
from longreach.sizing.pages import RequestShape, blocks_for_tokens
from longreach.sizing.stages import split_stages
from longreach.sizing.values import KvCacheRequest, KvCapacity, KvGroup
from longreach.units import GIB

LONGEST_SEARCHED_TOKENS = 2**31 - 1
"""Where the search for the largest length ends: a cache that does not grow with the prompt has no largest length."""


@dataclass(frozen=True, slots=True)
class KvPlan:
    """The layout, decided by the configuration alone; lengths and bytes are counted against it."""

    groups: tuple[CacheGroup, ...]
    stage_block_bytes: tuple[int, ...]  # bytes per block on each pipeline stage
    shape: RequestShape
    null_blocks: int  # blocks that a start needs beyond the request's own
    estimate_reason: str | None

    @property
    def bytes_per_block(self) -> int:
        """On the stage that pays most: it limits the pool."""
        return max(self.stage_block_bytes)

    def blocks_per_request(self, num_tokens: int) -> int:
        """Blocks of one request over all groups, those of other stages included: they share one table of blocks."""
        return sum(blocks_for_tokens(group.representative, num_tokens, self.shape) for group in self.groups)

    def needed_bytes(self, num_tokens: int) -> int:
        """Least bytes per GPU with which an engine of this max_model_len starts."""
        return (self.blocks_per_request(num_tokens) + self.null_blocks) * self.bytes_per_block


def size_kv_cache(request: KvCacheRequest) -> KvCapacity:
    """Count the KV cache of one instance as its vLLM release does. Raises UsageError and UnknownModelError."""
    plan = plan_kv_cache(request)
    per_request = plan.blocks_per_request(request.max_model_len)
    num_blocks = max(0, request.available_bytes_per_gpu // plan.bytes_per_block)
    max_concurrency = num_blocks / per_request
    refusal = _refusal(plan, request)
    return KvCapacity(
        certainty="exact" if plan.estimate_reason is None else "estimate",
        block_size=min(group.representative.block_size for group in plan.groups),
        bytes_per_block=plan.bytes_per_block,
        num_blocks=num_blocks,
        blocks_per_request=per_request,
        kv_capacity_tokens=int(max_concurrency * request.max_model_len),
        max_concurrency=max_concurrency,
        needed_bytes_per_gpu=plan.needed_bytes(request.max_model_len),
        available_bytes_per_gpu=request.available_bytes_per_gpu,
        largest_max_model_len=_largest_length(plan, request.available_bytes_per_gpu),
        starts=refusal is None,
        groups=tuple(_describe(group, request.max_model_len, plan.shape) for group in plan.groups),
        refusal=refusal,
        estimate_reason=plan.estimate_reason,
    )


def concurrency_at(request: KvCacheRequest, num_tokens: int) -> float:
    """How many requests of `num_tokens` the pool holds at once, counted as vLLM counts its max_concurrency."""
    plan = plan_kv_cache(request)
    num_blocks = max(0, request.available_bytes_per_gpu // plan.bytes_per_block)
    return num_blocks / plan.blocks_per_request(num_tokens)


def plan_kv_cache(request: KvCacheRequest) -> KvPlan:
    """Lay out the cache: layers, groups, bytes of a block on each stage."""
    _check_request(request)
    layers = plan_layers(request)
    groups = group_layers(layers.caches, hybrid_manager=request.hybrid_kv_cache_manager)
    _check_context_parallel(groups, request.dcp_size)
    stages = split_stages(request.model, layers.places, request.pp_size)
    return KvPlan(
        groups=groups,
        stage_block_bytes=tuple(
            max(group.bytes_per_block(frozenset(stage).__contains__) for group in groups) for stage in stages
        ),
        shape=_request_shape(request),
        null_blocks=int(request.release.null_block_reserved),
        estimate_reason=_estimate_reason(request, layers),
    )


def _request_shape(request: KvCacheRequest) -> RequestShape:
    batches = request.pp_size
    if request.async_scheduling:  # the V1 runner overlaps no batch once a pipeline does
        batches = request.pp_size + 1 if request.model_runner_v2 or request.pp_size == 1 else request.pp_size
    drafts = sum(not isinstance(layer, IndexerLayer) for layer in request.model.draft_layers)
    chained = request.use_draft_layers and min(drafts, request.num_speculative_tokens) > 1
    return RequestShape(
        dcp_size=request.dcp_size,
        in_flight_tokens=batches * request.max_num_batched_tokens,
        lookahead_tokens=request.num_speculative_tokens - 1 if chained else 0,
    )


def _refusal(plan: KvPlan, request: KvCacheRequest) -> str | None:
    """As vLLM: check the workers in order and stop at the first that cannot hold one request."""
    available = request.available_bytes_per_gpu
    needed_blocks = plan.blocks_per_request(request.max_model_len)
    for block_bytes in plan.stage_block_bytes:
        usable = available - plan.null_blocks * block_bytes
        if usable <= 0:
            return "No available memory for the cache blocks."
        needed = needed_blocks * block_bytes
        if needed > usable:
            return _refusal_sentence(
                request.max_model_len, needed, usable, _estimate(plan, request, usable // block_bytes)
            )
    return None


def _refusal_sentence(max_model_len: int, needed: int, usable: int, estimate: int) -> str:
    advice = (
        f" Based on the available memory, the estimated maximum model length is {estimate}." if estimate > 0 else ""
    )
    return (
        f"To serve at least one request with the model's max seq len ({max_model_len}), ({_gib(needed)} GiB KV cache is "
        f"needed, which is larger than the available KV cache memory ({_gib(usable)} GiB).{advice}"
    )


def _estimate(plan: KvPlan, request: KvCacheRequest, usable_blocks: int) -> int:
    """The length vLLM proposes; never more than was asked for."""
    return _largest(lambda tokens: plan.blocks_per_request(tokens) <= usable_blocks, request.max_model_len)


def _largest_length(plan: KvPlan, available: int) -> int:
    usable_blocks = available // plan.bytes_per_block - plan.null_blocks
    return _largest(lambda tokens: plan.blocks_per_request(tokens) <= usable_blocks, LONGEST_SEARCHED_TOKENS)


def _largest(fits: Callable[[int], bool], limit: int) -> int:
    """The largest length up to `limit` that fits, 0 when not even one token does. Blocks never fall with the length."""
    if not fits(1):
        return 0
    low, high = 1, 2
    while high < limit and fits(high):
        low, high = high, high * 2
    high = min(high, limit + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


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
    if request.pp_size > 1 and not layers.places.is_exact:
        return "which pipeline stage holds which layer is not recorded for this model; its layers are spread evenly"
    return None


def _check_request(request: KvCacheRequest) -> None:
    model = request.model
    for option, value in (
        ("--max-model-len", request.max_model_len),
        ("--tp", request.tp_size),
        ("--pp", request.pp_size),
        ("--dcp", request.dcp_size),
        ("--block-size", request.block_size or request.default_block_size),
    ):
        if value < 1:
            raise UsageError(f"{option} {value} is not a size", "it must be at least 1", f"{option} 1 or more")
    if model.num_attention_heads % request.tp_size:
        raise UsageError(
            f"tensor parallel size {request.tp_size} does not divide {model.num_attention_heads} attention heads",
            "vLLM splits the heads of every layer evenly and stops otherwise",
            f"--tp {_largest_divisor(model.num_attention_heads, request.tp_size)}",
        )
    if request.pp_size > model.num_layers:
        raise UsageError(
            f"pipeline parallel size {request.pp_size} exceeds {model.num_layers} decoder layers",
            "every stage holds at least one layer",
            f"--pp {model.num_layers} or less",
        )
    if request.tp_size % request.dcp_size:
        raise UsageError(
            f"decode context parallel size {request.dcp_size} does not divide tensor parallel size {request.tp_size}",
            "DCP shares the KV of one TP group among its GPUs",
            f"--dcp {_largest_divisor(request.tp_size, request.dcp_size)}",
        )


def _check_context_parallel(groups: tuple[CacheGroup, ...], dcp_size: int) -> None:
    if dcp_size > 1 and any(group.representative.kind == "sliding_window" for group in groups):
        raise UsageError(
            f"decode context parallel size {dcp_size} does not work with sliding-window layers",
            "vLLM stops with 'DCP not support sliding window.'",
            "--dcp 1",
        )


def _largest_divisor(value: int, limit: int) -> int:
    return max(size for size in range(1, min(value, limit) + 1) if value % size == 0)


def _gib(size_bytes: int) -> str:
    return f"{round(size_bytes / GIB, 2)}"  # vLLM's rounding: "10.0", "22.89"
