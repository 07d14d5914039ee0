"""Does one request of max-model-len fit the KV cache, and what does not help: LR103 to LR107, LR116, LR118, LR128, LR139. Pure."""

import re
from collections.abc import Iterator
from dataclasses import replace

from longreach.engine.registry import get_registry
from longreach.hardware.spec import GpuSpec
from longreach.model.spec import AttentionLayer, MlaLayer
from longreach.rules.deployment import Deployment
from longreach.rules.memory import more_memory
from longreach.rules.remedy import Remedy, set_option
from longreach.rules.rule import Diagnosis, Rule, rule
from longreach.sizing.kv_cache import size_kv_cache
from longreach.sizing.values import KvCapacity
from longreach.units import ceil_div, format_bytes

_TWO_BYTE_KV = ("bfloat16", "float16")


@rule(
    "LR103", "error", "kv_too_small_for_max_len", "max-model-len does not fit the KV cache", outcome="refused_at_start"
)
def kv_too_small_for_max_len(deployment: Deployment) -> Iterator[Diagnosis]:
    """The engine refuses to start unless one request of max-model-len fits the GPUs' KV cache."""
    capacity = deployment.capacity
    if capacity is None or _weights_fill_the_gpu(deployment):
        return
    if capacity.starts if deployment.is_foreign else capacity.serves:
        return
    yield Diagnosis(
        f"max-model-len {deployment.max_model_len} does not fit the KV cache",
        _what_the_cache_holds(deployment, capacity),
        _how_to_fit(deployment, capacity),
        _remedy_to_fit(deployment, capacity),
    )


def _weights_fill_the_gpu(deployment: Deployment) -> bool:
    """No length fits, and LR101 says why."""
    if deployment.is_foreign:
        return deployment.kv_most_bytes == 0 and deployment.options.kv_cache_memory_bytes is None
    room = deployment.kv_room_bytes
    return room is not None and room[1] <= 0


def _what_the_cache_holds(deployment: Deployment, capacity: KvCapacity) -> str:
    one, needed = deployment.num_gpus_per_engine == 1, format_bytes(capacity.needed_bytes_per_gpu)
    gpus = "the GPU" if one else f"each of {deployment.num_gpus_per_engine} GPUs"
    room = deployment.kv_room_bytes
    if capacity.available_bytes_per_gpu == 0 and room is not None:
        return (
            f"weights and the engine's own use leave at most {format_bytes(room[1])} of {gpus}, and {needed} is needed"
        )
    most = "at most " if deployment.is_foreign and capacity.certainty == "estimate" else ""
    place = f"{most}{format_bytes(capacity.available_bytes_per_gpu)} on {gpus}"
    if len(capacity.groups) == 1:
        per_token = capacity.bytes_per_block // capacity.block_size
        tokens = capacity.num_blocks * capacity.block_size * deployment.options.decode_context_parallel_size
        holds = f"{tokens} tokens ({per_token} bytes a token a GPU at {deployment.kv_cache_dtype})"
    else:
        holds = (
            f"{capacity.num_blocks} blocks of {capacity.bytes_per_block} bytes at {deployment.kv_cache_dtype} "
            f"and one such request takes {capacity.blocks_per_request}"
        )
    return f"{place} holds {holds}; {needed}{'' if one else ' on each'} is needed"


def _how_to_fit(deployment: Deployment, capacity: KvCapacity) -> str:
    needed = capacity.needed_bytes_per_gpu
    ways = []
    room = deployment.kv_room_bytes
    if deployment.pool_blocks is not None:
        least = ceil_div(needed, capacity.bytes_per_block)
        ways.append(f"leave --num-gpu-blocks-override out, or set it to at least {least}")
    elif room is None or room[1] >= needed:
        ways.append(f"set --kv-cache-memory-bytes to at least {needed} ({format_bytes(needed)})")
    length = _fitting_length(deployment, capacity)
    if length > 0:
        ways.append(f"--max-model-len to {length}")
    if ways and ways[0].startswith("--"):
        ways[0] = f"set {ways[0]}"
    ways += _other_ways(deployment)
    return ", or ".join(ways) or "more or larger GPUs, smaller weights, or a model with fewer KV bytes per token"


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
    """More bytes where they are stated and there, else a shorter length."""
    room, stated = deployment.kv_room_bytes, deployment.pool_blocks is None and _cautious_bytes(deployment) is None
    if stated and room is not None and room[0] >= capacity.needed_bytes_per_gpu:
        return set_option("kv_cache_memory_bytes", capacity.needed_bytes_per_gpu)
    length = _fitting_length(deployment, capacity)
    if length > 0:
        return set_option("max_model_len", length)
    return more_memory(deployment) if deployment.is_foreign else None


def _fitting_length(deployment: Deployment, capacity: KvCapacity) -> int:
    """The longest that fits the bytes that were asked for, or what one can rely on of a share of the card."""
    least, request = _cautious_bytes(deployment), deployment.kv_request
    if least is None or request is None or deployment.pool_blocks is not None:
        return capacity.largest_max_model_len
    return size_kv_cache(replace(request, available_bytes_per_gpu=least)).largest_max_model_len


def _cautious_bytes(deployment: Deployment) -> int | None:
    """What a share of the card surely leaves to KV, or half of what is expected where that is more; None: stated in bytes."""
    memory = deployment.memory
    if not deployment.is_foreign or memory is None or memory.kv_bytes is None or memory.kv_certainty != "range":
        return None
    return max(memory.kv_bytes[0], (memory.kv_middle_bytes or 0) // 2, 0)


@rule("LR104", "warning", "null_block_reserved", "max-model-len needs the one block that is never usable")
def null_block_reserved(deployment: Deployment) -> Iterator[Diagnosis]:
    """Block 0 is the null block: a pool of exactly one request is one block too small."""
    capacity = deployment.capacity
    if capacity is None or capacity.num_blocks != capacity.blocks_per_request:
        return
    if deployment.is_foreign and capacity.certainty == "estimate":
        return  # a coincidence
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


@rule(
    "LR105",
    "error",
    "offload_does_not_extend_request",
    "an offload tier does not make a longer request fit",
    outcome="refused_at_start",
)
def offload_does_not_extend_request(deployment: Deployment) -> Iterator[Diagnosis]:
    """The start-up check counts GPU bytes only, and attention reads only resident GPU blocks."""
    capacity, offload = deployment.capacity, deployment.options.offload
    if capacity is None or capacity.starts or offload is None:
        return
    yield Diagnosis(
        f"the {format_bytes(offload.cpu_bytes)} CPU tier does not make max-model-len {deployment.max_model_len} fit",
        f"a running request keeps every block on the GPUs: {format_bytes(capacity.needed_bytes_per_gpu)} per GPU needed, "
        f"{format_bytes(capacity.available_bytes_per_gpu)} there; tiers hold the prefixes of other requests",
        "fit the length on the GPUs alone (see LR103)"
        + (f", at most {capacity.largest_max_model_len} tokens as it is" if capacity.largest_max_model_len else ""),
    )


@rule(
    "LR106",
    "warning",
    "reserve_full_isl_adds_no_capacity",
    "--no-scheduler-reserve-full-isl cannot raise capacity",
    outcome="no_effect",
)
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
    "LR107",
    "error",
    "mamba_blocks_lt_max_num_seqs",
    "max-num-seqs exceeds the blocks that hold recurrent state",
    outcome="refused_at_start",
    first="0.18.0",
)
def mamba_blocks_lt_max_num_seqs(deployment: Deployment) -> Iterator[Diagnosis]:
    """With full CUDA graphs every decoding sequence needs a state block; capture refuses a batch larger than the pool."""
    capacity, most_bytes = deployment.capacity, deployment.kv_most_bytes
    if capacity is None or not _decodes_from_state_blocks(deployment):
        return
    most = capacity.num_blocks
    if deployment.is_foreign and most_bytes is not None:
        most = most_bytes // capacity.bytes_per_block
    if most == 0 or deployment.max_num_seqs <= most:
        return  # without blocks nothing starts, whatever the limit
    yield Diagnosis(
        f"max-num-seqs {deployment.max_num_seqs} exceeds the {most} KV cache blocks",
        f"{deployment.num_recurrent_layers} recurrent layers need one state block for each decoding sequence, and full "
        f"CUDA graphs are captured for max-num-seqs of them",
        f"set --max-num-seqs to at most {_cautious_blocks(deployment, capacity) or most}",
        set_option("max_num_seqs", _cautious_blocks(deployment, capacity) or most),
    )


def _cautious_blocks(deployment: Deployment, capacity: KvCapacity) -> int:
    least = _cautious_bytes(deployment)
    return capacity.num_blocks if least is None else least // capacity.bytes_per_block


def _decodes_from_state_blocks(deployment: Deployment) -> bool:
    """Recurrent layers under full CUDA graphs."""
    options = deployment.options
    if deployment.num_recurrent_layers == 0 or deployment.machine.device_type == "cpu":
        return False
    return not options.enforce_eager and options.cudagraph_mode not in ("NONE", "PIECEWISE")


@rule(
    "LR139",
    "warning",
    "mamba_blocks_may_be_too_few",
    "max-num-seqs may exceed the blocks that hold recurrent state",
    outcome="refused_at_start",
    first="0.18.0",
)
def mamba_blocks_may_be_too_few(deployment: Deployment) -> Iterator[Diagnosis]:
    """Under a share of the card the number of blocks is a guess; what no guess allows is LR107."""
    capacity, most_bytes, memory = deployment.capacity, deployment.kv_most_bytes, deployment.memory
    if capacity is None or most_bytes is None or memory is None or memory.kv_bytes is None:
        return
    if not deployment.is_foreign or memory.kv_certainty != "range" or not _decodes_from_state_blocks(deployment):
        return
    low, high = (max(kv_bytes, 0) // capacity.bytes_per_block for kv_bytes in memory.kv_bytes)
    least = _cautious_blocks(deployment, capacity)
    if not capacity.num_blocks < deployment.max_num_seqs <= most_bytes // capacity.bytes_per_block:
        return
    yield Diagnosis(
        f"max-num-seqs {deployment.max_num_seqs} may exceed the KV cache blocks",
        f"{deployment.num_recurrent_layers} recurrent layers need one state block for each decoding sequence under full CUDA "
        f"graphs; {low} to {high} blocks are expected",
        f"set --max-num-seqs to {least}" if least else "set a lower --max-num-seqs",
        set_option("max_num_seqs", least) if least else None,
    )


@rule(
    "LR116",
    "error",
    "architecture_not_in_release",
    "this vLLM release does not know the model's architecture",
    outcome="refused_at_start",
)
def architecture_not_in_release(deployment: Deployment) -> Iterator[Diagnosis]:
    """Architectures come with a release, and a few have gone."""
    lacks_method = not _knows_quantization(deployment)
    if _knows_architecture(deployment) or (deployment.is_foreign and not lacks_method):  # LR128
        return
    model, release = deployment.model, deployment.release
    first_and_last, other = _its_releases(deployment)
    method = (
        f", and {release.version} has no quantization method '{model.weights.quant_method}'" if lacks_method else ""
    )
    yield Diagnosis(
        f"vLLM {release.version} does not know {model.architecture}",
        f"the class of '{model.name}' is registered {first_and_last}{method}",
        other,
    )


@rule("LR128", "warning", "model_too_new", "this vLLM release has no class of its own for the model")
def model_too_new(deployment: Deployment) -> Iterator[Diagnosis]:
    """A fork or a plug-in may have it; else vLLM takes the class of transformers where it can, or refuses."""
    if not deployment.is_foreign or _knows_architecture(deployment) or not _knows_quantization(deployment):
        return
    model, release = deployment.model, deployment.release
    plain = all(isinstance(layer, AttentionLayer | MlaLayer) for layer in model.layers)
    outcome = (
        "takes the class that transformers has, which is slower and needs more memory, or refuses the model"
        if plain
        else "refuses the model as not supported: no class of transformers serves its layers"
    )
    first_and_last, other = _its_releases(deployment)
    yield Diagnosis(
        f"vLLM {release.version} has no class of its own for {model.architecture}",
        f"it is registered {first_and_last}; {release.version} {outcome}",
        other,
    )


def _its_releases(deployment: Deployment) -> tuple[str, str]:
    """Where the class is registered, and the release to use instead."""
    assert deployment.model.architecture_releases is not None
    first, last = deployment.model.architecture_releases
    if deployment.release.number < _version(first):
        return f"from {first} on", f"use vLLM {first} or later"
    return f"up to {last}", f"use vLLM {last} or earlier"


def _knows_quantization(deployment: Deployment) -> bool:
    """Whether the release has the method that the checkpoint's config names; without it no class loads the weights."""
    method = deployment.model.weights.quant_method
    return method is None or method in get_registry(deployment.release.version).names("quantization")


def _knows_architecture(deployment: Deployment) -> bool:
    releases = deployment.model.architecture_releases
    return releases is None or _version(releases[0]) <= deployment.release.number <= _version(releases[1])


def _version(text: str) -> tuple[int, ...]:
    """`0.8.5.post1` to (0, 8, 5)."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


@rule(
    "LR118",
    "warning",
    "cpu_offload_moves_weights",
    "--cpu-offload-gb does not make room for a longer request",
    outcome="no_effect",
)
def cpu_offload_moves_weights(deployment: Deployment) -> Iterator[Diagnosis]:
    """It moves weights, not KV; the bytes it frees must still be given to KV."""
    capacity = deployment.capacity
    given = next(
        (arg for arg in deployment.options.extra_args if arg.replace("_", "-").startswith("--cpu-offload-gb")), None
    )
    if given is None or capacity is None or capacity.starts:
        return
    yield Diagnosis(
        f"{given} does not make max-model-len {deployment.max_model_len} fit",
        f"it keeps weights in host memory and reads them at every step; KV of one request still needs "
        f"{format_bytes(capacity.needed_bytes_per_gpu)} per GPU and {format_bytes(capacity.available_bytes_per_gpu)} are there",
        "leave it out; fit the length on the GPUs (see LR103)",
    )


RULES: tuple[Rule, ...] = (
    kv_too_small_for_max_len,
    null_block_reserved,
    offload_does_not_extend_request,
    reserve_full_isl_adds_no_capacity,
    mamba_blocks_lt_max_num_seqs,
    mamba_blocks_may_be_too_few,
    architecture_not_in_release,
    model_too_new,
    cpu_offload_moves_weights,
)
