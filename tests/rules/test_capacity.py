from dataclasses import replace

import pytest
from tests.rules.deployments import DENSE, HYBRID, MEMORY, count, with_gpu, with_options

from longreach.engine.release import get_release
from longreach.model.spec import WeightsSpec
from longreach.rules.capacity import (
    architecture_not_in_release,
    kv_too_small_for_max_len,
    model_too_new,
    null_block_reserved,
)
from longreach.rules.deployment import Deployment
from longreach.rules.finding import Finding
from longreach.rules.remedy import set_option
from longreach.sizing.values import MemoryBudget
from longreach.units import GIB

ROOMY = replace(MEMORY, gpu_total_bytes=(80 * GIB, 80 * GIB))
BF16 = with_options(DENSE, kv_cache_dtype=None)
PAIR = with_options(DENSE, tensor_parallel_size=2)
TINY = with_options(DENSE, kv_cache_memory_bytes=500_000)


def refusal(deployment: Deployment) -> Finding:
    (finding,) = kv_too_small_for_max_len.check(deployment)
    return finding


def test_refusal_counts_tokens_of_a_model_with_one_kind_of_layer() -> None:
    assert refusal(DENSE).why == (
        "10 GiB on each of 4 GPUs holds 327680 tokens (32768 bytes a token a GPU at fp8_e4m3); 22.89 GiB on each is needed"
    )


def test_refusal_counts_blocks_of_a_hybrid() -> None:
    finding = refusal(with_options(HYBRID, kv_cache_memory_bytes=5 * GIB))
    assert "holds 385 blocks of 13926400 bytes at fp8_e4m3 and one such request takes 484" in finding.why


def test_refusal_on_one_gpu_speaks_of_the_gpu() -> None:
    assert refusal(with_options(DENSE, tensor_parallel_size=1)).why.startswith("10 GiB on the GPU holds 81920 tokens")


def test_bytes_come_first_where_the_gpu_has_them() -> None:
    finding = refusal(replace(DENSE, memory=ROOMY))
    assert (
        finding.fix == "set --kv-cache-memory-bytes to at least 24576524288 (22.89 GiB), or --max-model-len to 327664"
    )
    assert finding.remedy == set_option("kv_cache_memory_bytes", 24_576_524_288)


def test_bytes_are_offered_and_length_cures_where_the_gpu_is_unknown() -> None:
    finding = refusal(replace(DENSE, memory=None))
    assert finding.fix.startswith("set --kv-cache-memory-bytes to at least 24576524288")
    assert finding.remedy == set_option("max_model_len", 327_664)


@pytest.mark.parametrize(
    ("deployment", "advice"),
    [
        (BF16, "or halve the bytes with --kv-cache-dtype fp8_e4m3"),
        (PAIR, "or halve them with --tensor-parallel-size 4"),
        (TINY, "more or larger GPUs, smaller weights, or a model with fewer KV bytes per token"),
    ],
    ids=["fp8", "more GPUs", "hopeless"],
)
def test_fix_names_what_else_would_help(deployment: Deployment, advice: str) -> None:
    assert refusal(deployment).fix.endswith(advice)


def test_fp8_is_not_advised_where_the_gpu_only_emulates_it() -> None:
    assert "fp8" not in refusal(with_gpu(BF16, fp8_support="emulated")).fix


def test_hopeless_pool_has_no_remedy() -> None:
    assert refusal(TINY).remedy is None


def test_null_block_is_a_wait_without_end_before_it_was_reserved() -> None:
    old = replace(with_options(DENSE, max_model_len=327_680), release=get_release("0.28.0"))
    (finding,) = null_block_reserved.check(count(old))
    assert "0.28.0 starts all the same, and a request of full length waits for ever" in finding.why


@pytest.mark.parametrize("length", [262_144, 327_681, 400_000, 750_000])
@pytest.mark.parametrize("memory", [MEMORY, ROOMY], ids=["full GPU", "roomy GPU"])
def test_remedy_makes_any_refused_length_start(length: int, memory: MemoryBudget) -> None:
    deployment = replace(with_options(DENSE, max_model_len=length, kv_cache_memory_bytes=4 * GIB), memory=memory)
    remedy = refusal(deployment).remedy
    assert remedy is not None
    cured = with_options(deployment, **dict(remedy.changes))
    assert cured.capacity is not None
    assert cured.capacity.starts


@pytest.mark.parametrize("is_foreign", [True, False])
def test_a_release_without_the_checkpoint_s_method_cannot_load_it(*, is_foreign: bool) -> None:
    weights = WeightsSpec("mxfp4", "mxfp4", None, "config")
    model = replace(DENSE.model, weights=weights, architecture_releases=("0.10.1", "0.33.0"))
    old = replace(DENSE, model=model, release=get_release("0.9.2"), is_foreign=is_foreign)
    (finding,) = architecture_not_in_release.check(old)
    assert "0.9.2 has no quantization method 'mxfp4'" in finding.why
    assert not list(model_too_new.check(old))
