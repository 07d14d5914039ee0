from dataclasses import replace

from tests.rules.deployments import HYBRID, MEMORY, with_machine, with_options

from longreach.rules.rope import max_len_over_derived, yarn_costs_short_prompts
from longreach.units import GIB


def test_second_instance_needs_no_split_where_gpus_are_left() -> None:
    (finding,) = yarn_costs_short_prompts.check(with_options(HYBRID, tensor_parallel_size=2))
    assert "only longer ones with it: a second instance on the GPUs that are free, behind a router" in finding.fix


def test_full_box_is_split_into_two_instances_where_both_may_fit() -> None:
    (finding,) = yarn_costs_short_prompts.check(
        replace(HYBRID, memory=replace(MEMORY, weights_bytes=(4 * GIB, 5 * GIB)))
    )
    assert (
        "two instances of --tp 2, which need 4.67 GiB and 12.58 GiB of KV per GPU for 262144 and 750000 tokens "
        "where 10.59 GiB to 14.48 GiB is left" in finding.fix
    )


def test_a_split_that_cannot_fit_is_not_advised() -> None:
    (finding,) = yarn_costs_short_prompts.check(HYBRID)
    assert "GPUs of its own (half of these leave 7.83 GiB per GPU, and 12.58 GiB is needed)" in finding.fix


def test_an_odd_number_of_gpus_is_not_halved() -> None:
    (finding,) = yarn_costs_short_prompts.check(with_machine(with_options(HYBRID, tensor_parallel_size=1), num_gpus=1))
    assert "a second instance on GPUs of its own, behind a router" in finding.fix


def test_split_is_advised_without_numbers_where_memory_is_unknown() -> None:
    (finding,) = yarn_costs_short_prompts.check(replace(HYBRID, memory=None))
    assert "two instances of --tp 2, if the length still fits" in finding.fix


def test_length_without_rope_plan_can_only_be_lowered() -> None:
    (finding,) = max_len_over_derived.check(replace(with_options(HYBRID, yarn=None), rope=None))
    assert finding.fix == "set --max-model-len 262144"
    assert finding.remedy is None


def test_of_a_mix_the_prompts_below_the_native_length_count() -> None:
    mixed = replace(HYBRID, mean_input_tokens=300_000, prompt_shares=((0.6, 8_000), (0.4, 740_000)))
    (finding,) = yarn_costs_short_prompts.check(mixed)
    assert "the 60% of the prompts that do not need it" in finding.what
    assert not list(yarn_costs_short_prompts.check(replace(mixed, prompt_shares=((1.0, 740_000),))))
