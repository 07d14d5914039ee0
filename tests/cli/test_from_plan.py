import pytest

from longreach.cli.from_plan import expected_speed, launch_specs, verify_target
from longreach.engine.release import get_release
from longreach.hardware.catalogue import find_gpu
from longreach.hardware.machine import machine_from
from longreach.model.source import load_model
from longreach.plan.build import make_plan
from longreach.plan.goal import Goal, NamedGoal
from longreach.plan.values import Plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    goal = Goal(
        max_model_len=750_000, kv_cache_memory_bytes=10 * 2**30, kv_cache_dtype="fp8_e4m3", mean_input_tokens=32_000
    )
    machine = machine_from(find_gpu("RTX 4090", 24564), 4)
    return make_plan(load_model("qwen3.6-27b", "w4a16"), machine, get_release("0.32.0"), [NamedGoal("main", goal)])


def test_launch_gets_the_planned_command_and_figures(plan: Plan) -> None:
    (spec,) = launch_specs(plan)
    instance = plan.instances[0]
    assert instance.kv_cache is not None
    assert (spec.argv, dict(spec.env), spec.port) == (instance.argv, instance.env, 8000)
    assert spec.expected.kv_capacity_tokens == instance.kv_cache.kv_capacity_tokens
    assert (spec.expected.tensor_parallel_size, spec.expected.kv_cache_dtype) == (4, "fp8_e4m3")


def test_verify_expects_what_the_plan_promises(plan: Plan) -> None:
    target = verify_target(plan, plan.instances[0], 749_936)
    assert target.base_url == "http://127.0.0.1:8000"
    assert (target.expected.is_hybrid, target.expected.is_deterministic) == (True, False)
    assert target.expected.speed is not None
    assert target.expected.speed.prompt_tokens == 749_936


def test_a_slightly_shorter_prompt_keeps_a_true_bound(plan: Plan) -> None:
    instance = plan.instances[0]
    full, shorter = instance.speed[0].ttft_cold_s, expected_speed(instance, 700_000)
    assert shorter is not None
    assert full.lower_bound is not None
    assert shorter.ttft_cold_s.lower_bound == pytest.approx(full.lower_bound * (700 / 750) ** 2)
    assert shorter.ttft_cold_s.high == full.high


@pytest.mark.parametrize("prompt_tokens", [28_000, 500_000, 800_000])
def test_a_prompt_far_from_every_forecast_has_none(plan: Plan, prompt_tokens: int) -> None:
    assert expected_speed(plan.instances[0], prompt_tokens) is None
