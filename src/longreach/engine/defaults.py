"""What vLLM picks when a flag is absent, per device. Read in the source of 0.32.0; docs/engine.md tells how far it holds. Pure."""

from dataclasses import dataclass

from longreach.engine.options import EngineOptions
from longreach.engine.release import Release
from longreach.units import GIB


@dataclass(frozen=True, slots=True)
class DeviceDefaults:
    """Defaults that hang on the device type alone. Block sizes in tokens."""

    block_size: int
    mla_block_size: int
    min_kernel_block_size: int  # smallest block the usual attention kernel accepts; MLA on CPU takes 16 only
    async_scheduling: bool


_GPU = DeviceDefaults(block_size=16, mla_block_size=16, min_kernel_block_size=16, async_scheduling=True)
_DEVICES = {
    "cuda": _GPU,
    "rocm": _GPU,
    "xpu": DeviceDefaults(block_size=64, mla_block_size=64, min_kernel_block_size=16, async_scheduling=True),
    "cpu": DeviceDefaults(block_size=128, mla_block_size=16, min_kernel_block_size=32, async_scheduling=False),
}


def device_defaults(device_type: str) -> DeviceDefaults | None:
    """Defaults of "cuda", "rocm", "xpu" or "cpu"; None for a device that is not known."""
    return _DEVICES.get(device_type)


def default_max_num_batched_tokens(
    device_memory_bytes: int | None, gpu_name: str = "", *, device_type: str = "cuda", world_size: int = 1
) -> int | None:
    """Of the API server: 16384 from 160 GiB, 8192 from 70 GiB (not A100), else 2048; CPU 2048 x TP x PP.

    None when the memory is unknown. vLLM compares the total that CUDA reports, and lowers the result to
    max_num_seqs x max_model_len where that is less.
    """
    if device_type == "cpu":
        return 2048 * world_size
    if device_memory_bytes is None:
        return None
    if device_memory_bytes >= 160 * GIB:
        return 16384
    return 8192 if _is_large(device_memory_bytes, gpu_name) else 2048


def default_max_num_seqs(
    device_memory_bytes: int | None, gpu_name: str = "", *, device_type: str = "cuda", world_size: int = 1
) -> int | None:
    """Of the API server: 1024 from 70 GiB (not A100), else 256; CPU 128 x TP x PP. None when the memory is unknown.

    vLLM lowers it to max_num_batched_tokens where that is less.
    """
    if device_type == "cpu":
        return 128 * world_size
    if device_memory_bytes is None:
        return None
    return 1024 if _is_large(device_memory_bytes, gpu_name) else 256


def _is_large(device_memory_bytes: int, gpu_name: str) -> bool:
    # A100 keeps the small defaults up to 160 GiB: large batches cost it throughput.
    return device_memory_bytes >= 160 * GIB or (device_memory_bytes >= 70 * GIB and "a100" not in gpu_name.lower())


def resolve_async_scheduling(options: EngineOptions, device_type: str = "cuda") -> bool:
    """Whether scheduling overlaps execution: never on CPU; by default on GPUs but for drafts made on the host (ngram)."""
    defaults = device_defaults(device_type)
    if defaults is None or not defaults.async_scheduling:
        return False
    if options.async_scheduling is not None:
        return options.async_scheduling
    return options.speculative is None or options.speculative.method not in _HOST_DRAFTS


def fallback_dtype(architecture: str, compute_capability: str) -> str | None:
    """What a bfloat16 model runs as under `--dtype auto` on a card without bfloat16 (below 8.0); None where it has it.

    vLLM warns "Your device ... doesn't support torch.bfloat16. Falling back to ..." and takes float16, or float32 for the
    families that it keeps from float16 (gemma2, gemma3, glm4, plamo2). An explicit `--dtype bfloat16` is refused instead.
    """
    major = compute_capability.partition(".")[0]
    if not major.isdigit() or int(major) >= _BF16_CAPABILITY:
        return None
    return "float32" if architecture.startswith(_NO_FLOAT16) else "float16"


_BF16_CAPABILITY = 8
_NO_FLOAT16 = ("Gemma2For", "Gemma3For", "Glm4For", "Plamo2For")

_HOST_DRAFTS = ("ngram", "suffix", "medusa", "mlp_speculator", "custom_class")


def resolve_gpu_memory_utilization(options: EngineOptions, release: Release) -> float | None:
    """The share of GPU memory vLLM takes; None when explicit KV bytes make it void."""
    if options.kv_cache_memory_bytes is not None:
        return None
    return options.gpu_memory_utilization or release.default_gpu_memory_utilization
