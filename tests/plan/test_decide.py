"""What a plan chooses: the split, chunks, DCP and drafts, each with the reason that holds."""

from dataclasses import replace

import pytest

from longreach.engine.release import get_release
from longreach.hardware.catalogue import parse_gpus
from longreach.hardware.machine import machine_from
from longreach.model.source import load_model
from longreach.plan.build import make_plan
from longreach.plan.goal import Goal, NamedGoal
from longreach.plan.values import Plan

_MANY_SHORT = Goal(max_model_len=32_000, mean_input_tokens=8000, concurrency=32)


def plan_for(model: str, gpus: str, goal: Goal, weights: str | None = None) -> Plan:
    order = parse_gpus(gpus)
    spec = load_model(model, weights)  # type: ignore[arg-type] # a name of the table below
    return make_plan(spec, machine_from(order.gpu, order.count), get_release("0.32.0"), [NamedGoal("main", goal)])


def split_of(plan: Plan) -> tuple[int, int, int, int]:
    options = plan.instances[0].options
    return (
        options.tensor_parallel_size,
        options.pipeline_parallel_size,
        options.data_parallel_size,
        options.decode_context_parallel_size,
    )


def why(plan: Plan, option: str) -> str:
    return next(choice.why for choice in plan.choices if choice.option == option)


@pytest.mark.parametrize(
    ("model", "gpus", "goal", "split"),
    [
        ("qwen3-8b", "4xH100", Goal(), (4, 1, 1, 1)),
        ("qwen3.6-27b", "4xRTX4090", Goal(max_model_len=750_000), (4, 1, 1, 1)),
        ("qwen3-14b", "3xRTX4090", Goal(max_model_len=40_000, kv_cache_dtype="auto"), (1, 3, 1, 1)),
        ("qwen3-8b", "4xRTX4090", _MANY_SHORT, (2, 1, 2, 1)),
        ("qwen3-8b", "4xRTX4090", replace(_MANY_SHORT, concurrency=None), (4, 1, 1, 1)),
        ("qwen3-8b", "4xH100", replace(_MANY_SHORT, pp_size=2), (2, 2, 1, 1)),
        ("deepseek-v3", "8xH200", Goal(max_model_len=160_000), (8, 1, 1, 1)),
        ("deepseek-v3", "8xH200", Goal(max_model_len=160_000, concurrency=60), (8, 1, 1, 4)),
        ("deepseek-v3", "8xH200", Goal(max_model_len=160_000, concurrency=60, dcp_size=8), (8, 1, 1, 8)),
        ("gpt-oss-120b", "2xH100", Goal(concurrency=200, mean_input_tokens=1000), (2, 1, 1, 1)),
    ],
    ids=[
        "all",
        "story",
        "no even TP holds it",
        "replicas",
        "one request",
        "given stages",
        "latent",
        "DCP",
        "DCP given",
        "MoE",
    ],
)
def test_the_split_is_the_one_the_goal_needs(
    model: str, gpus: str, goal: Goal, split: tuple[int, int, int, int]
) -> None:
    plan = plan_for(model, gpus, goal)
    assert split_of(plan) == split
    assert plan.verdict == "fits"


def test_the_reason_of_a_split_tells_what_another_would_cost() -> None:
    plan = plan_for("qwen3-8b", "4xRTX4090", Goal())
    assert "32,768 tokens in and 1,024 out takes about" in why(plan, "--tp")
    assert "; TP 2 x PP 2: " in why(plan, "--tp")


def test_replicas_are_explained_by_the_concurrency() -> None:
    assert "the 32 wanted requests" in why(plan_for("qwen3-8b", "4xRTX4090", _MANY_SHORT), "--dp")


def test_a_given_size_is_not_explained() -> None:
    plan = plan_for("qwen3-8b", "4xH100", Goal(tp_size=2))
    assert not {"--tp", "--pp", "--dp"} & {choice.option for choice in plan.choices}


def test_chunks_shrink_before_the_kv_dtype_does() -> None:
    plan = plan_for("gemma-3-27b", "1xH100", Goal(concurrency=2, mean_input_tokens=60_000))
    assert plan.instances[0].options.max_num_batched_tokens == 2048
    assert plan.instances[0].options.kv_cache_dtype is None
    assert "the goal does not fit" in why(plan, "--max-num-batched-tokens")


@pytest.mark.parametrize(
    ("model", "weights", "goal", "spec"),
    [
        ("glm-4.5-air", "fp8", Goal(), 1),
        ("glm-4.5-air", "fp8", Goal(speculation="none"), None),
        ("glm-4.5-air", "fp8", Goal(pp_size=2), None),
        ("qwen3.6-27b", None, Goal(), None),
        ("qwen3.6-27b", None, Goal(prefix_caching=False), 1),
        ("qwen3-8b", None, Goal(), None),
    ],
    ids=["it pays", "refused", "stages", "hybrid hits", "hybrid without hits", "no draft layer"],
)
def test_mtp_is_chosen_where_the_model_has_it_and_it_pays(
    model: str, weights: str | None, goal: Goal, spec: int | None
) -> None:
    plan = plan_for(model, "4xH100", goal, weights)
    speculative = plan.instances[0].options.speculative
    assert (speculative.num_speculative_tokens if speculative else None) == spec
    assert "speculation" not in " ".join(finding.cause for finding in plan.findings)


def test_mtp_is_dropped_where_the_goal_fits_only_without() -> None:
    plan = plan_for("glm-4.5-air", "4xH100", Goal(max_model_len=131_072), "fp8")
    cache = plan.instances[0].kv_cache
    assert cache is not None
    held = int(cache.max_concurrency)
    more = plan_for("glm-4.5-air", "4xH100", Goal(concurrency=held + 1, mean_input_tokens=131_072), "fp8")
    with_drafts = replace(
        Goal(concurrency=held + 1, mean_input_tokens=131_072), speculation="mtp:1", kv_cache_dtype="auto"
    )
    if more.instances[0].options.speculative is None:
        assert "would not fit" in why(more, "--spec")
        assert plan_for("glm-4.5-air", "4xH100", with_drafts, "fp8").instances[0].kv_cache is not None


def test_yarn_and_the_tier_that_was_not_asked_for_are_explained() -> None:
    plan = plan_for("qwen3.6-27b", "4xRTX4090", Goal(max_model_len=750_000))
    assert "smallest" in why(plan, "--yarn")
    assert "it would pay where prompts come back: 750,000 tokens" in why(plan, "--cpu-tier")
    asked = plan_for("qwen3.6-27b", "4xRTX4090", Goal(max_model_len=750_000, cpu_tier_bytes=2**36, yarn="3"))
    assert not {"--yarn", "--cpu-tier"} & {choice.option for choice in asked.choices}


_GOALS = [Goal(max_model_len=100_000), Goal(max_model_len=400_000), Goal(concurrency=12, mean_input_tokens=20_000)]


@pytest.mark.parametrize("goal", _GOALS, ids=["100k", "400k", "12 at once"])
@pytest.mark.parametrize("model", ["qwen3-32b", "qwen3.6-27b", "gemma-3-27b"])
def test_a_chosen_plan_serves_what_any_given_choice_serves(model: str, goal: Goal) -> None:
    chosen = plan_for(model, "4xRTX4090", goal)
    for changes in ({"tp_size": 2}, {"kv_cache_dtype": "auto"}, {"kv_cache_dtype": "fp8_e4m3"}, {"pp_size": 2}):
        given = plan_for(model, "4xRTX4090", replace(goal, **changes))
        assert serves(chosen) >= serves(given), changes


def serves(plan: Plan) -> bool:
    return plan.verdict == "fits" and "concurrency_not_met" not in {finding.cause for finding in plan.findings}
