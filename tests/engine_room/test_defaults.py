"""What vLLM picks when a flag is absent."""

import pytest

from longreach.engine.defaults import (
    default_max_num_batched_tokens,
    default_max_num_seqs,
    device_defaults,
    fallback_dtype,
    resolve_async_scheduling,
    resolve_gpu_memory_utilization,
)
from longreach.engine.options import EngineOptions, SpeculativeOptions
from longreach.engine.release import get_release
from longreach.units import GIB


@pytest.mark.parametrize(
    ("gib", "name", "batched_tokens", "seqs"),
    [
        (24, "RTX 4090", 2048, 256),
        (69.9, "L40S x", 2048, 256),
        (70, "H100", 8192, 1024),
        (79, "NVIDIA A100-SXM4-80GB", 2048, 256),
        (159, "H200", 8192, 1024),
        (160, "B200", 16384, 1024),
    ],
)
def test_batch_defaults_follow_gpu_memory_and_spare_the_a100(
    gib: float, name: str, batched_tokens: int, seqs: int
) -> None:
    assert default_max_num_batched_tokens(int(gib * GIB), name) == batched_tokens
    assert default_max_num_seqs(int(gib * GIB), name) == seqs


def test_batch_defaults_on_cpu_grow_with_the_workers() -> None:
    assert default_max_num_batched_tokens(None, device_type="cpu", world_size=2) == 4096
    assert default_max_num_seqs(None, device_type="cpu", world_size=2) == 256


def test_unknown_memory_gives_no_default() -> None:
    assert default_max_num_batched_tokens(None) is None
    assert default_max_num_seqs(None) is None


def test_block_sizes_per_device() -> None:
    cuda, cpu = device_defaults("cuda"), device_defaults("cpu")
    assert cuda is not None
    assert cpu is not None
    assert (cuda.block_size, cuda.min_kernel_block_size) == (16, 16)
    assert (cpu.block_size, cpu.mla_block_size, cpu.min_kernel_block_size) == (128, 16, 32)
    assert device_defaults("abacus") is None


@pytest.mark.parametrize(
    ("device", "asked", "method", "expected"),
    [
        ("cuda", None, None, True),
        ("cuda", None, "mtp", True),
        ("cuda", None, "ngram", False),
        ("cuda", False, None, False),
        ("cuda", True, "ngram", True),
        ("cpu", None, None, False),
        ("cpu", True, None, False),
        ("abacus", None, None, False),
    ],
)
def test_async_scheduling(device: str, asked: bool | None, method: str | None, expected: bool) -> None:
    speculative = None if method is None else SpeculativeOptions(method, 3)
    options = EngineOptions("m", async_scheduling=asked, speculative=speculative)
    assert resolve_async_scheduling(options, device) is expected


def test_gpu_memory_utilization_is_void_with_explicit_kv_bytes() -> None:
    release = get_release("0.32.0")
    assert resolve_gpu_memory_utilization(EngineOptions("m"), release) == 0.92
    assert resolve_gpu_memory_utilization(EngineOptions("m", gpu_memory_utilization=0.5), release) == 0.5
    assert resolve_gpu_memory_utilization(EngineOptions("m", kv_cache_memory_bytes=1), release) is None


@pytest.mark.parametrize(
    ("architecture", "capability", "expected"),
    [
        ("LlamaForCausalLM", "7.5", "float16"),
        ("Gemma3ForConditionalGeneration", "7.0", "float32"),
        ("Glm4ForCausalLM", "7.5", "float32"),
        ("Glm4MoeForCausalLM", "7.5", "float16"),
        ("LlamaForCausalLM", "8.0", None),
        ("LlamaForCausalLM", "12.0", None),
        ("LlamaForCausalLM", "gfx906", None),
    ],
)
def test_bfloat16_falls_back_where_the_card_has_none(architecture: str, capability: str, expected: str | None) -> None:
    assert fallback_dtype(architecture, capability) == expected
