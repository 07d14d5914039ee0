"""KV data types of foreign commands that no plan would choose: LR132, LR133, LR987 to LR993, LR998. Pure."""

from collections.abc import Iterator

from longreach.hardware.spec import GpuSpec
from longreach.model.spec import AttentionLayer, IndexerLayer, MlaLayer, ModelSpec
from longreach.rules.edit import set_flag
from longreach.rules.named_backend import has_flash_attention_2, named_backend
from longreach.rules.rule import Diagnosis, rule
from longreach.rules.written import CommandRule, WrittenCommand

_FLAG = "--kv-cache-dtype"
_SPARSE_ONLY = ("fp8_ds_mla", "nvfp4_ds_mla")
_LARGEST_FLASH_HEAD = 256
_E4M3_CAPABILITY = 89
_COMPRESSED_KEEPS_E5M2 = (0, 24)
_PLAIN_FP8_PUBLISHERS = ("qwen/", "deepseek-ai/", "minimaxai/", "moonshotai/")


def _dtype(written: WrittenCommand) -> str:
    return written.value(_FLAG) or "auto"


def _gpu(written: WrittenCommand) -> GpuSpec | None:
    return written.machine.gpu if written.machine is not None else None


def _has(model: ModelSpec, kind: type[MlaLayer] | type[IndexerLayer]) -> bool:
    return any(isinstance(layer, kind) for layer in model.layers)


@rule(
    "LR987",
    "error",
    "sparse_kv_dtype_on_other_model",
    "a KV data type of sparse latent attention on another model",
    outcome="refused_at_start",
)
def sparse_kv_dtype_on_other_model(written: WrittenCommand) -> Iterator[Diagnosis]:
    """The formats hold one latent with its scales; no other backend reads them."""
    dtype, model = _dtype(written), written.model
    if dtype not in _SPARSE_ONLY or model is None or _has(model, IndexerLayer):
        return
    yield Diagnosis(
        f"{_FLAG} {dtype} does not go with '{model.name}'",
        f"the format is for sparse latent attention (DeepSeek-V3.2, GLM-5); {model.architecture} has none, and vLLM finds no "
        "valid attention backend",
        f"set {_FLAG} fp8",
        edit=set_flag(_FLAG, "fp8"),
    )


@rule("LR988", "warning", "sparse_kv_dtype_model_unknown", "a KV data type for sparse latent attention only")
def sparse_kv_dtype_model_unknown(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Which model it is for cannot be told."""
    dtype = _dtype(written)
    if dtype not in _SPARSE_ONLY or written.model is not None:
        return
    yield Diagnosis(
        f"{_FLAG} {dtype} is for models with sparse latent attention only",
        "DeepSeek-V3.2 and GLM-5 have it; for every other model vLLM finds no valid attention backend",
        f"set {_FLAG} fp8 unless this is such a model (there fp8 means the same)",
    )


@rule(
    "LR989",
    "error",
    "packed_kv_on_latents",
    "packed KV formats do not go with latent attention",
    outcome="refused_at_start",
    first="0.20.0",
)
def packed_kv_on_latents(written: WrittenCommand) -> Iterator[Diagnosis]:
    """They halve a head's vector; a latent has no heads."""
    dtype, model = _dtype(written), written.model
    if model is None or not _has(model, MlaLayer) or dtype in _SPARSE_ONLY:
        return
    if not dtype.startswith(("nvfp4", "turboquant_", "int4_", "int8_", "ultraquant_")):
        return
    yield Diagnosis(
        f"{_FLAG} {dtype} does not go with the latent attention of '{model.name}'",
        "vLLM: 'nvfp4 KV cache is not supported with MLA (Multi-head Latent Attention) backends', and likewise for the other "
        f"packed formats: no MLA backend reads {dtype}",
        f"set {_FLAG} fp8",
        edit=set_flag(_FLAG, "fp8"),
    )


@rule(
    "LR990",
    "error",
    "turboquant_on_hybrid",
    "TurboQuant KV on a hybrid",
    outcome="refused_at_start",
    first="0.20.0",
    last="0.20.2",
)
def turboquant_on_hybrid(written: WrittenCommand) -> Iterator[Diagnosis]:
    """The first release with it protects the first and last layers, which must be alike."""
    dtype, model = _dtype(written), written.model
    if model is None or not model.is_hybrid or not dtype.startswith("turboquant_"):
        return
    yield Diagnosis(
        f"{_FLAG} {dtype} is refused for the hybrid '{model.name}'",
        "vLLM 0.20: 'TurboQuant KV cache is not supported for hybrid (attention + Mamba) models'; 0.21 and later take it",
        f"use vLLM 0.21 or later, or {_FLAG} fp8",
        edit=set_flag(_FLAG, "fp8"),
    )


@rule(
    "LR991",
    "error",
    "kv_dtype_on_forced_backend",
    "the model forces an attention backend that does not store this KV data type",
    outcome="refused_at_start",
    first="0.19.0",
)
def kv_dtype_on_forced_backend(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Heads of two sizes, one above what FlashAttention 2 and 3 take: Triton for all layers, unless FlashAttention 4 is there."""
    dtype, model = _dtype(written), written.model
    if model is None or not dtype.startswith(("turboquant_", "nvfp4", "ultraquant_")):
        return
    if not _forces_triton(written, model) or written.parsed.named("--attention-backend"):
        return
    yield Diagnosis(
        f"no attention backend takes {_FLAG} {dtype} for '{model.name}'",
        f"its layers have heads of {', '.join(map(str, sorted(_head_dims(model))))} dimensions, for which vLLM "
        f"{written.release.version} forces TRITON_ATTN here; that backend does not read {dtype}",
        f"set {_FLAG} fp8",
        edit=set_flag(_FLAG, "fp8"),
    )


def _head_dims(model: ModelSpec) -> set[int]:
    return {layer.head_dim for layer in model.layers if isinstance(layer, AttentionLayer)}


def _forces_triton(written: WrittenCommand, model: ModelSpec) -> bool:
    sizes, gpu = _head_dims(model), _gpu(written)
    if not model.architecture.startswith("Gemma4") or len(sizes) < 2 or max(sizes) <= _LARGEST_FLASH_HEAD:
        return False
    if written.release.number < (0, 24):
        return True
    # From 0.24 on FlashAttention 4 takes such heads, on Hopper and datacenter Blackwell.
    return gpu is not None and gpu.vendor == "NVIDIA" and gpu.compute_capability.partition(".")[0] not in ("9", "10")


@rule(
    "LR992",
    "error",
    "nvfp4_kv_consumer",
    "NVFP4 KV needs datacenter Blackwell in this release",
    outcome="refused_at_start",
    first="0.20.0",
    last="0.31.0",
)
def nvfp4_kv_consumer(written: WrittenCommand) -> Iterator[Diagnosis]:
    """FlashInfer's trtllm-gen kernels exist for SM100 and SM103; from 0.32 on FA2 kernels read the format on other cards."""
    dtype, gpu = _dtype(written), _gpu(written)
    if not dtype.startswith("nvfp4") or dtype in _SPARSE_ONLY or gpu is None or gpu.vendor != "NVIDIA":
        return
    if gpu.compute_capability.partition(".")[0] == "10":
        return
    yield Diagnosis(
        f"{_FLAG} {dtype} does not run on {gpu.name} before vLLM 0.32",
        f"its kernels are for compute capability 10.x, the card has {gpu.compute_capability}: '--kv-cache-dtype nvfp4 requires the "
        "SM100 trtllm-gen FlashInfer path'",
        f"set {_FLAG} fp8, or use vLLM 0.32",
        edit=set_flag(_FLAG, "fp8"),
    )


@rule(
    "LR993",
    "warning",
    "fp8_kv_needs_fa3",
    "FP8 KV on the V1 engine needs FlashAttention 3",
    last="0.10.2",
)
def fp8_kv_needs_fa3(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Early V1 stores FP8 through FlashAttention 3 alone, which runs on Hopper."""
    gpu = _gpu(written)
    if not _dtype(written).startswith("fp8") or (written.model is not None and _has(written.model, MlaLayer)):
        return
    if gpu is not None and (gpu.vendor != "NVIDIA" or gpu.compute_capability.startswith("9.")):
        return
    where = f"{gpu.name} is none" if gpu is not None else "which card this is for is not said"
    yield Diagnosis(
        f"{_FLAG} {_dtype(written)} on vLLM {written.release.version} is for Hopper cards; {where}",
        "V1 reads FP8 KV through FlashAttention 3 only; elsewhere it falls back to the V0 engine, or stops with 'FlashAttention "
        "does not support fp8 kv-cache on this device'",
        "use a later release, where FlashInfer or Triton reads it, or leave the flag out",
    )


@rule(
    "LR998",
    "error",
    "e5m2_kv_on_fp8_checkpoint",
    "fp8_e5m2 KV on an FP8 checkpoint",
    outcome="refused_at_start",
)
def e5m2_kv_on_fp8_checkpoint(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Its attention layers carry scales for e4m3."""
    model = written.model
    if model is None or _dtype(written) != "fp8_e5m2" or model.weights.quantization != "fp8":
        return
    if written.release.number >= _COMPRESSED_KEEPS_E5M2 and not _is_plain_fp8(written, model):
        return
    if written.options.quantization not in (None, "fp8", "compressed-tensors", "modelopt"):
        return
    yield Diagnosis(
        f"{_FLAG} fp8_e5m2 is refused for the FP8 checkpoint of '{model.name}'",
        "vLLM stops: 'fp8_e5m2 kv-cache is not supported with fp8 checkpoints.'",
        f"set {_FLAG} fp8_e4m3",
        edit=set_flag(_FLAG, "fp8_e4m3"),
    )


@rule(
    "LR132",
    "error",
    "fp8_kv_on_flash_attention_2",
    "FlashAttention 2 stores no FP8 KV",
    first="0.11.0",
    outcome="refused_at_start",
)
def fp8_kv_on_flash_attention_2(written: WrittenCommand) -> Iterator[Diagnosis]:
    """FlashAttention 3 reads FP8, on Hopper; newer versions on datacenter Blackwell. Other cards have the second."""
    gpu = _gpu(written)
    if gpu is None or named_backend(written) != "FLASH_ATTN" or not _dtype(written).startswith("fp8"):
        return
    if not has_flash_attention_2(written):
        return
    yield Diagnosis(
        f"attention backend FLASH_ATTN does not store {_dtype(written)} KV on {gpu.name}",
        f"compute capability {gpu.compute_capability} has FlashAttention 2, which reads 16-bit KV only; a backend "
        "asked for by name is not replaced, so the worker stops",
        "leave the backend out: FlashInfer or Triton is then taken",
    )


@rule("LR133", "warning", "fp8_e4m3_needs_sm89", "Triton compiles no e4m3 below compute capability 8.9")
def fp8_e4m3_needs_sm89(written: WrittenCommand) -> Iterator[Diagnosis]:
    """FlashInfer converts it on older cards, Triton does not."""
    gpu, backend = _gpu(written), named_backend(written)
    if gpu is None or gpu.vendor != "NVIDIA" or backend not in ("TRITON_ATTN", "TRITON_ATTN_VLLM_V1", "TRITON_MLA"):
        return
    if _dtype(written) not in ("fp8", "fp8_e4m3") or int(gpu.compute_capability.replace(".", "")) >= _E4M3_CAPABILITY:
        return
    yield Diagnosis(
        f"attention backend {backend} does not store {_dtype(written)} KV on {gpu.name}",
        f"compute capability {gpu.compute_capability} has no e4m3 in Triton: 'type fp8e4nv not supported in this architecture'",
        f"leave the backend out, or set {_FLAG} auto",
        edit=set_flag(_FLAG, "auto"),
    )


def _is_plain_fp8(written: WrittenCommand, model: ModelSpec) -> bool:
    """Whether quant_method is fp8 for sure, not compressed-tensors."""
    return model.weights.quant_method == "fp8" or (written.parsed.model or "").lower().startswith(_PLAIN_FP8_PUBLISHERS)


RULES: tuple[CommandRule, ...] = (
    sparse_kv_dtype_on_other_model,
    sparse_kv_dtype_model_unknown,
    packed_kv_on_latents,
    turboquant_on_hybrid,
    kv_dtype_on_forced_backend,
    nvfp4_kv_consumer,
    fp8_kv_needs_fa3,
    e5m2_kv_on_fp8_checkpoint,
    fp8_kv_on_flash_attention_2,
    fp8_e4m3_needs_sm89,
)
