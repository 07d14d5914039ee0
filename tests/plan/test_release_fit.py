"""A plan for any release: what the release lacks is left out or named, and the command is one that its parser takes."""

import json

import pytest

from longreach.engine.parser import parse_arguments
from longreach.engine.registry import REGISTRY_VERSIONS, get_registry
from longreach.engine.release import get_release
from longreach.errors import UsageError
from longreach.hardware.catalogue import parse_gpus
from longreach.hardware.machine import machine_from
from longreach.model.source import load_model
from longreach.plan.build import make_plan
from longreach.plan.document import plan_from_document, plan_to_document
from longreach.plan.goal import Goal, NamedGoal
from longreach.plan.values import Plan


def plan_for(version: str, goal: Goal, model: str = "qwen3-32b", gpus: str = "4xRTX4090") -> Plan:
    order = parse_gpus(gpus)
    machine = machine_from(order.gpu, order.count, num_numa_nodes=2)
    return make_plan(load_model(model, "w4a16"), machine, get_release(version), [NamedGoal("main", goal)])


@pytest.mark.parametrize("version", REGISTRY_VERSIONS)
def test_the_planned_command_is_one_that_the_release_takes(version: str) -> None:
    plan = plan_for(version, Goal(max_model_len=100_000))
    parsed = parse_arguments(plan.instances[0].argv, get_registry(version))
    assert [problem.what for problem in parsed.problems] == []
    assert plan.verdict == "fits"
    assert plan_from_document(plan_to_document(plan)) == plan


def test_without_the_bytes_flag_the_engine_sizes_the_cache_by_its_share() -> None:
    plan = plan_for("0.10.0", Goal(max_model_len=32_000))
    cache = plan.instances[0].kv_cache
    assert cache is not None
    assert cache.certainty == "estimate"
    assert "--gpu-memory-utilization" in plan.instances[0].argv
    assert plan.choices[0].option == "--gpu-memory-utilization"
    assert "has no --kv-cache-memory-bytes" in plan.choices[0].why


def test_bytes_that_were_asked_for_are_not_dropped() -> None:
    with pytest.raises(UsageError, match="--kv-cache-memory-bytes does not exist"):
        plan_for("0.10.0", Goal(max_model_len=32_000, kv_cache_memory_bytes=2**33))


@pytest.mark.parametrize(("version", "is_there"), [("0.19.1", False), ("0.20.2", True)])
def test_numa_binding_is_left_out_with_a_word(version: str, is_there: bool) -> None:
    plan = plan_for(version, Goal(max_model_len=32_000))
    values = [choice.value for choice in plan.choices if choice.option == "--numa-bind"]
    assert values == ["on" if is_there else "left out"]
    assert ("--numa-bind" in plan.instances[0].argv) is is_there


def test_a_parser_that_came_later_is_left_out() -> None:
    plan = plan_for("0.8.5", Goal(), model="qwen3-coder-30b-a3b", gpus="2xH100")
    assert "--tool-call-parser" not in plan.instances[0].argv
    assert "--enable-auto-tool-choice" not in plan.instances[0].argv
    assert "left out" in [choice.value for choice in plan.choices if choice.option == "--tool-call-parser"]


@pytest.mark.parametrize(
    ("version", "goal", "word", "fix"),
    [
        ("0.13.0", Goal(cpu_tier_bytes=2**36), "no CPU tier", "--vllm 0.14.1"),
        ("0.9.2", Goal(speculation="mtp:1"), "no speculative method 'mtp'", "--spec none"),
        ("0.10.0", Goal(tp_size=4, dcp_size=2), "--decode-context-parallel-size does not exist", ""),
    ],
    ids=["tier", "drafts", "DCP"],
)
def test_what_was_asked_for_and_is_not_there_is_an_error(version: str, goal: Goal, word: str, fix: str) -> None:
    with pytest.raises(UsageError, match=word) as error:
        plan_for(version, goal)
    assert fix in error.value.fix


@pytest.mark.parametrize(("version", "key"), [("0.11.2", "rope_scaling"), ("0.12.0", "rope_parameters")])
def test_yarn_is_written_under_the_key_that_the_release_reads(version: str, key: str) -> None:
    argv = plan_for(version, Goal(max_model_len=100_000)).instances[0].argv
    override = json.loads(argv[argv.index("--hf-overrides") + 1])
    assert override[key]["factor"] == 3.5
    assert override["rope_theta" if key == "rope_scaling" else key] is not None
    assert override["max_position_embeddings"] == 114_688


def test_a_nested_rope_is_not_overridden_where_that_replaces_the_whole_config() -> None:
    with pytest.raises(UsageError, match="cannot stretch the rope"):
        plan_for("0.11.0", Goal(max_model_len=500_000), model="qwen3-vl-32b", gpus="4xH100")


def test_local_argmax_is_asked_for_only_where_the_draft_has_it() -> None:
    old, new = (
        plan_for(version, Goal(max_model_len=100_000, speculation="mtp:3"), model="qwen3.6-27b")
        for version in ("0.20.2", "0.32.0")
    )
    assert "use_local_argmax_reduction" not in " ".join(old.instances[0].argv)
    assert "use_local_argmax_reduction" in " ".join(new.instances[0].argv)
