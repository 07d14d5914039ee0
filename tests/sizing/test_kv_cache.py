"""The KV cache is counted as vLLM counts it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.sizing.cases import build_request, load_cases
from tests.sizing.models import GEMMA_3_27B, GPT_OSS_20B, NEMOTRON_H_8B, QWEN3_32B, attention, spec

from longreach.engine.release import get_release
from longreach.errors import UsageError
from longreach.model.catalogue import load_catalogue_model
from longreach.model.spec import Mamba2Layer, MlaLayer
from longreach.sizing.kv_cache import concurrency_at, plan_kv_cache, size_kv_cache
from longreach.sizing.startup import LONGEST_SEARCHED_TOKENS, _largest
from longreach.sizing.values import KvCacheRequest
from longreach.units import GIB


@pytest.mark.parametrize("case", load_cases("worked_examples"))
def test_worked_examples_come_to_their_exact_numbers(case: Mapping[str, Any]) -> None:
    capacity = size_kv_cache(build_request(case["model"], case["request"]))
    expected = dict(case["expected"])
    concurrency = expected.pop("max_concurrency", None)
    assert {name: getattr(capacity, name) for name in expected} == expected
    if concurrency is not None:
        assert capacity.max_concurrency == pytest.approx(concurrency, abs=0.005)


def qwen3_32b(**changes: Any) -> KvCacheRequest:
    request = KvCacheRequest(QWEN3_32B, get_release("0.32.0"), 750_000, 10 * GIB, tp_size=4, kv_cache_dtype="fp8_e4m3")
    return replace(request, **changes)


def test_a_refusal_is_said_in_the_engines_words() -> None:
    refusal = size_kv_cache(qwen3_32b()).refusal
    assert refusal == (
        "To serve at least one request with the model's max seq len (750000), (22.89 GiB KV cache is needed, which is larger "
        "than the available KV cache memory (10.0 GiB). Based on the available memory, the estimated maximum model length is "
        "327664."
    )


@pytest.mark.parametrize("available", [-5, 0, 524288])
def test_no_room_for_a_block_is_a_refusal_of_its_own(available: int) -> None:
    capacity = size_kv_cache(qwen3_32b(available_bytes_per_gpu=available))
    assert capacity.refusal == "No available memory for the cache blocks."
    assert (capacity.starts, capacity.largest_max_model_len) == (False, 0)


def test_a_hopeless_refusal_proposes_no_length() -> None:
    request = KvCacheRequest(GEMMA_3_27B, get_release("0.32.0"), 4096, 4_000_000)
    refusal = size_kv_cache(request).refusal
    assert refusal is not None
    assert "estimated maximum model length" not in refusal


def test_a_cache_that_never_grows_has_no_largest_length() -> None:
    model = spec("mamba", [Mamba2Layer(8192, 8, 128, 128, 64, 4)] * 4)
    capacity = size_kv_cache(KvCacheRequest(model, get_release("0.32.0"), 4096, GIB))
    assert capacity.largest_max_model_len == LONGEST_SEARCHED_TOKENS


def test_the_fullest_stage_of_a_pipeline_decides() -> None:
    capacity = size_kv_cache(qwen3_32b(pp_size=3))  # 64 layers as 21, 22, 21
    assert capacity.bytes_per_block == 22 * 8192
    assert capacity.num_blocks == 10 * GIB // (22 * 8192)
    assert capacity.certainty == "exact"


def test_a_refusal_is_worded_by_the_first_stage_that_refuses() -> None:
    refusal = size_kv_cache(qwen3_32b(pp_size=3, available_bytes_per_gpu=7 * GIB)).refusal
    assert refusal is not None
    assert "(7.51 GiB KV cache is needed" in refusal  # stage 0 holds 21 layers, the fullest 22


@pytest.mark.parametrize(
    ("async_scheduling", "model_runner_v2", "pp_size", "batches"),
    [
        (True, True, 1, 2),
        (True, False, 1, 2),
        (False, True, 1, 1),
        (True, True, 2, 3),
        (True, False, 2, 2),
        (False, True, 4, 4),
    ],
)
def test_windows_hold_the_batches_in_flight(
    *, async_scheduling: bool, model_runner_v2: bool, pp_size: int, batches: int
) -> None:
    request = KvCacheRequest(GEMMA_3_27B, get_release("0.32.0"), 131072, GIB, max_num_batched_tokens=4096)
    plan = plan_kv_cache(
        replace(request, async_scheduling=async_scheduling, model_runner_v2=model_runner_v2, pp_size=pp_size)
    )
    assert plan.shape.in_flight_tokens == batches * 4096


def test_chained_drafts_hold_a_window_longer() -> None:
    drafts = [attention(8, 64)] * 3
    model = replace(GPT_OSS_20B, draft_layers=tuple(drafts))
    request = KvCacheRequest(model, get_release("0.32.0"), 131072, GIB, use_draft_layers=True, num_speculative_tokens=3)
    assert plan_kv_cache(request).shape.lookahead_tokens == 2
    assert plan_kv_cache(replace(request, num_speculative_tokens=1)).shape.lookahead_tokens == 0


def test_mamba2_keeps_one_state_more_from_029() -> None:
    request = KvCacheRequest(NEMOTRON_H_8B, get_release("0.29.0"), 131072, 16 * GIB)
    assert size_kv_cache(request).blocks_per_request == 145
    assert size_kv_cache(replace(request, release=get_release("0.28.0"))).blocks_per_request == 139


def test_an_unrecorded_layer_order_makes_a_pipeline_an_estimate() -> None:
    capacity = size_kv_cache(KvCacheRequest(NEMOTRON_H_8B, get_release("0.32.0"), 4096, GIB, pp_size=2))
    assert capacity.certainty == "estimate"
    assert capacity.estimate_reason is not None


def test_a_model_known_approximately_stays_an_estimate() -> None:
    model = replace(QWEN3_32B, kv_estimate_reason="its index keys are not counted")
    capacity = size_kv_cache(qwen3_32b(model=model))
    assert (capacity.certainty, capacity.estimate_reason) == ("estimate", "its index keys are not counted")


def test_a_checkpoint_may_bring_its_own_kv_scheme() -> None:
    model = replace(QWEN3_32B, kv_cache_dtype_forced="fp8")
    assert size_kv_cache(qwen3_32b(model=model, kv_cache_dtype="auto")).bytes_per_block == 524288


def test_compressed_caches_store_fewer_vectors() -> None:
    model = spec("compressed", [MlaLayer(64, 512, 64, 128, 128, tokens_per_state=4)] * 2)
    assert size_kv_cache(KvCacheRequest(model, get_release("0.32.0"), 4096, GIB)).bytes_per_block == 2 * 4 * 1152


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tp_size": 3}, "does not divide 64 attention heads"),
        ({"tp_size": 0}, "--tp 0 is not a size"),
        ({"max_model_len": 0}, "--max-model-len 0 is not a size"),
        ({"pp_size": 65}, "exceeds 64 decoder layers"),
        ({"dcp_size": 3}, "does not divide tensor parallel size 4"),
        ({"block_size": -16}, "--block-size -16 is not a size"),
        ({"model": GEMMA_3_27B, "dcp_size": 2, "tp_size": 2}, "does not work with sliding-window layers"),
    ],
)
def test_impossible_sizes_are_refused_with_a_way_out(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words) as raised:
        size_kv_cache(qwen3_32b(**changes))
    assert raised.value.fix


def test_concurrency_depends_on_the_length_of_a_request() -> None:
    request = qwen3_32b()
    assert concurrency_at(request, 32_768) == 10.0
    assert concurrency_at(request, 750_000) == size_kv_cache(request).max_concurrency


def test_the_largest_length_is_found_in_few_probes() -> None:
    probes: list[int] = []

    def fits(tokens: int) -> bool:
        probes.append(tokens)
        return tokens <= 999_983

    assert _largest(fits, LONGEST_SEARCHED_TOKENS) == 999_983
    assert len(probes) <= 2 * (999_983).bit_length() + 1


def test_a_release_that_checks_the_first_group_alone_starts_what_it_cannot_hold() -> None:
    model = load_catalogue_model("gpt-oss-120b")
    request = KvCacheRequest(model, get_release("0.15.1"), 131_072, 2 * GIB)
    capacity = size_kv_cache(request)
    assert capacity.starts
    assert not capacity.serves
    assert capacity.max_concurrency < 1
    assert capacity.needed_bytes_per_gpu > 2 * GIB
    assert capacity.largest_max_model_len < 131_072
    assert not size_kv_cache(replace(request, release=get_release("0.19.1"))).starts
