"""The model and the machine as a plan reports them."""

from collections import Counter

from longreach.hardware.spec import Machine
from longreach.model.spec import (
    AttentionLayer,
    CrossAttentionLayer,
    GatedDeltaNetLayer,
    IndexerLayer,
    KdaLayer,
    KvLayer,
    LinearAttentionLayer,
    Mamba1Layer,
    Mamba2Layer,
    MlaLayer,
    ModelSpec,
    ShortConvLayer,
)
from longreach.plan.values import PlannedMachine, PlannedModel
from longreach.sizing.formats import get_kv_format, token_bytes_per_gpu

_KINDS: dict[type, str] = {
    MlaLayer: "mla",
    IndexerLayer: "sparse_indexer",
    CrossAttentionLayer: "cross_attention",
    GatedDeltaNetLayer: "gated_delta",
    KdaLayer: "kda",
    Mamba2Layer: "mamba2",
    Mamba1Layer: "mamba1",
    ShortConvLayer: "short_conv",
    LinearAttentionLayer: "linear_attention",
}
_GROWING = ("full_attention", "mla", "sparse_indexer")


def layer_kind(layer: KvLayer) -> str:
    """`full_attention`, `sliding_attention`, `mla`, `gated_delta`, ..."""
    if not isinstance(layer, AttentionLayer):
        return _KINDS[type(layer)]
    if layer.window_tokens is not None:
        return "sliding_attention"
    return "full_attention" if layer.chunk_tokens is None else "chunked_attention"


def kv_bytes_per_token(model: ModelSpec, kv_cache_dtype: str) -> int:
    """Bytes that one more token adds, whole model without replication: layers that grow with the prompt only."""
    kv_format = get_kv_format(kv_cache_dtype, model.dtype)
    growing = [layer for layer in model.layers if layer_kind(layer) in _GROWING]
    return sum(
        token_bytes_per_gpu(layer, kv_format, 1)
        for layer in growing
        if isinstance(layer, AttentionLayer | MlaLayer | IndexerLayer)
    )


def summarize_model(model: ModelSpec, reference: str, kv_bytes_per_token: int | None) -> PlannedModel:
    """`kv_bytes_per_token` is of the whole model at the planned KV dtype, layers that grow with the prompt only."""
    return PlannedModel(
        name=model.name,
        reference=reference,
        architecture=model.architecture,
        num_layers=model.num_layers,
        layer_kinds=dict(Counter(layer_kind(layer) for layer in model.layers)),
        num_kv_heads=model.num_kv_heads,
        head_dim=model.head_dim,
        native_context_tokens=model.native_context_tokens or model.max_position_embeddings,
        kv_bytes_per_token=kv_bytes_per_token,
        total_parameters=model.parameters.total,
        active_parameters=model.parameters.active,
        quantization=model.weights.quantization,
        is_hybrid=model.is_hybrid,
        is_multimodal=model.is_multimodal,
        sources=model.sources,
    )


def summarize_machine(machine: Machine) -> PlannedMachine:
    """The machine in names and bytes."""
    return PlannedMachine(
        gpu=machine.gpu.name if machine.gpu else None,
        num_gpus=machine.num_gpus,
        gpu_memory_bytes=machine.gpu.memory_bytes if machine.gpu else None,
        link=machine.link.name if machine.link else None,
        ram_bytes=machine.ram_bytes,
        num_numa_nodes=machine.num_numa_nodes,
        device_type=machine.device_type,
        assumptions=machine.assumptions,
    )
