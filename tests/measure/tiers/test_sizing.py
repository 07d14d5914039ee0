from dataclasses import replace

import pytest
from tests.measure.tiers.tier_cases import GIB, planned

from longreach.errors import UsageError
from longreach.measure.tiers.sizing import SizingWish, size_workload
from longreach.measure.tiers.values import WorkloadSizing

GPU_TOKENS = 327_680


def sized(wish: SizingWish | None = None, cpu_gib: int = 200, disk: str | None = None) -> WorkloadSizing:
    return size_workload(planned(cpu=cpu_gib * GIB, disk=disk).instances[0], wish or SizingWish())


@pytest.mark.parametrize("tokens", [None, 2_000, 10_000, 32_768, 60_000])
def test_the_gpus_overflow_and_the_cpu_tier_does_not(tokens: int | None) -> None:
    found = sized(SizingWish(prompt_tokens=tokens))
    assert found.cpu_capacity_tokens == 1_638_400
    assert 1.5 * GPU_TOKENS <= found.distinct_tokens <= 0.8 * found.cpu_capacity_tokens
    assert (found.group_size, found.sends_per_prompt, found.num_requests) == (
        found.num_prompts,
        3,
        3 * found.num_prompts,
    )
    assert found.notes == ()


def test_a_prompt_is_as_long_as_the_plan_s_mean_one() -> None:
    assert sized().prompt_tokens == 32_768


@pytest.mark.parametrize("tokens", [None, 4_000, 32_768])
def test_with_a_disk_each_group_fits_the_cpu_tier_and_all_of_them_do_not(tokens: int | None) -> None:
    found = sized(SizingWish(prompt_tokens=tokens), disk="/kv")
    assert found.cpu_capacity_tokens is not None
    assert 1.5 * GPU_TOKENS <= found.group_size * found.prompt_tokens <= 0.8 * found.cpu_capacity_tokens
    assert found.distinct_tokens >= 1.25 * found.cpu_capacity_tokens
    assert found.num_prompts % found.group_size == 0
    assert (found.sends_per_group, found.num_passes) == (2, 2)


def test_a_cpu_tier_under_twice_the_gpus_is_said_to_add_little() -> None:
    assert "LR307" in sized(cpu_gib=60).notes[0]


def test_without_repeats_every_prompt_comes_once() -> None:
    for disk in (None, "/kv"):
        found = sized(SizingWish(sends=1), disk=disk)
        assert found.num_requests == found.num_prompts
        assert found.distinct_tokens > GPU_TOKENS


def test_too_few_prompts_are_said_not_to_overflow() -> None:
    assert "may not overflow" in sized(SizingWish(num_prompts=9)).notes[-1]
    assert "hardly asked" in sized(SizingWish(num_prompts=20), disk="/kv").notes[-1]


def test_a_note_says_only_what_is_so() -> None:
    (note, *_) = sized(SizingWish(num_prompts=1), disk="/kv").notes
    assert note.startswith("1 prompt of 32,768 tokens: the GPUs")
    assert "every prompt comes again" in sized(disk="/kv").notes[0]


def test_prompts_overflow_every_replica() -> None:
    instance = planned().instances[0]
    twice = replace(instance, options=replace(instance.options, data_parallel_size=2))
    found = size_workload(twice, SizingWish())
    assert found.distinct_tokens >= 2 * 1.5 * GPU_TOKENS
    assert found.gpu_capacity_tokens == GPU_TOKENS, "as each engine tells it"
    assert "may come to another" in found.notes[0]


def test_a_prompt_that_cannot_be_served_is_refused() -> None:
    with pytest.raises(UsageError, match="do not fit"):
        sized(SizingWish(prompt_tokens=131_072))
    with pytest.raises(UsageError, match="answers of 131,072 tokens do not fit"):
        sized(SizingWish(output_tokens=131_072))


def test_without_a_known_capacity_the_user_has_to_say() -> None:
    instance = planned().instances[0]
    unknown = replace(instance, kv_cache=None, tiers=instance.tiers[1:])
    with pytest.raises(UsageError, match="no workload can be sized"):
        size_workload(unknown, SizingWish())
