"""What a plan chooses: the split, chunks, DCP and drafts, each with the reason that holds."""

from dataclasses import replace

import pytest

from longreach.engine.release import get_release
from longreach.errors import UsageError
from longreach.hardware.catalogue import parse_gpus
from longreach.hardware.machine import machine_from
from longreach.model.source import load_model
from longreach.plan.build import make_plan
from longreach.plan.goal import Goal, NamedGoal
from longreach.plan.request_time import middle
from longreach.plan.values import Plan

_MANY_SHORT = Goal(max_model_len=16_000, mean_input_tokens=8000, mean_output_tokens=100, concurrency=32)


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
        ("qwen3-14b", "3xRTX-5060-Ti-16GB", Goal(max_model_len=16_000, kv_cache_dtype="auto"), (1, 3, 1, 1)),
        ("qwen3-8b", "4xRTX4090", _MANY_SHORT, (1, 1, 4, 1)),
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


def test_a_slow_link_and_long_prompts_make_stages() -> None:
    goal = Goal(max_model_len=120_000, mean_input_tokens=100_000)
    order = parse_gpus("4xRTX3090")
    machine = machine_from(order.gpu, order.count, link="pcie3x4")
    spec = load_model("llama-3.1-70b", "w4a16")
    plan = make_plan(spec, machine, get_release("0.32.0"), [NamedGoal("main", goal)])
    assert split_of(plan) == (1, 4, 1, 1)
    assert "; TP 4: " in why(plan, "--tp")
    assert "without all-reduces" in why(plan, "--pp")


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


@pytest.mark.parametrize(("version", "chunk"), [("0.22.1", 4096), ("0.32.0", 2048)])
def test_a_chunk_holds_a_block_of_recurrent_state_where_the_release_needs_it(version: str, chunk: int) -> None:
    order = parse_gpus("1xRTX-4090-48GB-(modified)")
    model, machine = load_model("qwen3.5-35b-a3b", "fp8"), machine_from(order.gpu, order.count)
    goal = Goal(max_model_len=131_072, kv_cache_dtype="fp8_e4m3")
    plan = make_plan(model, machine, get_release(version), [NamedGoal("main", goal)])
    cache = plan.instances[0].kv_cache
    assert cache is not None
    assert cache.block_size > 2048
    assert plan.instances[0].options.max_num_batched_tokens == chunk
    assert plan.verdict == "fits"


@pytest.mark.parametrize(
    ("model", "weights", "gpus"),
    [("glm-4.5-air", "fp8", "4xH100"), ("mimo-7b", None, "1xRTX4090"), ("deepseek-v3", None, "8xH200")],
    ids=["glm", "mimo", "deepseek"],
)
def test_mtp_is_chosen_where_it_pays_by_the_forecast(model: str, weights: str | None, gpus: str) -> None:
    chosen = plan_for(model, gpus, Goal(), weights)
    plain, drafted = (plan_for(model, gpus, Goal(speculation=spec), weights) for spec in ("none", "mtp:1"))
    rates = [middle(plan.instances[0].speed[-1].decode_tokens_per_s) for plan in (plain, drafted)]
    assert rates[0] is not None
    assert rates[1] is not None
    assert (chosen.instances[0].options.speculative is not None) == (rates[1] >= 1.1 * rates[0])
    assert f"{rates[1]:.0f} tokens/s instead of {rates[0]:.0f}" in why(chosen, "--spec")


@pytest.mark.parametrize(
    ("model", "goal", "word"),
    [
        ("glm-4.5-air", Goal(pp_size=2), "not proven"),
        ("qwen3.6-27b", Goal(), "LR414"),
        ("glm-4.5-air", Goal(max_model_len=131_072, mean_input_tokens=131_072, concurrency=60), "nothing is added"),
    ],
    ids=["stages", "hybrid hits", "what does not fit"],
)
def test_mtp_is_not_chosen_where_it_may_harm(model: str, goal: Goal, word: str) -> None:
    plan = plan_for(model, "4xH100", goal, "fp8")
    assert plan.instances[0].options.speculative is None
    assert word in why(plan, "--spec")


@pytest.mark.parametrize(
    ("model", "goal"), [("glm-4.5-air", Goal(speculation="none")), ("qwen3-8b", Goal()), ("minimax-m2", Goal())]
)
def test_no_word_is_lost_on_drafts_that_cannot_be(model: str, goal: Goal) -> None:
    plan = plan_for(model, "8xH100", goal)
    assert plan.instances[0].options.speculative is None
    assert "--spec" not in {choice.option for choice in plan.choices}


def test_yarn_and_the_tier_that_was_not_asked_for_are_explained() -> None:
    plan = plan_for("qwen3.6-27b", "4xRTX4090", Goal(max_model_len=750_000))
    assert "smallest" in why(plan, "--yarn")
    assert "it would pay where prompts come back: 750,000 tokens" in why(plan, "--cpu-tier")
    asked = plan_for("qwen3.6-27b", "4xRTX4090", Goal(max_model_len=750_000, cpu_tier_bytes=2**36, yarn="3"))
    assert not {"--yarn", "--cpu-tier"} & {choice.option for choice in asked.choices}


_GOALS = [Goal(max_model_len=400_000), Goal(concurrency=12, mean_input_tokens=20_000)]


@pytest.mark.parametrize("goal", _GOALS, ids=["400k", "12 at once"])
@pytest.mark.parametrize("model", ["qwen3-32b", "qwen3.6-27b", "gemma-3-27b"])
def test_a_chosen_plan_serves_what_any_given_choice_serves(model: str, goal: Goal) -> None:
    chosen = plan_for(model, "4xRTX4090", goal)
    for changes in ({"tp_size": 2}, {"kv_cache_dtype": "auto"}, {"kv_cache_dtype": "fp8_e4m3"}, {"pp_size": 2}):
        given = plan_for(model, "4xRTX4090", replace(goal, **changes))
        assert serves(chosen) >= serves(given), changes


def serves(plan: Plan) -> bool:
    return plan.verdict == "fits" and "concurrency_not_met" not in {finding.cause for finding in plan.findings}


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        (Goal(max_model_len=32_000, mean_input_tokens=2**20), "--mean-input 1,048,576 cannot be"),
        (Goal(mean_output_tokens=50_000), "--mean-output 50,000 cannot be"),
        (
            Goal(max_model_len=32_000, mean_input_tokens=31_000, mean_output_tokens=2000),
            "31,000 and --mean-output 2,000",
        ),
    ],
    ids=["prompt", "answer beyond the native length", "both together"],
)
def test_a_typical_request_is_no_longer_than_the_longest(goal: Goal, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan_for("qwen3-8b", "1xH100", goal)
    assert words in caught.value.what
    assert "--max-model-len" in caught.value.fix
