"""From settled values to the engine's options: what will be written on the command line."""

from longreach.engine.options import EngineOptions, OffloadOptions
from longreach.hardware.spec import Machine
from longreach.model.spec import ModelSpec
from longreach.plan.capacity import Fit
from longreach.plan.goal import Goal
from longreach.plan.settle import Settled
from longreach.plan.split import reference_of
from longreach.plan.values import Choice
from longreach.sizing.values import RopePlan

_DIVIDE_CORES = "VLLM_CPU_SIM_MULTI_NUMA"  # vLLM reads it from 0.16 on, and warns that it does not know it
_BIND_CORES = "VLLM_CPU_OMP_THREADS_BIND"
_RESERVE_CORES = "VLLM_CPU_NUM_OF_RESERVED_CPU"


def choose_options(
    model: ModelSpec, machine: Machine, goal: Goal, settled: Settled, rope: RopePlan, fit: Fit
) -> tuple[EngineOptions, tuple[Choice, ...]]:
    """Engine options of one instance and what was chosen on the way."""
    is_gpu = machine.device_type != "cpu"
    custom_all_reduce, all_reduce_choice = _custom_all_reduce(machine, goal, settled)
    numa_bind, numa_choice = _numa_bind(machine)
    rank_env, rank_choice = _divided_cores(machine, goal, settled)
    tier_env, tier_choice = _reserved_cores(machine, goal, settled)
    reference, reference_choice = _reference(model, goal)
    options = EngineOptions(
        model=reference,
        served_model_name=goal.served_model_name,
        host=goal.host,
        port=goal.port,
        tensor_parallel_size=settled.split.tp_size,
        pipeline_parallel_size=settled.split.pp_size,
        data_parallel_size=settled.split.dp_size,
        decode_context_parallel_size=settled.split.dcp_size,
        max_model_len=settled.max_model_len,
        kv_cache_dtype=None if fit.kv_cache_dtype == "auto" else fit.kv_cache_dtype,
        kv_cache_memory_bytes=fit.kv_cache_memory_bytes,
        gpu_memory_utilization=goal.gpu_memory_utilization,
        block_size=goal.block_size,
        enable_prefix_caching=goal.prefix_caching,
        enable_chunked_prefill=True,
        max_num_batched_tokens=settled.max_num_batched_tokens,
        max_num_seqs=settled.max_num_seqs,
        scheduler_reserve_full_isl=goal.reserve_full_isl,
        speculative=settled.speculative,
        offload=_offload(goal),
        yarn=rope.options,
        limit_mm_per_prompt=None if goal.images_per_prompt is None else (("image", goal.images_per_prompt),),
        mm_processor_kwargs=goal.mm_processor_kwargs,
        mm_ipc_gpu_memory_gb=goal.mm_ipc_gpu_memory_gb,
        cudagraph_mode=goal.cudagraph_mode if is_gpu else None,
        enforce_eager=None if is_gpu else True,
        disable_custom_all_reduce=custom_all_reduce,
        numa_bind=numa_bind,
        reasoning_parser=model.reasoning_parsers[0] if model.reasoning_parsers else None,
        tool_call_parser=model.tool_call_parsers[0] if model.tool_call_parsers else None,
        enable_auto_tool_choice=True if model.tool_call_parsers else None,
        enable_prompt_tokens_details=True,
        env=(*rank_env, *tier_env, *goal.env),
    )
    choices = (reference_choice, all_reduce_choice, numa_choice, rank_choice, tier_choice)
    return options, tuple(choice for choice in choices if choice)


def _reference(model: ModelSpec, goal: Goal) -> tuple[str, Choice | None]:
    """What `vllm serve` is given, with a word where it is another checkpoint than the model's own."""
    reference = reference_of(model, goal)
    if goal.model_path is not None or reference in (model.hf_id, model.name):
        return reference, None
    why = f"the published checkpoint with {model.weights.quantization} weights"
    return reference, Choice("--model-path", reference, why)


def _offload(goal: Goal) -> OffloadOptions | None:
    if goal.cpu_tier_bytes is None:
        return None
    return OffloadOptions(
        cpu_bytes=goal.cpu_tier_bytes, disk_path=goal.disk_tier_path, eviction_policy=goal.eviction_policy
    )


def _custom_all_reduce(machine: Machine, goal: Goal, settled: Settled) -> tuple[bool | None, Choice | None]:
    """VLLM's own all-reduce is off above two GPUs unless NVLink joins all of them; saying so avoids its warning."""
    if goal.disable_custom_all_reduce is not None:
        return goal.disable_custom_all_reduce, None
    if (
        machine.device_type != "cuda"
        or settled.split.tp_size <= 2
        or machine.link is None
        or "nvlink" in machine.link.name
    ):
        return None, None
    why = f"vLLM's own all-reduce needs NVLink between all {settled.split.tp_size} GPUs; these are joined by {machine.link.name}"
    return True, Choice("--disable-custom-all-reduce", "on", why)


def _numa_bind(machine: Machine) -> tuple[bool | None, Choice | None]:
    if machine.device_type != "cuda" or (machine.num_numa_nodes or 1) < 2:
        return None, None
    return True, Choice("--numa-bind", "on", f"{machine.num_numa_nodes} NUMA nodes: each worker runs beside its GPU")


def _divided_cores(machine: Machine, goal: Goal, settled: Settled) -> tuple[tuple[tuple[str, str], ...], Choice | None]:
    """A CPU engine binds each rank to a NUMA node of its own, and does not start where there are fewer."""
    split, given = settled.split, {name for name, _ in goal.env}
    num_ranks = split.tp_size * split.pp_size
    is_enough = num_ranks <= (machine.num_numa_nodes or 1)
    if machine.device_type != "cpu" or is_enough or split.dp_size > 1 or given & {_DIVIDE_CORES, _BIND_CORES}:
        return (), None
    why = f"{num_ranks} ranks want as many NUMA nodes; the cores are divided among them instead"
    return ((_DIVIDE_CORES, "1"),), Choice(_DIVIDE_CORES, "1", why)


def _reserved_cores(
    machine: Machine, goal: Goal, settled: Settled
) -> tuple[tuple[tuple[str, str], ...], Choice | None]:
    """As many as without tiers. Of its own accord vLLM keeps another core a rank from computing where there is a connector, and
    none at all where the machine has no more: on two cores a decode step of a tiny model took 10 to 30 ms instead of 3.
    """
    given = {name for name, _ in goal.env}
    if machine.device_type != "cpu" or goal.cpu_tier_bytes is None or given & {_RESERVE_CORES, _BIND_CORES}:
        return (), None
    number = str(settled.split.tp_size * settled.split.pp_size)
    why = "as without tiers, for which vLLM would take another core a rank from computing; it warns of it"
    return ((_RESERVE_CORES, number),), Choice(_RESERVE_CORES, number, why)
