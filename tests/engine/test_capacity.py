"""The planned KV cache against the real engine's: its log line, its configuration, its refusal, token for token."""

import json
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from tests.engine.shapes import SHAPES, TOO_SMALL, Shape, write_config

from longreach.engine.events import KvCapacityLine
from longreach.engine.logs import parse_log_line
from longreach.engine.release import get_release
from longreach.hardware.spec import Machine
from longreach.model.catalogue import load_catalogue_model
from longreach.model.config import parse_model_config
from longreach.model.spec import AttentionLayer, KvLayer, MlaLayer
from longreach.plan.build import make_plan
from longreach.plan.goal import Goal, NamedGoal
from longreach.plan.values import InstancePlan
from longreach.sizing.values import KvCapacity

ORACLE = Path(__file__).with_name("capacity_oracle.py")
CPU = Machine(gpu=None, num_gpus=0, link=None, device_type="cpu")
IN_PROCESS = ("--load-format", "dummy", "--skip-tokenizer-init", "--distributed-executor-backend", "uni")
ALL = (*SHAPES, TOO_SMALL)


@dataclass(frozen=True, slots=True)
class Started:
    """One engine: what was planned, and what it said."""

    plan: InstancePlan
    said: dict[str, Any]
    log: tuple[str, ...]


def plan_shape(shape: Shape, folder: Path) -> InstancePlan:
    """The plan for this shape on a CPU; its command loads no weights and stays in one process."""
    goal = Goal(
        max_model_len=shape.max_model_len,
        kv_cache_memory_bytes=shape.kv_cache_memory_bytes,
        max_num_batched_tokens=shape.max_num_batched_tokens,
        model_path=str(write_config(shape, folder)),
        extra_args=IN_PROCESS,
    )
    model = parse_model_config(shape.config, shape.name)
    return make_plan(model, CPU, get_release("0.32.0"), [NamedGoal("main", goal)]).instances[0]


def counted(plan: InstancePlan) -> KvCapacity:
    assert plan.kv_cache is not None
    assert plan.kv_cache.certainty == "exact"
    return plan.kv_cache


def start_engines(python: Path, plans: Sequence[InstancePlan]) -> list[Started]:
    """One process for all: the commands exactly as planned, without their first word."""
    architectures = sorted({name for shape in ALL for name in cast("list[str]", shape.config["architectures"])})
    done = subprocess.run(
        [python, ORACLE, *architectures],
        input=json.dumps([plan.argv[1:] for plan in plans]),
        capture_output=True,
        text=True,
        timeout=540,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    *answered, _ = re.split(r"^ANSWER (.*)$", done.stdout, flags=re.MULTILINE)
    logs, answers = answered[::2], answered[1::2]
    return [
        Started(plan, json.loads(answer), tuple(log.splitlines()))
        for plan, answer, log in zip(plans, answers, logs, strict=True)
    ]


@pytest.fixture(scope="module")
def started(engine_python: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Started]:
    """All engines of this file, by the label of their shape."""
    plans = [plan_shape(shape, tmp_path_factory.mktemp("shapes") / shape.label) for shape in ALL]
    return {shape.label: one for shape, one in zip(ALL, start_engines(engine_python, plans), strict=True)}


@pytest.mark.vllm
@pytest.mark.timeout(600)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_engine_holds_exactly_what_was_planned(shape: Shape, started: dict[str, Started]) -> None:
    said = started[shape.label].said
    capacity = counted(started[shape.label].plan)
    (printed,) = [
        event for line in started[shape.label].log if isinstance(event := parse_log_line(line), KvCapacityLine)
    ]
    assert said["num_gpu_blocks"] == capacity.num_blocks
    assert said["block_size"] == capacity.block_size
    assert said["kv_cache_size_tokens"] == capacity.kv_capacity_tokens
    assert said["kv_cache_max_concurrency"] == capacity.max_concurrency
    assert printed.kv_capacity_tokens == capacity.kv_capacity_tokens
    assert printed.max_model_len == shape.max_model_len
    assert printed.max_concurrency == pytest.approx(capacity.max_concurrency, abs=0.005)


@pytest.mark.vllm
@pytest.mark.timeout(600)
def test_engine_refuses_in_the_words_that_were_planned(started: dict[str, Started]) -> None:
    said = started[TOO_SMALL.label].said
    capacity = counted(started[TOO_SMALL.label].plan)
    assert not capacity.starts
    assert capacity.refusal is not None
    assert said["error"].startswith(capacity.refusal)
    assert f"estimated maximum model length is {capacity.largest_max_model_len}." in said["error"]


def _cached_part(layer: KvLayer) -> KvLayer | tuple[int, ...]:
    """A layer without its query heads, which never reach the cache."""
    if isinstance(layer, MlaLayer):
        return (layer.kv_lora_rank, layer.rope_head_dim)
    if isinstance(layer, AttentionLayer):
        return (layer.num_kv_heads, layer.head_dim, layer.v_head_dim, layer.window_tokens or 0)
    return layer


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_shrunk_shapes_cache_what_the_published_models_cache(shape: Shape) -> None:
    shrunk, published = parse_model_config(shape.config, shape.name), load_catalogue_model(shape.name)
    assert [_cached_part(layer) for layer in shrunk.layers] == [_cached_part(layer) for layer in published.layers]
