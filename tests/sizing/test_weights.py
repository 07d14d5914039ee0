"""Weights of one GPU."""

from dataclasses import replace

import pytest
from tests.sizing.models import DEEPSEEK_V32, QWEN3_32B, QWEN35_27B

from longreach.model.catalogue import load_catalogue_model
from longreach.model.spec import AttentionLayer, ModelSpec, ParameterCount, QuantizationName, WeightsSpec
from longreach.sizing.weights import plan_weights
from longreach.units import GIB

COUNTED = replace(QWEN3_32B, parameters=ParameterCount(32 * 10**9, 2 * 10**9, 30 * 10**9, "exact"))


def span(model: ModelSpec, tp_size: int = 1, pp_size: int = 1, *, drafts: bool = True) -> tuple[int, int]:
    found = plan_weights(model, tp_size, pp_size, use_draft_layers=drafts).bytes_per_gpu
    assert found is not None
    return found


def weighing(
    model: ModelSpec, quantization: QuantizationName, total: int | None = None, source: str = "headers"
) -> ModelSpec:
    return replace(model, weights=WeightsSpec(quantization, None, total, source))


def test_known_bytes_are_the_least_that_is_loaded() -> None:
    low, high = span(weighing(COUNTED, "fp8", 33 * 10**9))
    assert low == 33 * 10**9
    assert high == pytest.approx(33 * 10**9 * 1.03 + 0.1 * GIB)


def test_rounded_bytes_may_be_fewer_or_more() -> None:
    model = weighing(COUNTED, "other", 33 * 10**9, "33 GiB on disk (rounded)")
    assert span(model)[0] == int(33 * 10**9 * 0.98)
    assert span(weighing(COUNTED, "other", 33 * 10**9, "about 33 GB (rounded)"))[0] == int(33 * 10**9 * 0.97)
    assert span(model)[1] == pytest.approx(33 * 10**9 * 1.02 * 1.03 + 0.1 * GIB)


def test_rounded_bytes_are_narrowed_by_the_parameters() -> None:
    low, _ = span(weighing(COUNTED, "fp8", 33 * 10**9, "about 33 GB (rounded)"))
    assert low == 34 * 10**9  # 30 billion at 8 bits and the embeddings at 16


def test_the_best_guess_lies_inside() -> None:
    plan = plan_weights(weighing(COUNTED, "w4a16"), 2, 1, use_draft_layers=False)
    assert plan.bytes_per_gpu is not None
    assert plan.bytes_per_gpu[0] < plan.middle_bytes < plan.bytes_per_gpu[1]


def test_a_tower_that_no_image_needs_is_left_in_the_file() -> None:
    model = load_catalogue_model("qwen3.6-27b")
    whole, text = (plan_weights(model, 1, 1, use_draft_layers=False, text_only=only) for only in (False, True))
    assert model.widths is not None
    assert model.widths.tower is not None
    assert whole.middle_bytes - text.middle_bytes == pytest.approx(2 * model.widths.tower.parameters, abs=2)


def test_draft_layers_that_no_release_loads_are_not_in_the_file() -> None:
    model = weighing(replace(QWEN35_27B, parameters=COUNTED.parameters, mtp_supported=False), "none")
    assert span(model, drafts=False)[0] == 64 * 10**9


@pytest.mark.parametrize(
    ("quantization", "low"),
    [
        ("none", 64e9),
        ("fp8", 30e9 + 4e9),
        ("w4a16", 30e9 * 4.1 / 8 + 4e9),
        ("nvfp4", 30e9 * 4.5 / 8 + 4e9),
        ("mxfp4", 30e9 * 4.25 / 8 + 4e9),
    ],
)
def test_else_parameters_times_bits_with_embeddings_unquantized(quantization: QuantizationName, low: float) -> None:
    assert span(weighing(COUNTED, quantization))[0] == int(low)


def test_what_cannot_be_known_is_unknown() -> None:
    unknown = plan_weights(weighing(COUNTED, "other"), 1, 1, use_draft_layers=False)
    uncounted = plan_weights(QWEN3_32B, 1, 1, use_draft_layers=False)
    assert (unknown.bytes_per_gpu, unknown.certainty) == (None, "unknown")
    assert (uncounted.bytes_per_gpu, uncounted.certainty) == (None, "unknown")


def test_tp_divides_and_repeats_a_little() -> None:
    one, four = span(weighing(COUNTED, "none")), span(weighing(COUNTED, "none"), 4)
    assert four[0] == one[0] // 4
    assert one[1] / 4 < four[1] < one[1] / 4 * 1.05


def test_kv_heads_fewer_than_gpus_are_held_several_times() -> None:
    many = weighing(
        replace(QWEN35_27B, layers=(AttentionLayer(24, 4, 256, 256),) * 16, parameters=COUNTED.parameters), "none"
    )
    few = replace(many, layers=(AttentionLayer(24, 1, 256, 256),) * 16)
    assert span(few, 4)[1] > span(many, 4)[1]


def test_latent_projections_are_held_by_every_gpu() -> None:
    model = weighing(replace(DEEPSEEK_V32, parameters=ParameterCount(671 * 10**9, 10**9, 37 * 10**9, "exact")), "fp8")
    assert span(model, 8)[1] - span(replace(model, layers=COUNTED.layers), 8)[1] > 0.5 * GIB


def test_a_pipeline_divides_layers_and_leaves_embeddings_at_the_ends() -> None:
    low, high = span(weighing(COUNTED, "none"), pp_size=2)
    assert low == int(64e9 * 0.5 * (30 / 32))
    assert high > 64e9 * (0.5 + 2 / 32)


def test_draft_layers_count_only_when_they_are_used() -> None:
    model = weighing(replace(QWEN35_27B, parameters=COUNTED.parameters), "none")
    assert span(model, drafts=False)[0] == int(64e9 * 64 / 65)
    assert span(model)[0] == 64 * 10**9


def test_published_checkpoints_say_where_their_size_comes_from() -> None:
    plan = plan_weights(load_catalogue_model("qwen3-32b"), 4, 1, use_draft_layers=False)
    assert plan.bytes_per_gpu is not None
    assert plan.bytes_per_gpu[0] == 65_524_246_528 // 4
    assert "Qwen3-32B" in plan.source
