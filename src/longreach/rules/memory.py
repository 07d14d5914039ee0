"""What one GPU's bytes go to, and what is not known of them: LR101, LR102, LR114, LR115, LR117, LR120, LR140. Pure."""

from collections.abc import Iterator
from dataclasses import replace

from longreach.rules.deployment import Deployment
from longreach.rules.parallel import largest_even_size, one_engine
from longreach.rules.remedy import Remedy, set_option
from longreach.rules.rule import Diagnosis, HasOptions, Rule, rule
from longreach.sizing.kv_cache import size_kv_cache
from longreach.units import GIB, ceil_div, format_bytes, format_room

_CPU_SPACE = "VLLM_CPU_KVCACHE_SPACE"


@rule("LR101", "error", "weights_exceed_gpu", "weights and KV cache do not fit the GPU", outcome="refused_at_start")
def weights_exceed_gpu(deployment: Deployment) -> Iterator[Diagnosis]:
    """Even the low ends of all parts add up to more than one GPU has."""
    memory, room = deployment.memory, deployment.kv_room_bytes
    if memory is None or memory.gpu_total_bytes is None:
        return
    if not (_weights_alone_exceed(deployment) if deployment.is_foreign else memory.fits is False):
        return
    total = format_bytes(memory.gpu_total_bytes[1])
    parts = (("weights", memory.weights_bytes), ("activations and graphs", memory.other_bytes), ("KV", memory.kv_bytes))
    shares = [f"{name} at least {format_bytes(size[0])}" for name, size in parts if size is not None and size[0] > 0]
    if room is not None and room[0] > 0 and deployment.options.kv_cache_memory_bytes is not None:
        yield Diagnosis(
            f"weights and KV cache do not fit a GPU of {total}",
            f"each GPU needs {', '.join(shares)}",
            f"set --kv-cache-memory-bytes to at most {room[0]} ({format_bytes(room[0])})",
            set_option("kv_cache_memory_bytes", room[0]),
        )
        return
    share = deployment.options.gpu_memory_utilization if memory.fits is not False else None
    yield Diagnosis(
        f"weights leave no KV cache on {'' if share is None else f'{share:.0%} of '}a GPU of {total}",
        f"each GPU needs {', '.join(shares)}",
        "spread the model over more GPUs (--tensor-parallel-size, --pipeline-parallel-size), or take smaller weights",
        more_memory(deployment),
    )


def more_memory(deployment: Deployment) -> Remedy | None:
    """What gives the KV cache room beside the weights: the usual share of the card, or more GPUs."""
    share, usual = deployment.options.gpu_memory_utilization, deployment.release.default_gpu_memory_utilization
    options = replace(deployment.options, gpu_memory_utilization=None)
    if share is not None and share < usual and replace(deployment, options=options).kv_most_bytes:
        return set_option("gpu_memory_utilization", None)
    return _more_gpus(deployment)


def _more_gpus(deployment: Deployment) -> Remedy | None:
    """The least tensor parallel size at which half of the share is free of weights, or all the GPUs there are."""
    options, room = deployment.options, deployment.memory
    if deployment.others or room is None or room.gpu_total_bytes is None or room.weights_bytes is None:
        return None
    ways = options.pipeline_parallel_size * options.data_parallel_size
    most = largest_even_size(deployment, deployment.machine.num_gpus // ways)
    if most is None or most <= deployment.tp_size:
        return one_engine(deployment) if options.data_parallel_size > 1 else None
    share = options.gpu_memory_utilization or deployment.release.default_gpu_memory_utilization
    wanted = ceil_div(2 * room.weights_bytes[1] * deployment.tp_size, max(1, int(room.gpu_total_bytes[0] * share)))
    sizes = (largest_even_size(deployment, size) for size in range(max(wanted, deployment.tp_size + 1), most + 1))
    return set_option(
        "tensor_parallel_size", next((size for size in sizes if size is not None and size >= wanted), most)
    )


def _weights_alone_exceed(deployment: Deployment) -> bool:
    """Beside the KV that was asked for, without the engine's own use, which is no more than expected."""
    memory, asked = deployment.memory, deployment.options.kv_cache_memory_bytes
    if asked is None:
        return deployment.kv_most_bytes == 0
    if memory is None or memory.gpu_total_bytes is None or memory.weights_bytes is None:
        return False
    return memory.weights_bytes[0] + asked > memory.gpu_total_bytes[1]


@rule("LR102", "warning", "memory_cannot_tell", "whether everything fits the GPU cannot be told")
def memory_cannot_tell(deployment: Deployment) -> Iterator[Diagnosis]:
    """The asked KV bytes lie between what is surely and what is perhaps left."""
    memory, room = deployment.memory, deployment.kv_room_bytes
    if memory is None or memory.kv_bytes is None or room is None:
        return
    if deployment.is_foreign and memory.kv_certainty == "range":
        yield from _length_may_not_fit(deployment, memory.kv_bytes)
        return
    if memory.fits is not None and not (deployment.is_foreign and memory.fits is False):
        return
    if deployment.is_foreign and _weights_alone_exceed(deployment):
        return  # LR101
    asked = memory.kv_bytes[1]
    if asked <= 0:
        return  # LR103: the share of the card leaves nothing
    yield Diagnosis(
        f"whether {format_bytes(asked)} of KV cache fit beside the weights cannot be told",
        f"weights and the engine's own use leave {format_room(*room)} of the GPU (weights: {memory.weights_source})",
        _sure_fix(deployment, room[0]),
    )


def _sure_fix(deployment: Deployment, surely: int) -> str:
    """The bytes that are surely there, where they hold the request; else the longest request that they hold."""
    if surely <= 0:
        return "take smaller weights (--weights) or more GPUs to be sure, or try and read the log"
    size, request = f"--kv-cache-memory-bytes {surely}", deployment.kv_request
    if request is None:
        return f"set {size} ({format_bytes(surely)}) to be sure, or try and read the log"
    ipc_bytes = int((deployment.options.mm_ipc_gpu_memory_gb or 0) * GIB)
    sure = size_kv_cache(replace(request, available_bytes_per_gpu=max(surely - ipc_bytes, 0)))
    if sure.serves:
        return f"set {size} ({format_bytes(surely)}) to be sure, or try and read the log"
    longest = sure.largest_max_model_len
    shorter = f"set --max-model-len {longest} and {size}, or " if longest else ""
    return (
        f"{shorter}take smaller weights (--weights) or more GPUs to be sure: {format_bytes(surely)} hold no request of "
        f"{deployment.max_model_len} tokens; or try and read the log"
    )


def _length_may_not_fit(deployment: Deployment, kv_bytes: tuple[int, int]) -> Iterator[Diagnosis]:
    """A share of the card was asked for: what it leaves to KV is a range, and one request needs more than its low end."""
    capacity, (low, high) = deployment.capacity, kv_bytes
    if capacity is None or not capacity.starts or capacity.needed_bytes_per_gpu <= low:
        return
    likely = "probably does" if capacity.needed_bytes_per_gpu > high else "may"
    yield Diagnosis(
        f"one request of {deployment.max_model_len} tokens {likely} not fit the KV cache",
        f"it needs {format_bytes(capacity.needed_bytes_per_gpu)} per GPU; weights and the engine's own use are expected to leave "
        f"{format_room(low, high)}",
        "set a lower --max-model-len, or read 'Available KV cache memory' in the log before you rely on it",
    )


@rule("LR114", "advice", "weights_unknown", "the bytes of the weights are not known")
def weights_unknown(deployment: Deployment) -> Iterator[Diagnosis]:
    """Without the checkpoint's bytes nothing can be said about what is left to KV."""
    memory = deployment.memory
    if memory is None or memory.weights_bytes is not None or deployment.is_foreign:
        return
    yield Diagnosis(
        f"the bytes of the weights of '{deployment.model.name}' are not known",
        f"the config says neither bytes nor parameters for quantization '{deployment.model.weights.quantization}'; "
        "whether weights and KV fit one GPU was not checked",
        "plan from the local checkpoint folder, whose safetensors headers hold the bytes, or give --weights",
    )


@rule("LR140", "warning", "checkpoint_form_differs", "the command names weights of another form than was planned")
def checkpoint_form_differs(deployment: Deployment) -> Iterator[Diagnosis]:
    """`--weights` asked for a form of which no published checkpoint is known, and no path says where it lies."""
    model = deployment.model
    name, form = model.hf_id or model.name, str(model.weights.quantization)
    if not model.weights.differs or deployment.options.model != name:
        return
    form = "unquantized" if form == "none" else form
    yield Diagnosis(
        f"'{name}' does not hold the {form} weights that the plan counts with",
        f"no published {form} checkpoint of the model is known, and the command names the model's own: its weights take other "
        "bytes, and may leave the KV cache no room",
        f"give --model-path with the folder or Hub id of your {form} checkpoint",
    )


@rule("LR120", "error", "kv_memory_unknown", "the memory of the KV cache is not known")
def kv_memory_unknown(deployment: Deployment) -> Iterator[Diagnosis]:
    """Nothing can be counted without bytes: the verdict is unknown."""
    memory, machine = deployment.memory, deployment.machine
    if memory is None or memory.kv_bytes is not None or deployment.is_foreign:
        return
    if machine.device_type == "cpu":
        why = f"{machine.num_gpus} GPUs are there: on a CPU vLLM takes as much memory as it is told to"
        fix = (
            "name the cards it is for (--gpus 4xRTX4090), or the KV cache of the CPU build (--kv-cache-memory-bytes 4G)"
        )
    elif memory.gpu_total_bytes is None:
        why, fix = (
            "the memory of the GPU is not known",
            "give --kv-cache-memory-bytes 10G, or --gpus with cards of the catalogue",
        )
    else:
        why = f"what the weights leave of the GPU is not known ({memory.weights_source})"
        fix = "give --kv-cache-memory-bytes 10G, or --weights, or the local checkpoint folder"
    yield Diagnosis(f"the KV cache of '{deployment.model.name}' cannot be counted: its memory is not known", why, fix)


@rule(
    "LR115",
    "advice",
    "utilization_ignored",
    "gpu-memory-utilization has no effect beside explicit KV bytes",
    outcome="no_effect",
)
def utilization_ignored(deployment: HasOptions) -> Iterator[Diagnosis]:
    """Explicit KV bytes win; only the check of free memory at start still reads the share."""
    options = deployment.options
    if options.kv_cache_memory_bytes is None or options.gpu_memory_utilization is None:
        return
    yield Diagnosis(
        f"--gpu-memory-utilization {options.gpu_memory_utilization} does not size the KV cache",
        f"--kv-cache-memory-bytes {options.kv_cache_memory_bytes} is per GPU and overrides it",
        "leave --gpu-memory-utilization out",
        set_option("gpu_memory_utilization", None),
    )


@rule(
    "LR117",
    "warning",
    "cpu_kvcache_space_overrides",
    "VLLM_CPU_KVCACHE_SPACE overrides explicit KV bytes",
    outcome="no_effect",
)
def cpu_kvcache_space_overrides(deployment: Deployment) -> Iterator[Diagnosis]:
    """The CPU build reads the variable first, in whole GiB."""
    options, space = deployment.options, dict(deployment.options.env).get(_CPU_SPACE)
    if deployment.machine.device_type != "cpu" or space is None or options.kv_cache_memory_bytes is None:
        return
    yield Diagnosis(
        f"{_CPU_SPACE}={space} silently overrides --kv-cache-memory-bytes {options.kv_cache_memory_bytes}",
        f"the CPU build takes {space} GiB of KV cache and never looks at the flag (tried on 0.32); a fraction ends the start",
        f"unset {_CPU_SPACE}",
        set_option("env", tuple(pair for pair in options.env if pair[0] != _CPU_SPACE)),
    )


RULES: tuple[Rule, ...] = (
    weights_exceed_gpu,
    memory_cannot_tell,
    weights_unknown,
    checkpoint_form_differs,
    kv_memory_unknown,
    utilization_ignored,
    cpu_kvcache_space_overrides,
)
