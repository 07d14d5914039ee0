"""The peak of the profile run."""

from dataclasses import replace

import pytest
from tests.sizing.models import QWEN3_32B

from longreach.model.catalogue import load_catalogue_model
from longreach.sizing.activations import (
    ProfileRun,
    body_bytes,
    encoder_bytes,
    encoder_output_bytes,
    peak_bytes,
    sampler_bytes,
)
from longreach.units import GIB


def run(model: str, tokens: int = 8192, seqs: int = 1024, copies: float = 9.6, **changes: object) -> ProfileRun:
    whole = ProfileRun(load_catalogue_model(model), 1, tokens, seqs, copies, text_only=False)
    return replace(whole, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "seqs", "tp_size", "logged_gib"),
    [
        ("gpt-oss-20b", 1024, 1, 7.38),
        ("llama-3.1-8b", 1024, 1, 4.76),
        ("llama-3.3-70b", 1024, 2, 4.84),
        ("qwen3-8b", 256, 1, 1.40),
    ],
)
def test_the_sorting_sampler_peaks_where_logs_say(model: str, seqs: int, tp_size: int, logged_gib: float) -> None:
    tokens = 8192 if seqs == 1024 else 2048
    peak = peak_bytes(run(model, tokens, seqs, tp_size=tp_size)) / GIB
    assert peak == pytest.approx(logged_gib, rel=0.01)


def test_the_largest_pass_counts_not_the_sum() -> None:
    few = run("llama-3.1-8b", seqs=8)
    assert peak_bytes(few) == int(body_bytes(few)) > sampler_bytes(few)


def test_an_encoder_runs_over_the_largest_image_even_in_small_batches() -> None:
    small, large = run("qwen3.6-27b", tokens=2048, seqs=1), run("qwen3.6-27b", tokens=16384, seqs=1)
    assert encoder_bytes(small) == encoder_bytes(large) > body_bytes(small)
    assert peak_bytes(small) == int(encoder_bytes(small) + encoder_output_bytes(small))


def test_without_images_no_encoder_runs() -> None:
    text = run("qwen3.6-27b", tokens=2048, seqs=1, text_only=True)
    assert (encoder_bytes(text), encoder_output_bytes(text)) == (0, 0)


def test_long_batches_of_a_gated_delta_model_are_dominated_by_its_states() -> None:
    # one start of this model with 65,536 tokens a batch logged 15.97 GiB beside weights and KV
    assert peak_bytes(run("qwen3.6-27b", tokens=65536, seqs=8, copies=2.4)) / GIB == pytest.approx(14, rel=0.1)


def test_experts_in_tiles_take_more_than_experts_in_place() -> None:
    model = run("minimax-m2.5", seqs=10, tp_size=4)
    assert body_bytes(replace(model, sorts_tokens=True)) > 1.8 * body_bytes(model)


def test_latents_are_decompressed_for_chunked_prefill_unless_attention_is_sparse() -> None:
    dense, sparse = run("deepseek-v3", seqs=1, tp_size=8), run("deepseek-v3.2", seqs=1, tp_size=8)
    assert body_bytes(dense) - body_bytes(sparse) == pytest.approx(65536 * 16 * 256 * 2, rel=0.01)


def test_tp_divides_all_but_the_residual_stream() -> None:
    one, four = (body_bytes(run("llama-3.1-8b", seqs=8, tp_size=size)) for size in (1, 4))
    stream = 8192 * 2 * 4 * 4096
    assert four - stream == pytest.approx((one - stream) / 4)


@pytest.mark.parametrize(
    "model", ["granite-4.0-h-1b", "kimi-linear-48b-a3b", "jamba-mini-1.7", "minimax-text-01", "lfm2-2.6b"]
)
def test_every_kind_of_layer_has_a_width(model: str) -> None:
    assert 0.05 < body_bytes(run(model, seqs=8)) / GIB < 12


def test_a_model_without_stated_widths_is_taken_for_typical() -> None:
    plain = ProfileRun(QWEN3_32B, 1, 8192, 8, 2.4, text_only=False)
    assert body_bytes(plain) / GIB == pytest.approx(8192 * 2 * 17 * 8192 / GIB, rel=0.6)
