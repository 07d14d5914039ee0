"""Where one GPU's bytes go: weights, what runs beside them, and what is left to the KV cache."""

from dataclasses import dataclass

from longreach.hardware.spec import Machine
from longreach.model.spec import ModelSpec, QuantizationName
from longreach.sizing.values import MemoryBudget
from longreach.units import GIB, Certainty

_BITS: dict[QuantizationName, tuple[float, float]] = {
    "none": (16, 16),
    "fp8": (8, 8.6),
    "fp8-weight-only": (8, 8.6),
    "w8a8-int8": (8, 8.6),
    "w4a16": (4.1, 4.7),
    "w4a8-int8": (4.1, 4.7),
    "nvfp4": (4.5, 5.0),
    "mxfp4": (4.25, 4.7),
}
_CONTEXT_BYTES = (GIB // 2, GIB + GIB // 2)  # CUDA context, NCCL, CUDA graphs


@dataclass(frozen=True, slots=True)
class MemoryRequest:
    """What decides one GPU's budget. Sizes in bytes."""

    model: ModelSpec
    machine: Machine
    tp_size: int
    pp_size: int
    max_num_batched_tokens: int
    max_num_seqs: int
    rope_table_bytes: int
    gpu_memory_utilization: float
    kv_cache_memory_bytes: int | None = None
    mm_ipc_gpu_memory_bytes: int = 0
    use_draft_layers: bool = False


def budget_memory(request: MemoryRequest) -> MemoryBudget:
    """The budget of one GPU; what cannot be known is None."""
    gpu = request.machine.gpu
    total = (
        (gpu.cuda_memory_bytes or ((gpu.memory_bytes, gpu.memory_bytes) if gpu.memory_bytes else None)) if gpu else None
    )
    weights, certainty, source = _weights(request)
    activations = request.max_num_batched_tokens * request.model.hidden_size * 2
    other = tuple(
        context + request.rope_table_bytes + factor * activations
        for context, factor in zip(_CONTEXT_BYTES, (4, 16), strict=True)
    )
    left = _left(request, total, weights, (other[0], other[1]))
    explicit = request.kv_cache_memory_bytes
    kv = left
    if explicit is not None:
        kv = (explicit - request.mm_ipc_gpu_memory_bytes,) * 2
    return MemoryBudget(
        gpu_total_bytes=total,
        weights_bytes=weights,
        weights_certainty=certainty,
        weights_source=source,
        other_bytes=(other[0], other[1]),
        rope_table_bytes=request.rope_table_bytes,
        kv_bytes=kv,
        kv_certainty="exact" if explicit is not None else "range" if kv else "unknown",
        fits=None if left is None else left[1] >= max(explicit or 0, 1),
    )


def _weights(request: MemoryRequest) -> tuple[tuple[int, int] | None, Certainty, str]:
    model, world = request.model, request.tp_size * request.pp_size
    if model.weights.total_bytes is not None:
        share = model.weights.total_bytes // world
        return (share, share), "estimate", model.weights.source
    bits = _BITS.get(model.weights.quantization)
    if model.parameters.total is None or bits is None:
        return None, "unknown", "parameters or weight format are unknown"
    wide = model.parameters.embedding * 2
    rest = model.parameters.total - model.parameters.embedding
    low, high = (int((rest * bit / 8 + wide) / world) for bit in bits)
    return (low, high), "range", f"{model.parameters.total:,} parameters at {bits[0]:g} to {bits[1]:g} bits"


def _left(
    request: MemoryRequest, total: tuple[int, int] | None, weights: tuple[int, int] | None, other: tuple[int, int]
) -> tuple[int, int] | None:
    if total is None or weights is None:
        return None
    low = int(total[0] * request.gpu_memory_utilization) - weights[1] - other[1] - request.mm_ipc_gpu_memory_bytes
    high = int(total[1] * request.gpu_memory_utilization) - weights[0] - other[0] - request.mm_ipc_gpu_memory_bytes
    return low, high
