"""From a model's layers to their caches on one GPU."""

from dataclasses import dataclass, replace

from longreach.model.spec import (
    AttentionLayer,
    CrossAttentionLayer,
    IndexerLayer,
    KvLayer,
    MlaLayer,
)
from longreach.sizing.blocks import BlockPlan, plan_blocks, sliding_block_size
from longreach.sizing.formats import KvFormat, get_kv_format, token_bytes_per_gpu
from longreach.sizing.pages import LayerCache
from longreach.sizing.stages import LayerPlaces, locate_layers
from longreach.sizing.state import state_bytes_per_gpu, state_mode, states_per_request
from longreach.sizing.values import KvCacheRequest

_NUM_BOUNDARY_LAYERS = 2  # kept at the model's dtype at each end by turboquant and ultraquant


@dataclass(frozen=True, slots=True)
class LayerPlan:
    """Every layer's cache in vLLM's order: the target's, then the draft's."""

    caches: tuple[LayerCache, ...]
    places: LayerPlaces
    has_boundary_layers: bool  # a packed format that leaves some layers at the model's dtype


def plan_layers(request: KvCacheRequest) -> LayerPlan:
    """Build each layer's cache. Raises UsageError or UnknownModelError when the KV format cannot hold a layer."""
    model = request.model
    kv_format = get_kv_format(resolve_kv_cache_dtype(request), model.dtype)
    places = locate_layers(model, _draft_layers(request))
    skipped = _skipped_names(request, kv_format)
    blocks = plan_blocks(request, kv_format, has_skipped_layers=bool(skipped))
    layers = model.layers + _draft_layers(request)
    plain = get_kv_format("auto", model.dtype)
    built: dict[tuple[int, bool], LayerCache] = {}  # a model repeats a few layers: each is built once
    caches = []
    for layer, index in zip(layers, places.indices, strict=True):
        is_skipped = bool(skipped) and _is_skipped(layer, index, skipped)
        key = id(layer), is_skipped
        if key not in built:
            built[key] = _build(layer, plain if is_skipped else kv_format, blocks, request)
        caches.append(built[key])
    return LayerPlan(tuple(caches), places, kv_format.keeps_boundary_layers and bool(skipped))


def _draft_layers(request: KvCacheRequest) -> tuple[KvLayer, ...]:
    own = request.draft_model.layers if request.draft_model is not None else ()
    return own + (request.model.draft_layers if request.use_draft_layers else ())


def resolve_kv_cache_dtype(request: KvCacheRequest) -> str:
    """`auto` gives way to a KV scheme that the checkpoint brings."""
    if request.kv_cache_dtype == "auto" and request.model.kv_cache_dtype_forced is not None:
        return request.model.kv_cache_dtype_forced
    return request.kv_cache_dtype


def _skipped_names(request: KvCacheRequest, kv_format: KvFormat) -> frozenset[str]:
    """Named by the user, and the boundary layers of a packed format; hybrids have too few attention layers to spare any."""
    skipped = frozenset(request.kv_cache_dtype_skip_layers)
    if not kv_format.keeps_boundary_layers or request.model.is_hybrid:
        return skipped
    total = request.model.num_layers
    spared = min(_NUM_BOUNDARY_LAYERS, total // 2)
    return skipped | {str(index) for index in (*range(spared), *range(total - spared, total))}


def _is_skipped(layer: KvLayer, index: int, skipped: frozenset[str]) -> bool:
    slides = isinstance(layer, AttentionLayer) and layer.window_tokens is not None
    return str(index) in skipped or (slides and "sliding_window" in skipped)


def _build(layer: KvLayer, kv_format: KvFormat, blocks: BlockPlan, request: KvCacheRequest) -> LayerCache:
    match layer:
        case AttentionLayer(window_tokens=int()):
            return _sliding(layer, kv_format, blocks, request)
        case AttentionLayer() | MlaLayer() | IndexerLayer() | CrossAttentionLayer():
            return _attention(layer, kv_format, blocks, request)
        case _:
            mode = state_mode(request)
            return LayerCache(
                "recurrent",
                request.max_model_len if mode == "none" else blocks.state_block_size,
                state_bytes=state_bytes_per_gpu(layer, request),
                states_per_request=states_per_request(layer, request),
                is_state_per_block=mode == "all",
                padded_page_bytes=blocks.state_page_bytes,
                shape=(layer,),
            )


def _attention(
    layer: AttentionLayer | MlaLayer | IndexerLayer | CrossAttentionLayer,
    kv_format: KvFormat,
    blocks: BlockPlan,
    request: KvCacheRequest,
) -> LayerCache:
    token_bytes = _token_bytes(layer, kv_format, request)
    size = blocks.block_size
    match layer:
        case AttentionLayer(chunk_tokens=int() as chunk) if request.release.chunked_local_counted:
            return LayerCache(
                "chunked_local", size, token_bytes, bound_tokens=chunk, shape=_shape(layer, kv_format, request)
            )
        case AttentionLayer():
            return LayerCache("full_attention", size, token_bytes, shape=_shape(layer, kv_format, request))
        case CrossAttentionLayer(max_encoder_tokens=encoder):
            heads = (layer.num_kv_heads, layer.head_dim, kv_format.name)
            return LayerCache("cross_attention", size, token_bytes, bound_tokens=encoder, shape=heads)
        case MlaLayer():
            latent = (layer.kv_lora_rank + layer.rope_head_dim, kv_format.name)
            return LayerCache("mla", size, token_bytes, tokens_per_state=layer.tokens_per_state, shape=latent)
        case IndexerLayer(head_dim=head_dim):
            stored = layer.tokens_per_state
            return LayerCache("mla", size, token_bytes, tokens_per_state=stored, shape=("indexer", head_dim))


def _sliding(layer: AttentionLayer, kv_format: KvFormat, blocks: BlockPlan, request: KvCacheRequest) -> LayerCache:
    token_bytes = _token_bytes(layer, kv_format, request)
    return LayerCache(
        "sliding_window",
        sliding_block_size(kv_format, token_bytes, blocks, request.min_kernel_block_size),
        token_bytes,
        bound_tokens=layer.window_tokens,
        padded_page_bytes=blocks.skip_page_bytes,
        shape=_shape(layer, kv_format, request),
    )


def _token_bytes(
    layer: AttentionLayer | MlaLayer | IndexerLayer | CrossAttentionLayer, kv_format: KvFormat, request: KvCacheRequest
) -> int:
    if isinstance(layer, AttentionLayer):
        slides, release = layer.window_tokens is not None, request.release
        counts = release.windows_count_value_dim if slides else release.full_layers_count_value_dim
        layer = layer if counts else replace(layer, v_head_dim=layer.head_dim)
    return token_bytes_per_gpu(layer, kv_format, request.tp_size)


def _shape(layer: AttentionLayer, kv_format: KvFormat, request: KvCacheRequest) -> tuple[object, ...]:
    return (max(1, layer.num_kv_heads // request.tp_size), layer.head_dim, layer.v_head_dim, kv_format.name)
