from dataclasses import replace
from typing import get_args

import pytest

from longreach.forecast.rates import ComputeRates, Precision, compute_rates, linear_precision
from longreach.hardware.catalogue import find_gpu, gpu_names
from longreach.model.source import load_model
from longreach.model.spec import ModelSpec, QuantizationName

T = 1e12


def quantized(quantization: QuantizationName, name: str = "qwen3-32b") -> ModelSpec:
    model = load_model(name)
    return replace(model, weights=replace(model.weights, quantization=quantization))


def rates(
    gpu: str, quantization: QuantizationName = "none", kv_cache_dtype: str = "auto", name: str = "qwen3-32b"
) -> ComputeRates:
    return compute_rates(find_gpu(gpu), quantized(quantization, name), kv_cache_dtype)


@pytest.mark.parametrize(
    ("gpu", "best", "basis"),
    [
        ("RTX4090", 173 * T, "the best bf16 matmul ever measured"),
        ("RTX5090", 242 * T, "the best bf16 matmul ever measured"),
        ("H100 SXM5 80GB", 989.4 * T, "the nominal peak, which no measurement exceeds"),
        ("RTX4080", 97.5 * 1.2 * T, "the nominal peak x 1.2, no matmul is published"),
        ("A40", 149.7 * T, "the nominal peak"),
    ],
)
def test_the_best_rate_is_the_peak_or_what_was_measured_above_it(gpu: str, best: float, basis: str) -> None:
    found = rates(gpu)
    assert found.linear_best == found.attention_best == pytest.approx(best)
    assert found.basis == basis


@pytest.mark.parametrize(
    ("gpu", "quantization", "precision"),
    [
        ("RTX4090", "none", "bf16"),
        ("RTX4090", "w4a16", "bf16"),
        ("RTX4090", "fp8-weight-only", "bf16"),
        ("RTX4090", "fp8", "fp8"),
        ("RTX3090", "fp8", "bf16"),
        ("RTX3090", "w8a8-int8", "int8"),
        ("RTX5090", "nvfp4", "fp4"),
        ("H100 SXM5 80GB", "mxfp4", "fp8"),
        ("RTX3090", "nvfp4", "bf16"),
        ("B300", "nvfp4", "fp4"),
        ("RTX4090", "other", "fp8"),
    ],
)
def test_the_bound_takes_the_fastest_form_the_weights_allow(
    gpu: str, quantization: QuantizationName, precision: Precision
) -> None:
    assert linear_precision(find_gpu(gpu), quantization) == precision


@pytest.mark.parametrize(
    ("gpu", "quantization", "best"),
    [
        ("RTX4090", "fp8", 660.6 * 173 / 165.2),
        ("RTX3090", "w4a8-int8", 284 * 76.7 / 71),
        ("H100 SXM5 80GB", "fp8", 1978.9),
        ("RTX5090 D v2", "fp8", 4 * 232),
        ("B300", "nvfp4", 8 * 2250),
    ],
)
def test_low_precision_peaks_scale_with_the_measured_clock_and_missing_ones_take_the_widest_ratio(
    gpu: str, quantization: QuantizationName, best: float
) -> None:
    assert rates(gpu, quantization).linear_best == pytest.approx(best * T)


@pytest.mark.parametrize(
    ("gpu", "kv_cache_dtype", "faster"),
    [
        ("H100 SXM5 80GB", "fp8_e4m3", True),
        ("H100 SXM5 80GB", "auto", False),
        ("RTX4090", "fp8_e4m3", False),
        ("MI300X", "fp8", True),
    ],
)
def test_attention_may_multiply_in_fp8_only_where_such_kernels_exist(
    gpu: str, kv_cache_dtype: str, *, faster: bool
) -> None:
    found = rates(gpu, kv_cache_dtype=kv_cache_dtype)
    assert found.attention_best is not None
    assert found.linear_best is not None
    assert (found.attention_best > found.linear_best) is faster


@pytest.mark.parametrize("gpu", ["RTX PRO 4000 Blackwell", "GB10"])
def test_a_card_without_a_matrix_rate_has_none(gpu: str) -> None:
    found = rates(gpu)
    assert (found.linear_best, found.attention_best, found.linear, found.attention) == (None, None, None, None)


def test_a_measured_card_without_a_peak_has_a_range_and_no_bound() -> None:
    found = rates("Jetson AGX Thor T5000")
    assert found.linear_best is None
    assert found.linear is not None


@pytest.mark.parametrize("quantization", get_args(QuantizationName))
def test_no_expected_rate_exceeds_the_best(quantization: QuantizationName) -> None:
    model = quantized(quantization)
    for gpu in map(find_gpu, gpu_names()):
        for kv_cache_dtype in ("auto", "fp8_e4m3"):
            found = compute_rates(gpu, model, kv_cache_dtype)
            for best, expected in ((found.linear_best, found.linear), (found.attention_best, found.attention)):
                assert best is None or expected is None or 0 < expected[0] <= expected[1] <= best, gpu.name


def test_weight_only_formats_compute_no_faster_than_bf16() -> None:
    assert rates("RTX3090", "w4a16").linear == rates("RTX3090", "fp8-weight-only").linear == rates("RTX3090").linear


@pytest.mark.parametrize(("name", "share"), [("qwen3-32b", 0.52), ("gemma-4-31b", 0.12)])
def test_heads_wider_than_flash_attention_takes_lower_the_expectation(name: str, share: float) -> None:
    found = rates("RTX4090", name=name)
    assert found.attention is not None
    assert found.attention[0] == pytest.approx(162 * T * share)


@pytest.mark.parametrize(("gpu", "gain"), [("RTX4090", 1.0), ("H100 SXM5 80GB", 1.0), ("RTX5090", 1.6), ("B200", 3.0)])
def test_fp4_weights_gain_only_where_the_card_multiplies_them(gpu: str, gain: float) -> None:
    plain, packed = rates(gpu).linear, rates(gpu, "nvfp4").linear
    assert plain is not None
    assert packed is not None
    assert packed[1] / plain[1] == pytest.approx(gain)


def test_experts_multiply_at_a_lower_share() -> None:
    dense, experts = rates("RTX4090"), rates("RTX4090", name="qwen3-30b-a3b")
    assert dense.linear is not None
    assert experts.linear is not None
    assert experts.linear[0] < dense.linear[0]
    assert experts.linear[1] < dense.linear[1]
