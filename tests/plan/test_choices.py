"""What a plan chooses by itself never contradicts what it then says."""

import pytest

from longreach.engine.release import get_release
from longreach.hardware.catalogue import parse_gpus
from longreach.hardware.machine import machine_from
from longreach.model.source import load_model
from longreach.plan.build import make_plan
from longreach.plan.goal import Goal, NamedGoal
from longreach.plan.values import Plan
from longreach.report.plan_text import render_plan
from longreach.report.style import Paint


def plan_for(model: str, gpus: str, goal: Goal | None = None) -> Plan:
    order = parse_gpus(gpus)
    machine = machine_from(order.gpu, order.count)
    return make_plan(load_model(model), machine, get_release("0.32.0"), [NamedGoal("main", goal or Goal())])


@pytest.mark.parametrize(
    "place", [("qwen3-32b", "1xRTX3090"), ("deepseek-v3", "4xRTX4090"), ("qwen3.6-27b", "1xRTX5090")]
)
def test_weights_that_fill_the_gpu_are_a_verdict_with_one_reason(place: tuple[str, str]) -> None:
    plan = plan_for(*place)
    assert plan.verdict == "does_not_fit"
    assert [finding.cause for finding in plan.findings] == ["weights_exceed_gpu"]
    assert not {"--kv-cache-memory-bytes", "--kv-cache-dtype"} & set(plan.instances[0].argv)


def test_a_screen_of_weights_that_fill_the_gpu_promises_no_speed() -> None:
    screen = render_plan(plan_for("qwen3-32b", "1xRTX3090"), Paint())
    assert "main: weights and the engine's own use leave nothing of the GPU to the KV cache" in screen
    assert "decode" not in screen
    assert "0 blocks" not in screen


@pytest.mark.parametrize("model", ["qwen3-8b", "qwen3.6-27b", "gemma-3-27b", "gpt-oss-120b"])
def test_a_chosen_limit_of_requests_is_not_advised_against(model: str) -> None:
    plan = plan_for(model, "2xH100")
    assert plan.verdict == "fits"
    assert "max_num_seqs_beyond_cache" not in {finding.cause for finding in plan.findings}


def test_a_wish_for_concurrency_never_makes_a_fitting_length_refused() -> None:
    for concurrency in (None, 2, 8, 64):
        assert plan_for("gpt-oss-120b", "1xH100", Goal(concurrency=concurrency)).verdict == "fits"


def test_fp8_kv_is_taken_where_the_wanted_concurrency_needs_it() -> None:
    few, many = (plan_for("qwen3-8b", "1xH100", Goal(concurrency=count)) for count in (4, 16))
    assert "--kv-cache-dtype" not in few.instances[0].argv
    assert "fp8_e4m3" in many.instances[0].argv
    assert "concurrency_not_met" not in {finding.cause for finding in few.findings + many.findings}


def test_one_gpu_is_not_called_each_gpu() -> None:
    screen = render_plan(plan_for("qwen3-8b", "1xH100"), Paint())
    assert "of KV cache to start" in screen
    assert "each GPU" not in screen.splitlines()[1]


def test_concurrency_is_told_once_where_the_mean_prompt_is_the_longest() -> None:
    screen = render_plan(plan_for("qwen3-8b", "1xH100", Goal(max_model_len=16_000)), Paint())
    assert screen.count("requests of 16,000 tokens") == 1


@pytest.mark.parametrize(
    ("length", "verdict", "end"),
    [(20_000, "fits", "low end"), (60_000, "fits", "high end: at the low"), (90_000, "does_not_fit", "high end")],
)
def test_a_share_of_memory_is_refused_only_where_its_high_end_is(length: int, verdict: str, end: str) -> None:
    goal = Goal(max_model_len=length, gpu_memory_utilization=0.3, kv_cache_dtype="auto")
    plan = plan_for("llama-3.1-8b", "1xH100", goal)
    cache = plan.instances[0].kv_cache
    assert cache is not None
    assert cache.estimate_reason is not None
    assert (plan.verdict, cache.certainty) == (verdict, "estimate")
    assert f"counted at the {end}" in cache.estimate_reason


def test_the_reason_for_a_narrow_dtype_is_the_one_that_holds() -> None:
    plan = plan_for("qwen3-8b", "1xH100", Goal(concurrency=16))
    (why,) = (choice.why for choice in plan.choices if choice.option == "--kv-cache-dtype")
    assert why.startswith(
        "at the model's own dtype fewer than the 16 wanted requests fit at once; stored with scale 1.0"
    )


def test_a_screen_names_every_parallel_size() -> None:
    screen = render_plan(plan_for("qwen3-8b", "4xH100", Goal(tp_size=1, pp_size=2, dp_size=2)), Paint())
    assert "TP 1 x PP 2, 2 data-parallel engines (the figures are of each) on GPU 0, 1, 2, 3, port" in screen


def test_data_parallel_engines_share_the_wanted_concurrency() -> None:
    for wanted, met in ((22, True), (60, False)):
        plan = plan_for("qwen3-8b", "2xH100", Goal(tp_size=1, dp_size=2, concurrency=wanted, kv_cache_dtype="auto"))
        causes = {finding.cause for finding in plan.findings}
        assert ("concurrency_not_met" not in causes) is met
        assert "max_num_seqs_beyond_cache" not in causes


def test_a_narrower_dtype_that_is_not_modelled_is_no_way() -> None:
    plan = plan_for("deepseek-v4-pro", "8xL20")
    assert plan.verdict == "does_not_fit"
    assert "--kv-cache-dtype" not in plan.instances[0].argv
