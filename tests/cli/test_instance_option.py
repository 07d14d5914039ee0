from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from longreach.cli.instance_option import instance_goals, parse_instance
from longreach.errors import UsageError
from longreach.plan.goal import Goal
from longreach.units import GIB

PlanJson = Callable[..., tuple[int, dict[str, Any]]]
BASE = Goal(max_model_len=8192, cpu_tier_bytes=GIB, gpu_memory_utilization=0.9)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("a", {}),
        ("a:tp=2,max-model-len=64k", {"tp_size": 2, "max_model_len": 64_000}),
        ("a:no-prefix-caching", {"prefix_caching": False}),
        ("a:no-prefix-caching=true,tp=1", {"prefix_caching": False, "tp_size": 1}),
        ("a:disk-tier=/kv:10G", {"disk_tier_path": "/kv", "disk_tier_bytes": 10 * GIB}),
        (
            'a:mm-processor-kwargs={"x":1,"y":[2,3]},tp=1',
            {"mm_processor_kwargs": (("x", 1), ("y", [2, 3])), "tp_size": 1},
        ),
        ("a:kv-cache-memory-bytes=1G", {"kv_cache_memory_bytes": GIB, "gpu_memory_utilization": None}),
    ],
)
def test_settings_go_over_what_was_given_for_all(text: str, changes: dict[str, Any]) -> None:
    assert parse_instance(text, BASE).goal == replace(BASE, **changes)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "no name"),
        (":tp=1", "no name"),
        ("../x", "no name"),
        ("a:tp", "no value"),
        ("a:tp=1,tp=2", "twice"),
        ("a:no-prefix-caching=false", "no-prefix-caching=false"),
        ("a:colour=red", "colour"),
        ("a:eviction=fifo", "eviction=fifo"),
        ("a:ttft=nan", "ttft=nan"),
        ('a:mm-processor-kwargs={"x":1,"x":2}', "--mm-processor-kwargs"),
    ],
)
def test_what_does_not_parse_is_named(text: str, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        parse_instance(text, BASE)


def test_equal_and_named_instances_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="--instances"):
        instance_goals(["a"], BASE, 2)


def test_a_tier_is_checked_against_the_whole_goal() -> None:
    with pytest.raises(UsageError, match="--disk-tier needs --cpu-tier"):
        parse_instance("a:disk-tier=/kv", Goal())


@pytest.mark.parametrize(
    ("given", "ports"),
    [
        (("a", "b"), [8000, 8001]),
        (("a:port=9000", "b:port=9000"), [9000, 9001]),
        (("a:port=9001", "b:port=9000"), [9001, 9000]),
        (("a", "b:port=8000"), [8000, 8001]),
    ],
    ids=["defaults", "the same", "crossing", "one given"],
)
def test_no_two_instances_listen_on_one_port(plan_json: PlanJson, given: tuple[str, str], ports: list[int]) -> None:
    _, document = plan_json("qwen3-8b", "--gpus", "2xH100", "--instance", given[0], "--instance", given[1])
    assert [instance["port"] for instance in document["instances"]] == ports


def test_equal_instances_get_equal_shares(plan_json: PlanJson) -> None:
    code, document = plan_json("qwen3-8b", "--gpus", "4xH100", "--instances", "3")
    assert code == 0
    assert [instance["gpu_indices"] for instance in document["instances"]] == [[0], [1], [2]]


def test_unequal_instances_are_counted_as_they_are(plan_json: PlanJson) -> None:
    code, document = plan_json(
        "qwen3-8b", "--gpus", "4xH100", "--ram", "256GiB",
        "--instance", "big:tp=2,cpu-tier=100GiB", "--instance", "small:tp=1,cpu-tier=90GiB", "--instance", "tiny:tp=1",
    )  # fmt: skip
    causes = {finding["cause"] for finding in document["findings"]}
    assert code == 0
    assert "more_workers_than_gpus" not in causes
    assert "cpu_tier_exceeds_ram" not in causes
    assert "cpu_tier_exceeds_shm" in causes  # 190 GiB in the 128 GiB of /dev/shm
