"""How much KV cache an instance gets and what it holds: the dtype is widened to fp8 only when the goal needs it."""

from dataclasses import dataclass, replace

from longreach.engine.defaults import device_defaults
from longreach.engine.release import Release
from longreach.hardware.spec import Machine
from longreach.model.spec import MlaLayer, ModelSpec
from longreach.plan.goal import Goal
from longreach.plan.settle import Settled
from longreach.plan.values import Choice
from longreach.sizing.kv_cache import size_kv_cache
from longreach.sizing.memory import MemoryRequest, budget_memory
from longreach.sizing.values import KvCacheRequest, KvCapacity, MemoryBudget, RopePlan
from longreach.units import GIB, MIB, format_bytes

_STEP_BYTES = 256 * MIB  # chosen KV sizes are whole steps: people read and compare them


@dataclass(frozen=True, slots=True)
class Fit:
    """The KV side of one instance. `capacity` is None when nothing can be counted; `reason` says why."""

    request: KvCacheRequest | None
    capacity: KvCapacity | None
    memory: MemoryBudget
    kv_cache_dtype: str
    kv_cache_memory_bytes: int | None  # to render; None when --gpu-memory-utilization decides
    choices: tuple[Choice, ...]
    reason: str = ""


def fit_kv_cache(
    model: ModelSpec, machine: Machine, release: Release, goal: Goal, settled: Settled, rope: RopePlan
) -> Fit:
    """Count the KV cache of the first dtype that serves the goal, or of the last candidate."""
    memory = budget_memory(
        MemoryRequest(
            model=model,
            machine=machine,
            tp_size=settled.tp_size,
            pp_size=settled.pp_size,
            max_num_batched_tokens=settled.max_num_batched_tokens,
            max_num_seqs=settled.max_num_seqs,
            rope_table_bytes=rope.table_bytes_per_gpu,
            gpu_memory_utilization=goal.gpu_memory_utilization or release.default_gpu_memory_utilization,
            kv_cache_memory_bytes=goal.kv_cache_memory_bytes,
            mm_ipc_gpu_memory_bytes=int((goal.mm_ipc_gpu_memory_gb or 0) * GIB),
            use_draft_layers=settled.speculative is not None and settled.speculative.method == "mtp",
        )
    )
    available, rendered, choices, reason = _available_bytes(goal, memory)
    if available is None:
        return Fit(None, None, memory, goal.kv_cache_dtype or "auto", None, choices, reason)
    candidates = _kv_cache_dtypes(goal, machine)
    fits = [_fit(model, machine, release, goal, settled, dtype, available) for dtype in candidates]
    chosen = next((index for index, (_, capacity) in enumerate(fits) if _serves(capacity, goal)), len(fits) - 1)
    request, capacity = fits[chosen]
    if goal.kv_cache_dtype is None and chosen > 0:
        first = fits[0][1]
        why = (
            f"at the model's own dtype one request needs {format_bytes(first.needed_bytes_per_gpu)} per GPU "
            f"and {format_bytes(first.available_bytes_per_gpu)} is there"
        )
        choices += (Choice("--kv-cache-dtype", candidates[chosen], why),)
    if goal.gpu_memory_utilization is not None and memory.kv_bytes is not None:
        low, high = memory.kv_bytes
        why = f"under --gpu-memory-utilization {format_bytes(low)} to {format_bytes(high)} is left to KV; counted at the low end"
        capacity = replace(capacity, certainty="estimate", estimate_reason=why)
    return Fit(request, capacity, memory, candidates[chosen], rendered, choices, reason)


def _available_bytes(goal: Goal, memory: MemoryBudget) -> tuple[int | None, int | None, tuple[Choice, ...], str]:
    """(bytes to count with, bytes to render, choices, reason when there are none)."""
    if memory.kv_bytes is None:
        return (
            None,
            None,
            (),
            "the KV memory is not known: give --kv-cache-memory-bytes, or a GPU and weights that are known",
        )
    low, _ = memory.kv_bytes
    if goal.kv_cache_memory_bytes is not None:
        return low, goal.kv_cache_memory_bytes, (), ""
    if goal.gpu_memory_utilization is not None:
        return max(low, 0), None, (), ""
    ipc = int((goal.mm_ipc_gpu_memory_gb or 0) * GIB)
    chosen = max((low + ipc) // _STEP_BYTES * _STEP_BYTES, 0)
    why = f"what is surely left of the card beside weights and activations ({memory.kv_certainty}), in whole steps"
    return max(chosen - ipc, 0), chosen, (Choice("--kv-cache-memory-bytes", format_bytes(chosen), why),), ""


def _kv_cache_dtypes(goal: Goal, machine: Machine) -> tuple[str, ...]:
    if goal.kv_cache_dtype is not None:
        return (goal.kv_cache_dtype,)
    has_fp8 = machine.gpu is not None and machine.gpu.fp8_support in ("native", "emulated")
    return ("auto", "fp8_e4m3") if has_fp8 else ("auto",)


def _fit(
    model: ModelSpec, machine: Machine, release: Release, goal: Goal, settled: Settled, dtype: str, available: int
) -> tuple[KvCacheRequest, KvCapacity]:
    is_cpu = machine.device_type == "cpu"
    is_mla = any(isinstance(layer, MlaLayer) for layer in model.layers)
    speculative = settled.speculative
    device = device_defaults(machine.device_type)
    assert device is not None, machine.device_type
    request = KvCacheRequest(
        model=model,
        release=release,
        max_model_len=settled.max_model_len,
        available_bytes_per_gpu=available,
        tp_size=settled.tp_size,
        pp_size=settled.pp_size,
        dcp_size=settled.dcp_size,
        kv_cache_dtype=dtype,
        max_num_batched_tokens=settled.max_num_batched_tokens,
        num_speculative_tokens=speculative.num_speculative_tokens if speculative else 0,
        use_draft_layers=speculative is not None and speculative.method == "mtp",
        prefix_caching=goal.prefix_caching,
        async_scheduling=device.async_scheduling and (speculative is None or speculative.method != "ngram"),
        block_size=goal.block_size,
        default_block_size=device.mla_block_size if is_mla else device.block_size,
        min_kernel_block_size=16 if is_mla and is_cpu else device.min_kernel_block_size,
        force_fp32_state=is_cpu,
    )
    return request, size_kv_cache(request)


def _serves(capacity: KvCapacity, goal: Goal) -> bool:
    return capacity.starts and (
        goal.concurrency is None or goal.mean_input_tokens is not None or capacity.max_concurrency >= goal.concurrency
    )
