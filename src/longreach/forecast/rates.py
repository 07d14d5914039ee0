"""How fast one GPU computes: rates nobody beats, and rates that vLLM was seen to reach. docs/forecast.md has the evidence."""

from dataclasses import dataclass
from typing import Literal

from longreach.hardware.spec import GpuSpec
from longreach.model.spec import AttentionLayer, ModelSpec, QuantizationName

Precision = Literal["bf16", "fp8", "int8", "fp4"]

_PRECISION: dict[QuantizationName, Precision] = {  # of the matrix multiplications; weight-only formats multiply in bf16
    "none": "bf16",
    "w4a16": "bf16",
    "fp8-weight-only": "bf16",
    "fp8": "fp8",
    "w8a8-int8": "int8",
    "w4a8-int8": "int8",
    "nvfp4": "fp4",
    "mxfp4": "fp4",
    "other": "fp4",  # not known: the bound must hold for the fastest
}
_WIDEST_RATIO: dict[Precision, float] = {
    "bf16": 1,
    "fp8": 4,
    "int8": 4,
    "fp4": 8,
}  # to bf16, over all cards with figures
_UNMEASURED_GEFORCE_BOOST = 1.2  # GeForce cards clock above their stated boost: measured x1.05 to x1.16 on four of them
_FP8_ATTENTION = frozenset({"9.0", "10.0", "10.3", "gfx942", "gfx950"})  # kernels that multiply fp8 queries by fp8 keys

# Shares of the best bf16 matmul that kernels reach inside a prefill, least and most.
_MATMUL_SHARE_GEFORCE, _MATMUL_SHARE_OTHER = (
    (0.98, 1.08),
    (0.60, 0.87),
)  # of the nominal peak, where no matmul is published
_LINEAR_SHARE_GEFORCE, _LINEAR_SHARE_OTHER, _MOE_SHARE = (0.70, 0.92), (0.74, 0.97), (0.26, 0.66)
_ATTENTION_SHARE_GEFORCE = (0.52, 0.78)
_ATTENTION_SHARE_OTHER = (0.38, 0.70)  # full-rate matrix units outrun the softmax
_ATTENTION_SHARE_HARD = (0.12, 0.50)  # heads wider than 256 (no FlashAttention kernel), sparse latents (absorbed form)
_WIDEST_FLASH_HEAD = 256
_GAIN_GEFORCE: dict[Precision, tuple[float, float]] = {  # linear layers over bf16, as measured in prefills
    "bf16": (1.0, 1.0),
    "fp8": (0.9, 1.5),
    "int8": (1.25, 1.75),
    "fp4": (0.85, 1.6),
}
_GAIN_OTHER: dict[Precision, tuple[float, float]] = {**_GAIN_GEFORCE, "fp8": (1.2, 1.8), "fp4": (1.2, 3.0)}


@dataclass(frozen=True, slots=True)
class ComputeRates:
    """FLOP/s of one GPU. `best` rates cannot be beaten; pairs are the expected range. None: no matrix rate is known."""

    linear_best: float | None
    attention_best: float | None
    linear: tuple[float, float] | None
    attention: tuple[float, float] | None
    precision: Precision  # of the linear layers, at best
    basis: str


def compute_rates(gpu: GpuSpec, model: ModelSpec, kv_cache_dtype: str) -> ComputeRates:
    """Rates for this model's layers on this GPU."""
    precision = linear_precision(gpu, model.weights.quantization)
    matmul = _matmul_range(gpu)
    fp8_attention = kv_cache_dtype.startswith("fp8") and gpu.compute_capability in _FP8_ATTENTION
    linear_best, bf16_best = _best(gpu, precision), _best(gpu, "bf16")
    ratio = linear_best / bf16_best if linear_best and bf16_best else 1.0
    gain_low, gain_high = _gain(gpu, model.weights.quantization, precision)
    share = _MOE_SHARE if model.is_moe else (_LINEAR_SHARE_GEFORCE if _is_geforce(gpu) else _LINEAR_SHARE_OTHER)
    attention_share = _attention_share(gpu, model)
    return ComputeRates(
        linear_best=linear_best,
        attention_best=_best(gpu, "fp8") if fp8_attention else bf16_best,
        linear=matmul and (matmul[0] * share[0] * min(gain_low, ratio), matmul[1] * share[1] * min(gain_high, ratio)),
        attention=matmul and (matmul[0] * attention_share[0], matmul[1] * attention_share[1]),
        precision=precision,
        basis=_basis(gpu),
    )


def linear_precision(gpu: GpuSpec, quantization: QuantizationName) -> Precision:
    """The fastest form in which this card can multiply these weights."""
    wanted = _PRECISION[quantization]
    if wanted == "fp4" and gpu.fp4_flops is None and not gpu.architecture.startswith("Blackwell"):
        wanted = "fp8"
    if wanted == "fp8" and gpu.fp8_support in {"emulated", "none"}:
        return "bf16"
    return wanted


def _best(gpu: GpuSpec, precision: Precision) -> float | None:
    """Nominal peak, raised by what real clocks were measured (or may be taken) to add."""
    nominal = gpu.fp16_fp32acc_flops
    if nominal is None:
        return None
    peak = {"bf16": nominal, "fp8": gpu.fp8_best_flops, "int8": gpu.int8_ops, "fp4": gpu.fp4_flops}[precision]
    return (peak or nominal * _WIDEST_RATIO[precision]) * _boost(gpu, nominal)


def _boost(gpu: GpuSpec, nominal: float) -> float:
    if gpu.bf16_gemm_flops is not None:
        return max(1.0, gpu.bf16_gemm_flops[1] / nominal)
    return _UNMEASURED_GEFORCE_BOOST if _is_geforce(gpu) else 1.0


def _matmul_range(gpu: GpuSpec) -> tuple[float, float] | None:
    """Plain bf16 matmul: published results, else the share of the nominal peak that such cards reach."""
    if gpu.bf16_gemm_flops is not None:
        return gpu.bf16_gemm_flops
    if gpu.fp16_fp32acc_flops is None:
        return None
    low, high = _MATMUL_SHARE_GEFORCE if _is_geforce(gpu) else _MATMUL_SHARE_OTHER
    return gpu.fp16_fp32acc_flops * low, gpu.fp16_fp32acc_flops * high


def _gain(gpu: GpuSpec, quantization: QuantizationName, precision: Precision) -> tuple[float, float]:
    """Of the linear layers over bf16. A card without fp4 units unpacks fp4 weights and multiplies in bf16."""
    gains = _GAIN_GEFORCE if _is_geforce(gpu) else _GAIN_OTHER
    low, high = gains["bf16" if _PRECISION[quantization] == "fp4" and precision != "fp4" else precision]
    return (1.0, gains[precision][1]) if quantization == "other" else (low, high)


def _attention_share(gpu: GpuSpec, model: ModelSpec) -> tuple[float, float]:
    widest = max((layer.head_dim for layer in model.layers if isinstance(layer, AttentionLayer)), default=0)
    if widest > _WIDEST_FLASH_HEAD or model.index_topk is not None:
        return _ATTENTION_SHARE_HARD
    return _ATTENTION_SHARE_GEFORCE if _is_geforce(gpu) else _ATTENTION_SHARE_OTHER


def _is_geforce(gpu: GpuSpec) -> bool:
    return gpu.name.startswith("GeForce")


def _basis(gpu: GpuSpec) -> str:
    if gpu.bf16_gemm_flops is not None and gpu.fp16_fp32acc_flops is not None:
        measured = gpu.bf16_gemm_flops[1] > gpu.fp16_fp32acc_flops
        return "the best bf16 matmul ever measured" if measured else "the nominal peak, which no measurement exceeds"
    return "the nominal peak x 1.2, no matmul is published" if _is_geforce(gpu) else "the nominal peak"
