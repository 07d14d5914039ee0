"""Rules on length and KV capacity: LR101 to LR119. Pure."""

from collections.abc import Iterator

from longreach.hardware.spec import GpuSpec
from longreach.rules.deployment import Deployment
from longreach.rules.remedy import Remedy, set_option
from longreach.rules.rule import Diagnosis, Rule, rule
from longreach.sizing.values import KvCapacity
from longreach.units import format_bytes

_TWO_BYTE_KV = ("bfloat16", "float16")


@rule("LR101", "error", "weights_exceed_gpu", "weights and KV cache do not fit the GPU")
def weights_exceed_gpu(deployment: Deployment) -> Iterator[Diagnosis]:
    """More bytes are asked of one GPU than it has."""
    memory = deployment.memory
    if memory is None or memory.fits is not False or memory.gpu_total_bytes is None:
        return
    total = memory.gpu_total_bytes[1]
    parts = [("weights", memory.weights_bytes), ("activations and graphs", memory.other_bytes), ("KV", memory.kv_bytes)]
    shares = ", ".join(f"{name} at least {format_bytes(size[0])}" for name, size in parts if size is not None)
    room = deployment.kv_room_bytes
    if room is not None and room[1] > 0:
        fix = f"set --kv-cache-memory-bytes to at most {max(room[0], 0)} ({format_bytes(max(room[0], 0))})"
    else:
        fix = "use more GPUs per instance (--tensor-parallel-size), or a checkpoint with smaller weights"
    yield Diagnosis(f"weights and KV cache do not fit a GPU of {format_bytes(total)}", f"each GPU needs {shares}", fix)


@rule("LR103", "error", "kv_too_small_for_max_len", "max-model-len does not fit the KV cache")
def kv_too_small_for_max_len(deployment: Deployment) -> Iterator[Diagnosis]:
    """The engine refuses to start unless one request of max-model-len fits the GPUs' KV cache."""
    capacity = deployment.capacity
    if capacity is None or capacity.starts:
        return
    yield Diagnosis(
        f"max-model-len {deployment.max_model_len} does not fit the KV cache",
        _what_the_cache_holds(deployment, capacity),
        _how_to_fit(deployment, capacity),
        _remedy_to_fit(deployment, capacity),
    )


def _what_the_cache_holds(deployment: Deployment, capacity: KvCapacity) -> str:
    place = f"{format_bytes(capacity.available_bytes_per_gpu)} on each of {deployment.num_gpus_per_engine} GPUs"
    if deployment.num_gpus_per_engine == 1:
        place = f"{format_bytes(capacity.available_bytes_per_gpu)} on the GPU"
    if len(capacity.groups) == 1:
        per_token = capacity.bytes_per_block // capacity.block_size
        tokens = capacity.num_blocks * capacity.block_size * deployment.options.decode_context_parallel_size
        holds = f"{tokens} tokens ({per_token} bytes a token a GPU at {deployment.kv_cache_dtype})"
    else:
        holds = (
            f"{capacity.num_blocks} blocks of {capacity.bytes_per_block} bytes at {deployment.kv_cache_dtype} "
            f"and one such request takes {capacity.blocks_per_request}"
        )
    return f"{place} holds {holds}; {format_bytes(capacity.needed_bytes_per_gpu)} on each is needed"


def _how_to_fit(deployment: Deployment, capacity: KvCapacity) -> str:
    needed = capacity.needed_bytes_per_gpu
    ways = []
    room = deployment.kv_room_bytes
    if room is None or room[1] >= needed:
        ways.append(f"set --kv-cache-memory-bytes to at least {needed} ({format_bytes(needed)})")
    if capacity.largest_max_model_len > 0:
        ways.append(f"--max-model-len to {capacity.largest_max_model_len}")
    if ways and not ways[0].startswith("set"):
        ways[0] = f"set {ways[0]}"
    ways += _other_ways(deployment)
    return ", or ".join(ways) or "none on these GPUs: take a model with fewer KV bytes per token"


def _other_ways(deployment: Deployment) -> list[str]:
    ways = []
    if deployment.kv_cache_dtype in _TWO_BYTE_KV and _stores_fp8(deployment.machine.gpu):
        ways.append("halve the bytes with --kv-cache-dtype fp8_e4m3")
    spare_gpus = deployment.num_gpus_per_engine * 2 <= deployment.machine.num_gpus
    if spare_gpus and deployment.tp_size * 2 <= deployment.model.num_kv_heads:
        ways.append(f"halve them with --tensor-parallel-size {deployment.tp_size * 2}")
    return ways


def _stores_fp8(gpu: GpuSpec | None) -> bool:
    return gpu is not None and gpu.fp8_support == "native"


def _remedy_to_fit(deployment: Deployment, capacity: KvCapacity) -> Remedy | None:
    room = deployment.kv_room_bytes
    if room is not None and room[0] >= capacity.needed_bytes_per_gpu:
        return set_option("kv_cache_memory_bytes", capacity.needed_bytes_per_gpu)
    if capacity.largest_max_model_len > 0:
        return set_option("max_model_len", capacity.largest_max_model_len)
    return None


@rule("LR104", "warning", "null_block_reserved", "max-model-len needs the one block that is never usable")
def null_block_reserved(deployment: Deployment) -> Iterator[Diagnosis]:
    """Block 0 is the null block: a pool of exactly one request is one block too small."""
    capacity = deployment.capacity
    if capacity is None or capacity.num_blocks != capacity.blocks_per_request:
        return
    outcome = (
        "the start-up check subtracts it from 0.29 on"
        if deployment.release.null_block_reserved
        else f"{deployment.release.version} starts all the same, and a request of full length waits for ever"
    )
    usable = capacity.num_blocks - 1
    shorter = usable * capacity.block_size * deployment.options.decode_context_parallel_size
    yield Diagnosis(
        f"max-model-len {deployment.max_model_len} needs all {capacity.num_blocks} blocks of the KV cache",
        f"block 0 is the null block, so {usable} blocks are usable; {outcome}",
        f"set --kv-cache-memory-bytes to at least {(capacity.num_blocks + 1) * capacity.bytes_per_block}, "
        f"or --max-model-len to {shorter if len(capacity.groups) == 1 else capacity.largest_max_model_len}",
    )


@rule("LR105", "error", "offload_does_not_extend_request", "an offload tier does not make a longer request fit")
def offload_does_not_extend_request(deployment: Deployment) -> Iterator[Diagnosis]:
    """The start-up check counts GPU bytes only, and attention reads only resident GPU blocks."""
    capacity, offload = deployment.capacity, deployment.options.offload
    if capacity is None or capacity.starts or offload is None:
        return
    yield Diagnosis(
        f"the {format_bytes(offload.cpu_bytes)} CPU tier does not make max-model-len {deployment.max_model_len} fit",
        f"a running request keeps every block on the GPUs: {format_bytes(capacity.needed_bytes_per_gpu)} per GPU needed, "
        f"{format_bytes(capacity.available_bytes_per_gpu)} there; tiers hold the prefixes of other requests",
        f"fit the length on the GPUs alone (see LR103), at most {capacity.largest_max_model_len} tokens as it is",
    )


@rule("LR106", "warning", "reserve_full_isl_adds_no_capacity", "--no-scheduler-reserve-full-isl cannot raise capacity")
def reserve_full_isl_adds_no_capacity(deployment: Deployment) -> Iterator[Diagnosis]:
    """The flag removes an admission test; the start-up check does not look at it."""
    capacity = deployment.capacity
    if capacity is None or capacity.starts or deployment.options.scheduler_reserve_full_isl is not False:
        return
    yield Diagnosis(
        f"--no-scheduler-reserve-full-isl does not make max-model-len {deployment.max_model_len} fit",
        "it only removes the test that a whole prompt has free blocks before it is admitted; the start-up check "
        f"still wants {format_bytes(capacity.needed_bytes_per_gpu)} per GPU, and a request that outgrows the pool "
        "preempts itself and never runs again",
        "leave the flag out and fit the length on the GPUs (see LR103)",
        set_option("scheduler_reserve_full_isl", None),
    )


@rule(
    "LR107", "error", "max_num_seqs_exceeds_state_blocks", "max-num-seqs exceeds the blocks that hold recurrent state"
)
def max_num_seqs_exceeds_state_blocks(deployment: Deployment) -> Iterator[Diagnosis]:
    """With full CUDA graphs every decoding sequence needs a state block; capture refuses a batch larger than the pool."""
    capacity, options = deployment.capacity, deployment.options
    if capacity is None or deployment.num_recurrent_layers == 0 or deployment.max_num_seqs <= capacity.num_blocks:
        return
    if options.enforce_eager or options.cudagraph_mode in ("NONE", "PIECEWISE"):
        return
    most = capacity.num_blocks
    yield Diagnosis(
        f"max-num-seqs {deployment.max_num_seqs} exceeds the {most} KV cache blocks",
        f"{deployment.num_recurrent_layers} recurrent layers need one state block for each decoding sequence, and full "
        f"CUDA graphs are captured for max-num-seqs of them",
        f"set --max-num-seqs to at most {most}",
        set_option("max_num_seqs", most) if most > 0 else None,
    )


RULES: tuple[Rule, ...] = (
    weights_exceed_gpu,
    kv_too_small_for_max_len,
    null_block_reserved,
    offload_does_not_extend_request,
    reserve_full_isl_adds_no_capacity,
    max_num_seqs_exceeds_state_blocks,
)
