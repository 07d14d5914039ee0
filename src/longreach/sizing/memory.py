"""Where one GPU's memory goes: weights, KV cache, and the rest (activations, sampling, graphs, libraries, rope table).

Only `--kv-cache-memory-bytes` makes the KV size exact. Under `--gpu-memory-utilization` vLLM measures the rest by running the
model, which nothing can do beforehand: the range and its best guess are checked against published start-up logs
(docs/accuracy.md). What vLLM subtracts from its share of the card:

    weights + libraries and collectives + peak of the profile run + CUDA graphs (estimated ahead from 0.20 on)
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import hypot

from longreach.engine.release import DEFAULT_RELEASE, Release, get_release
from longreach.hardware.spec import Machine
from longreach.model.spec import ModelSpec, RecurrentLayer
from longreach.sizing.activations import ProfileRun, peak_bytes
from longreach.sizing.values import MemoryBudget
from longreach.sizing.weights import WeightsPlan, plan_weights
from longreach.units import GIB, MIB, Certainty

ByteRange = tuple[int, int]

_DEEP_GEMM_GENERATIONS = ("9", "10")
_V2_LOGIT_COPIES = 1.6  # float32 and model's dtype, a little for the gather over GPUs
_LEAST_OF_A_PASS = 0.5  # some of a pass's activations may share memory that the estimate counts twice
_CAPTURE_SIZES_STEP = 8  # graphs are captured for 1, 2, 4, then every 8 up to 256, then every 16
_CAPTURE_SIZES_MOST = 512


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
    release: Release = field(default_factory=lambda: get_release(DEFAULT_RELEASE))
    enforce_eager: bool = False  # no CUDA graphs
    text_only: bool = False  # --language-model-only, or no image admitted: no encoder is loaded or run


@dataclass(frozen=True, slots=True)
class Spread:
    """One part of the rest in bytes: least, best guess, most."""

    low: float
    middle: float
    high: float


def budget_memory(request: MemoryRequest) -> MemoryBudget:
    """Divide one GPU's memory; every figure with its certainty."""
    total = _gpu_total_bytes(request.machine)
    weights = plan_weights(
        request.model,
        request.tp_size,
        request.pp_size,
        use_draft_layers=request.use_draft_layers,
        text_only=request.text_only,
    )
    other = estimate_other_bytes(request)
    kv_bytes, certainty = _kv_bytes(request, total, weights)
    return MemoryBudget(
        gpu_total_bytes=total,
        weights_bytes=weights.bytes_per_gpu,
        weights_certainty=weights.certainty,
        weights_source=weights.source,
        other_bytes=other,
        rope_table_bytes=request.rope_table_bytes,
        kv_bytes=None if kv_bytes is None else (int(kv_bytes.low), int(kv_bytes.high)),
        kv_certainty=certainty,
        fits=_fits(request, total, weights, other),
        kv_middle_bytes=None if kv_bytes is None else int(kv_bytes.middle),
    )


def estimate_other_bytes(request: MemoryRequest) -> ByteRange:
    """Everything but weights and KV, surely no less and surely no more: nothing runs without half a pass over one batch of
    text, and every part is at its most.
    """
    parts = _parts(request)
    text = replace(_profile_run(request), text_only=True, max_num_seqs=1)
    least = _libraries(request).low + _rope_table(request).low + _LEAST_OF_A_PASS * peak_bytes(text)
    return int(least), int(sum(part.high for part in parts))


def estimate_rest(request: MemoryRequest) -> Spread:
    """Everything but weights and KV, as it is likely: the parts miss independently, so their misses add up as squares."""
    return _sum(_parts(request))


def _parts(request: MemoryRequest) -> tuple[Spread, ...]:
    return (_libraries(request), _collectives(request), _activations(request), _graphs(request), _rope_table(request))


def _libraries(request: MemoryRequest) -> Spread:
    """Kernels that the driver loads and workspaces outside of the model. Unified memory, of which the driver prints no total,
    is shared with the host: what its page cache and processes take or give back meanwhile counts too.
    """
    gpu = request.machine.gpu
    if gpu is not None and gpu.vendor == "NVIDIA" and gpu.memory_bytes is None:
        return Spread(0.0, 0.5 * GIB, 5.5 * GIB)
    return Spread(0.02 * GIB, 0.15 * GIB, 0.5 * GIB)


def _collectives(request: MemoryRequest) -> Spread:
    """Buffers of all-reduce, more where a fabric joins many GPUs; until 0.10 NCCL's own too, which later starts before vLLM looks
    at the free memory first.
    """
    num_gpus, gpu = request.tp_size * request.pp_size, request.machine.gpu
    if num_gpus == 1:
        return Spread(0, 0, 0)
    has_fabric = gpu is not None and gpu.nvlink_kind == "nvswitch"
    middle = (0.2 + 0.1 * num_gpus if has_fabric else 0.4) * GIB
    nccl = 0.5 * GIB if request.release.counts_collectives else 0.0
    return Spread(0.5 * nccl, middle + nccl, 2.2 * middle + 0.5 * GIB + 2 * nccl)


def _activations(request: MemoryRequest) -> Spread:
    peak = peak_bytes(_profile_run(request))
    return Spread(0.8 * peak, peak, 1.4 * peak)


def _profile_run(request: MemoryRequest) -> ProfileRun:
    return ProfileRun(
        model=request.model,
        tp_size=request.tp_size,
        max_num_batched_tokens=request.max_num_batched_tokens,
        max_num_seqs=request.max_num_seqs,
        logit_copies=_logit_copies(request),
        text_only=request.text_only,
        sorts_tokens=_sorts_tokens(request),
    )


def _logit_copies(request: MemoryRequest) -> float:
    """The V2 runner profiles without top-k and top-p: the logits, and the float32 copy that it samples from."""
    model, served = request.model, request.release.model_runner_v2_for
    is_plain = not (model.is_moe or any(isinstance(layer, RecurrentLayer) for layer in model.layers))
    runs_v2 = served == "all" or (served == "dense" and is_plain)
    return _V2_LOGIT_COPIES if runs_v2 else request.release.sampling_logit_copies


def _sorts_tokens(request: MemoryRequest) -> bool:
    """FP8 experts run on DeepGEMM where it has kernels: Hopper and the data-centre Blackwells."""
    gpu = request.machine.gpu
    generation = gpu.compute_capability.partition(".")[0] if gpu is not None else ""
    return request.model.weights.quantization == "fp8" and generation in _DEEP_GEMM_GENERATIONS


def _graphs(request: MemoryRequest) -> Spread:
    """CUDA graphs as profiling estimates them: a fixed part, and a little for every graph and layer."""
    if request.enforce_eager or not request.release.estimates_cudagraph_memory:
        return Spread(0, 0, 0)
    layers = request.model.num_layers / request.pp_size
    middle = 0.2 * GIB + 0.15 * MIB * layers * num_graphs(request.max_num_seqs)
    return Spread(0.4 * middle, middle, 2.0 * middle)


def num_graphs(max_num_seqs: int) -> int:
    """Graphs captured: piecewise ones for batches up to twice the sequences, full ones for decoding up to the sequences."""
    piecewise = _capture_sizes(min(2 * max_num_seqs, _CAPTURE_SIZES_MOST))
    return piecewise + _capture_sizes(min(max_num_seqs, _CAPTURE_SIZES_MOST))


def _capture_sizes(most: int) -> int:
    small = sum(size <= most for size in (1, 2, 4))
    return (
        small + min(most, 256) // _CAPTURE_SIZES_STEP - (most >= 256) + max(0, most - 240) // (2 * _CAPTURE_SIZES_STEP)
    )


def _rope_table(request: MemoryRequest) -> Spread:
    """Cosines and sines; with M-RoPE the request's bytes are those of four rows a position, which some models still build."""
    table, rope = request.rope_table_bytes, request.model.rope
    if rope is None or not rope.mrope_section:
        return Spread(table, table, table)
    built = table * request.release.mrope_rows / 4
    return Spread(built, built, table)


def _sum(parts: Sequence[Spread]) -> Spread:
    middle = sum(part.middle for part in parts)
    below = hypot(*(part.middle - part.low for part in parts))
    above = hypot(*(part.high - part.middle for part in parts))
    return Spread(middle - below, middle, middle + above)


def _gpu_total_bytes(machine: Machine) -> ByteRange | None:
    """As CUDA sees it; where only the driver's figure is known, CUDA sees 250 to 770 MiB less."""
    if machine.gpu is None:
        return None
    if machine.gpu.cuda_memory_bytes is not None:
        return machine.gpu.cuda_memory_bytes
    total = machine.gpu.memory_bytes
    if total is None:
        return None
    return (total - 770 * MIB, total - 250 * MIB) if machine.gpu.vendor.lower() == "nvidia" else (total, total)


def _kv_bytes(request: MemoryRequest, total: ByteRange | None, weights: WeightsPlan) -> tuple[Spread | None, Certainty]:
    taken = request.mm_ipc_gpu_memory_bytes
    if request.kv_cache_memory_bytes is not None:
        left = request.kv_cache_memory_bytes - taken
        return Spread(left, left, left), "exact"
    if total is None or weights.bytes_per_gpu is None:
        return None, "unknown"
    card = Spread(total[0], sum(total) / 2, total[1])
    loaded = Spread(weights.bytes_per_gpu[0], weights.middle_bytes, weights.bytes_per_gpu[1])
    used = _sum((loaded, estimate_rest(request), Spread(-card.high, -card.middle, -card.low)))
    share = request.gpu_memory_utilization
    unasked = (1 - share) * card.middle + taken
    return Spread(-used.high - unasked, -used.middle - unasked, -used.low - unasked), "range"


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
