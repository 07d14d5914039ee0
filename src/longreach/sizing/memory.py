"""Where one GPU's memory goes: weights, KV cache, and the rest (activations, sampling, graphs, libraries, rope table).

Only `--kv-cache-memory-bytes` makes the KV size exact. Under `--gpu-memory-utilization` vLLM measures the rest by running the
model, which nothing can do beforehand: the range here is calibrated on published start-up logs (docs/sizing.md).
"""

from dataclasses import dataclass

from longreach.hardware.spec import Machine
from longreach.model.spec import ModelSpec
from longreach.sizing.values import MemoryBudget
from longreach.sizing.weights import WeightsPlan, plan_weights
from longreach.units import GIB, Certainty

ByteRange = tuple[int, int]

_LIBRARIES = (0.1 * GIB, 0.6 * GIB)  # CUDA context beyond what the driver hides, kernel workspaces
_COLLECTIVES = (0.0, 1.0 * GIB)  # NCCL and all-reduce buffers, with more than one GPU
_GRAPHS = (0.0, 1.2 * GIB)
_TOWERS = (0.0, 1.5 * GIB)  # a vision or audio encoder's pass over its largest input
_BODY_VALUES = (0.5, 1.6)  # copies of a batch's activations alive at once
_STREAM_VALUES = (2.0, 4.0)  # residual streams beside them, in hidden sizes
_LOGIT_COPIES = (2.0, 8.5)  # of float32 logits of every sequence, while sampling is warmed up
_TYPICAL_WIDTH = 13.0  # matrix columns of a layer over its hidden size, where active parameters are not known
_ACTIVATION_BYTES = 2
_LOGIT_BYTES = 4


@dataclass(frozen=True, slots=True)
class MemoryRequest:
    """What decides one GPU's budget."""

    model: ModelSpec
    machine: Machine
    tp_size: int
    pp_size: int
    max_num_batched_tokens: int
    max_num_seqs: int
    rope_table_bytes: int = 0
    gpu_memory_utilization: float = 0.92
    kv_cache_memory_bytes: int | None = None  # per GPU, as the flag states it
    mm_ipc_gpu_memory_bytes: int = 0  # taken out of KV
    use_draft_layers: bool = False


def budget_memory(request: MemoryRequest) -> MemoryBudget:
    """Divide one GPU's memory; every figure with its certainty."""
    total = _gpu_total_bytes(request.machine)
    weights = plan_weights(request.model, request.tp_size, request.pp_size, use_draft_layers=request.use_draft_layers)
    other = estimate_other_bytes(request)
    kv_bytes, certainty = _kv_bytes(request, total, weights.bytes_per_gpu, other)
    return MemoryBudget(
        gpu_total_bytes=total,
        weights_bytes=weights.bytes_per_gpu,
        weights_certainty=weights.certainty,
        weights_source=weights.source,
        other_bytes=other,
        rope_table_bytes=request.rope_table_bytes,
        kv_bytes=kv_bytes,
        kv_certainty=certainty,
        fits=_fits(request, total, weights, other),
    )


def estimate_other_bytes(request: MemoryRequest) -> ByteRange:
    """Everything but weights and KV, least and most: libraries, collectives, graphs, activations, sampling, rope table."""
    model = request.model
    batch = request.max_num_batched_tokens * _ACTIVATION_BYTES
    logits = min(request.max_num_seqs, request.max_num_batched_tokens) * model.vocab_size * _LOGIT_BYTES
    width = _layer_width(model) / request.tp_size
    num_gpus = request.tp_size * request.pp_size

    def end(side: int) -> int:
        size = _LIBRARIES[side] + _GRAPHS[side]
        size += _COLLECTIVES[side] if num_gpus > 1 else 0
        size += _TOWERS[side] if model.is_multimodal else 0
        size += _BODY_VALUES[side] * batch * (width + _STREAM_VALUES[side] * model.hidden_size)
        size += _LOGIT_COPIES[side] * logits
        return int(size + (request.rope_table_bytes if side else 0))

    return end(0), end(1)


def _layer_width(model: ModelSpec) -> float:
    """Columns of a layer's matrices taken together: active parameters over layers and hidden size."""
    if model.parameters.active is None:
        return _TYPICAL_WIDTH * model.hidden_size
    return model.parameters.active / model.num_layers / model.hidden_size


def _gpu_total_bytes(machine: Machine) -> ByteRange | None:
    """As CUDA sees it; where only the driver's figure is known, CUDA sees 250 to 770 MiB less."""
    if machine.gpu is None:
        return None
    if machine.gpu.cuda_memory_bytes is not None:
        return machine.gpu.cuda_memory_bytes
    total = machine.gpu.memory_bytes
    if total is None:
        return None
    return (total - 770 * 2**20, total - 250 * 2**20) if machine.gpu.vendor.lower() == "nvidia" else (total, total)


def _kv_bytes(
    request: MemoryRequest, total: ByteRange | None, weights: ByteRange | None, other: ByteRange
) -> tuple[ByteRange | None, Certainty]:
    if request.kv_cache_memory_bytes is not None:
        left = request.kv_cache_memory_bytes - request.mm_ipc_gpu_memory_bytes
        return (left, left), "exact"
    if total is None or weights is None:
        return None, "unknown"
    low = total[0] * request.gpu_memory_utilization - weights[1] - other[1]
    high = total[1] * request.gpu_memory_utilization - weights[0] - other[0]
    taken = request.mm_ipc_gpu_memory_bytes
    return (int(low) - taken, int(high) - taken), "range"


def _fits(request: MemoryRequest, total: ByteRange | None, weights: WeightsPlan, other: ByteRange) -> bool | None:
    """Whether weights, the rest and the KV asked for share the card: True and False are sure, None is not."""
    if total is None or weights.bytes_per_gpu is None:
        return None
    asked = request.kv_cache_memory_bytes or 0
    if weights.bytes_per_gpu[1] + other[1] + asked <= total[0]:
        return True
    if weights.bytes_per_gpu[0] + other[0] + asked > total[1]:
        return False
    return None
