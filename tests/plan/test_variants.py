"""One instance or two for a mix of prompts: each variant is the plan that it would be alone, and the better one is taken."""

from dataclasses import replace

import pytest

from longreach.engine.release import get_release
from longreach.errors import UsageError
from longreach.hardware.catalogue import parse_gpus
from longreach.hardware.machine import machine_from
from longreach.model.source import load_model
from longreach.plan.build import make_plan
from longreach.plan.choose_variant import plan_mix
from longreach.plan.document import plan_from_document, plan_to_document
from longreach.plan.goal import Goal, NamedGoal
from longreach.plan.mix import parse_mix
from longreach.plan.values import Plan, Variant
from longreach.plan.variants import MixRequest
from longreach.report.plan_text import render_plan
from longreach.report.style import Paint


def asked_for(model: str, gpus: str, mix: str, goal: Goal | None = None) -> MixRequest:
    order = parse_gpus(gpus)
    machine = machine_from(order.gpu, order.count)
    spec = load_model(model, "w4a16")
    return MixRequest(spec, machine, get_release("0.32.0"), goal or Goal(), parse_mix(mix))


DENSE = asked_for("qwen3-32b", "8xRTX4090", "90%:8k,10%:100k")


@pytest.fixture(scope="module")
def dense() -> Plan:
    return plan_mix(DENSE)


def variant_of(plan: Plan, name: str) -> Variant:
    return next(variant for variant in plan.variants if variant.name == name)


def test_short_prompts_get_an_instance_without_yarn(dense: Plan) -> None:
    short, long = dense.instances
    assert (short.name, long.name) == ("short", "long")
    assert short.options.yarn is None
    assert long.options.yarn is not None
    assert short.max_model_len == 40_960
    assert long.max_model_len == 101_024
    assert sorted(short.gpu_indices + long.gpu_indices) == list(range(8))


def test_both_variants_stand_in_the_plan_and_the_chosen_one_is_the_plan(dense: Plan) -> None:
    assert [(variant.name, variant.chosen) for variant in dense.variants] == [("one", False), ("two", True)]
    assert variant_of(dense, "two").instances == dense.instances
    assert [item.name for item in variant_of(dense, "one").instances] == ["main"]
    assert dense.choices[0].option == "--variant"
    assert "without YaRN factor 3.5" in dense.choices[0].why


def test_each_class_is_served_by_the_instance_of_its_length(dense: Plan) -> None:
    two, one = variant_of(dense, "two"), variant_of(dense, "one")
    assert [(item.prompt_tokens, item.instance, item.yarn_factor) for item in two.classes] == [
        (8000, "short", None),
        (100_000, "long", 3.5),
    ]
    assert [(item.instance, item.yarn_factor) for item in one.classes] == [("main", 3.5), ("main", 3.5)]


def test_the_one_variant_equals_the_single_plan(dense: Plan) -> None:
    goal = Goal(max_model_len=101_024, mean_input_tokens=17_200)
    single = make_plan(DENSE.model, DENSE.machine, DENSE.release, [NamedGoal("main", goal)])
    assert variant_of(dense, "one").instances == single.instances


def test_the_two_variant_equals_the_plan_of_two_instances(dense: Plan) -> None:
    short, long = (len(item.gpu_indices) for item in dense.instances)
    goals = [
        NamedGoal("short", Goal(max_model_len=40_960, mean_input_tokens=8000, yarn="none"), short),
        NamedGoal("long", Goal(max_model_len=101_024, mean_input_tokens=100_000), long),
    ]
    assert make_plan(DENSE.model, DENSE.machine, DENSE.release, goals).instances == dense.instances


def test_the_other_variant_can_be_asked_for(dense: Plan) -> None:
    other = plan_mix(DENSE, "one")
    assert other.instances == variant_of(dense, "one").instances
    assert other.choices[0].why.startswith("asked for; two would be chosen")


@pytest.mark.parametrize(
    ("gpus", "mix", "word"),
    [
        ("8xRTX4090", "1:8k,1:30k", "no prompt of the mix needs YaRN"),
        ("8xRTX4090", "1:60k,1:100k", "every prompt of the mix needs YaRN"),
        ("1xH100", "1:8k,1:60k", "two GPUs"),
    ],
    ids=["all short", "all long", "one GPU"],
)
def test_two_instances_are_not_weighed_where_they_make_no_sense(gpus: str, mix: str, word: str) -> None:
    asked = asked_for("qwen3-32b", gpus, mix)
    plan = plan_mix(asked)
    assert [variant.name for variant in plan.variants] == ["one"]
    assert word in plan.choices[0].why
    with pytest.raises(UsageError, match="variant 'two'"):
        plan_mix(asked, "two")


def test_the_variant_that_fits_is_taken_and_the_other_says_why_it_does_not() -> None:
    plan = plan_mix(asked_for("qwen3-32b", "4xRTX4090", "90%:8k,10%:400k"))
    two = variant_of(plan, "two")
    assert plan.verdict == "fits"
    assert not two.chosen
    assert two.why.startswith("would not fit: max-model-len 401024")
    assert two.requests_per_hour is None


def test_the_wanted_requests_at_once_are_shared_out() -> None:
    plan = plan_mix(replace(DENSE, goal=Goal(concurrency=10)), "two")
    assert [item.options.max_num_seqs for item in plan.instances] == [9, 1]


def test_tiers_and_sizes_of_the_whole_machine_are_not_taken_twice() -> None:
    goal = Goal(tp_size=8, cpu_tier_bytes=2**37, disk_tier_path="/data/kv")
    plan = plan_mix(replace(DENSE, goal=goal), "two")
    offloads = [item.options.offload for item in plan.instances]
    assert [offload.cpu_bytes for offload in offloads if offload] == [2**36, 2**36]
    assert [offload.disk_path for offload in offloads if offload] == ["/data/kv/short", "/data/kv/long"]
    assert sum(len(item.gpu_indices) for item in plan.instances) <= 8


def test_a_plan_with_variants_reads_back(dense: Plan) -> None:
    assert plan_from_document(plan_to_document(dense)) == dense


def test_the_screen_shows_both_class_by_class(dense: Plan) -> None:
    screen = render_plan(dense, Paint())
    assert "One instance for all prompts (fits" in screen
    assert "Two instances (fits" in screen
    assert "the other one: the same command with --variant one" in screen
    assert "10%        100,000  long" in screen


def test_where_neither_fits_both_say_why() -> None:
    plan = plan_mix(asked_for("qwen3-32b", "4xRTX4090", "1:8k,1:900k"))
    assert plan.verdict == "does_not_fit"
    assert plan.choices[0].why.startswith("neither fits: one instance would not fit")
    assert all(variant.requests_per_hour is None for variant in plan.variants)
    assert all(item.serves for item in plan.alternatives)


def test_a_given_length_is_kept_for_the_long_prompts() -> None:
    plan = plan_mix(replace(DENSE, goal=Goal(max_model_len=120_000)), "two")
    assert [item.max_model_len for item in plan.instances] == [40_960, 120_000]
    assert "the longest prompt and" not in " ".join(choice.why for choice in plan.choices)


def test_a_short_instance_is_only_as_long_as_fits() -> None:
    plan = plan_mix(asked_for("qwen3.6-27b", "2xRTX4090", "9:8k,1:300k"), "two")
    short = plan.instances[0]
    assert short.max_model_len in (9024, 262_144)
    assert short.kv_cache is not None
    assert short.kv_cache.starts


def test_an_unknown_speed_leaves_the_rate_open() -> None:
    asked = replace(DENSE, machine=replace(DENSE.machine, link=None))
    plan = plan_mix(asked)
    assert {variant.requests_per_hour for variant in plan.variants if variant.name == "one"} == {None}
    assert "unknown" in render_plan(plan, Paint())


@pytest.mark.parametrize("goal", [Goal(max_model_len=90_000), Goal(max_model_len=102_000, mean_output_tokens=4000)])
def test_no_prompt_of_a_mix_is_longer_than_the_given_length(goal: Goal) -> None:
    with pytest.raises(UsageError, match="--mix has requests of 10"):
        plan_mix(replace(DENSE, goal=goal))
