"""What the GPU itself can and cannot do, and where workers run: LR516 to LR523. Pure."""

from collections.abc import Iterator

from longreach.engine.defaults import fallback_dtype
from longreach.hardware.spec import GpuSpec
from longreach.rules.deployment import Deployment
from longreach.rules.remedy import set_option
from longreach.rules.rule import Diagnosis, HasOptions, Rule, rule
from longreach.units import format_bytes

_FP4_CAPABILITY = 10


def _major(gpu: GpuSpec) -> int | None:
    """Major CUDA compute capability; None for other vendors."""
    text = gpu.compute_capability.partition(".")[0]
    return int(text) if text.isdigit() else None


@rule("LR516", "error", "gpu_without_bf16", "the GPU has no bfloat16", outcome="refused_at_start")
def gpu_without_bf16(deployment: Deployment) -> Iterator[Diagnosis]:
    """Ampere is the first architecture with bfloat16; asked for by name, it is refused below."""
    gpu, model = deployment.machine.gpu, deployment.model
    if gpu is None or deployment.options.dtype != "bfloat16":
        return
    instead = fallback_dtype(model.architecture, gpu.compute_capability)
    if instead is None:
        return
    yield Diagnosis(
        f"bfloat16 does not exist on {gpu.name}",
        f"compute capability {gpu.compute_capability}; vLLM: 'Bfloat16 is only supported on GPUs with compute capability of "
        "at least 8.0'",
        f"set --dtype {instead}",
        set_option("dtype", instead),
    )


@rule("LR523", "warning", "dtype_falls_back", "a bfloat16 model runs in another type on this GPU")
def dtype_falls_back(deployment: Deployment) -> Iterator[Diagnosis]:
    """Under `--dtype auto` vLLM goes on with a type that the card has."""
    gpu, model = deployment.machine.gpu, deployment.model
    if gpu is None or deployment.options.dtype not in (None, "auto") or model.dtype != "bfloat16":
        return
    instead = fallback_dtype(model.architecture, gpu.compute_capability)
    if instead is None:
        return
    cost = (
        "twice the bytes of weights and KV cache, counted here"
        if instead == "float32"
        else "values above 65,504 overflow"
    )
    yield Diagnosis(
        f"'{model.name}' is bfloat16 and runs as {instead} on {gpu.name}",
        f"compute capability {gpu.compute_capability} has no bfloat16; vLLM: 'doesn't support torch.bfloat16. Falling back to "
        f"torch.{instead} for compatibility'; {cost}",
        "compare answers with the same model on a card of compute capability 8.0 or more",
    )


@rule("LR517", "advice", "gpu_name_ambiguous", "the GPU's name does not tell its memory")
def gpu_name_ambiguous(deployment: Deployment) -> Iterator[Diagnosis]:
    """After-market boards print the stock card's name."""
    gpu = deployment.machine.gpu
    if gpu is None or gpu.memory_bytes is None or not gpu.name.endswith("(modified)"):
        return
    yield Diagnosis(
        f"the name that {gpu.name} prints is the stock card's",
        f"only its memory of {format_bytes(gpu.memory_bytes)} tells it apart; P2P, power and memory speed may differ from the "
        "stock card's",
        "check with nvidia-smi --query-gpu=name,memory.total --format=csv",
    )


@rule("LR518", "advice", "fp8_weights_only_smaller", "FP8 weights save memory here, not time")
def fp8_weights_only_smaller(deployment: Deployment) -> Iterator[Diagnosis]:
    """Below SM89 vLLM multiplies FP8 weights in 16 bit."""
    gpu, weights = deployment.machine.gpu, deployment.model.weights
    if gpu is None or weights.quantization != "fp8" or gpu.fp8_support != "emulated":
        return
    yield Diagnosis(
        f"fp8 weights run as weight-only on {gpu.name}",
        f"compute capability {gpu.compute_capability} has no FP8 unit: weights are widened before each 16-bit multiplication, "
        "and prefill is no faster than with 4-bit weights",
        "take a W4A16 checkpoint to leave more memory to KV, or int8 activations (W8A8) for prefill speed",
    )


@rule("LR519", "advice", "fp4_weights_only_smaller", "FP4 weights save memory here, not time")
def fp4_weights_only_smaller(deployment: Deployment) -> Iterator[Diagnosis]:
    """FP4 units came with Blackwell."""
    gpu, weights = deployment.machine.gpu, deployment.model.weights
    if gpu is None or weights.quantization not in ("nvfp4", "mxfp4"):
        return
    major = _major(gpu)
    if major is None or major >= _FP4_CAPABILITY:
        return
    yield Diagnosis(
        f"{weights.quantization} weights run as weight-only on {gpu.name}",
        f"compute capability {gpu.compute_capability} has no FP4 unit: weights are widened before each multiplication",
        "none needed for memory; for prefill speed take a checkpoint in a format this card computes "
        f"({'fp8' if gpu.fp8_support == 'native' else 'int8'})",
    )


@rule("LR520", "advice", "gpu_unknown", "the GPU is not known")
def gpu_unknown(deployment: Deployment) -> Iterator[Diagnosis]:
    """Without the card nothing can be said about memory and speed."""
    machine = deployment.machine
    if machine.gpu is not None or machine.device_type == "cpu" or deployment.is_foreign:
        return
    yield Diagnosis(
        f"the {machine.num_gpus or 1} GPU(s) of this machine are not known",
        f"device type '{machine.device_type}' and no card named: memory, backends and speed were not checked",
        "name them with --gpus 4xRTX4090",
    )


@rule("LR521", "advice", "numa_not_bound", "workers are not bound to their GPU's NUMA node")
def numa_not_bound(deployment: Deployment) -> Iterator[Diagnosis]:
    """Host memory on the far node slows copies to and from the CPU tier."""
    machine = deployment.machine
    if (machine.num_numa_nodes or 1) < 2 or deployment.options.numa_bind or machine.device_type != "cuda":
        return
    yield Diagnosis(
        f"workers are not bound to one of the {machine.num_numa_nodes} NUMA nodes",
        "a worker on the far node reaches its GPU and its pinned memory over the socket bridge; on NVLink boxes +1.9 % decode "
        "is all that was measured, with a CPU tier it matters more",
        "add --numa-bind (needs numactl)",
        set_option("numa_bind", True),
    )


@rule("LR522", "advice", "numa_bind_without_numactl", "--numa-bind needs numactl")
def numa_bind_without_numactl(deployment: HasOptions) -> Iterator[Diagnosis]:
    """The engine starts its workers through numactl and stops when it is missing."""
    if not deployment.options.numa_bind:
        return
    yield Diagnosis(
        "--numa-bind needs numactl on the engine's PATH",
        "without it vLLM stops: 'numactl is required for NUMA binding but is not installed'; in a container the memory policy "
        "also needs --cap-add SYS_NICE",
        "apt-get install numactl",
    )


RULES: tuple[Rule, ...] = (
    gpu_without_bf16,
    dtype_falls_back,
    gpu_name_ambiguous,
    fp8_weights_only_smaller,
    fp4_weights_only_smaller,
    gpu_unknown,
    numa_not_bound,
    numa_bind_without_numactl,
)
