import json
from collections.abc import Callable
from typing import Any

import pytest

from longreach.engine.release import get_release
from longreach.errors import InputFileError
from longreach.hardware.catalogue import find_gpu
from longreach.hardware.machine import machine_from
from longreach.model.source import load_model
from longreach.plan.build import make_plan
from longreach.plan.document import plan_from_document, plan_to_document
from longreach.plan.goal import Goal, NamedGoal
from longreach.plan.values import Plan

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def plan() -> Plan:
    goal = Goal(max_model_len=750_000, kv_cache_memory_bytes=10 * 2**30, kv_cache_dtype="fp8_e4m3", cpu_tier_bytes=2**36,
                mean_input_tokens=32_768, speculation="mtp:3")  # fmt: skip
    machine = machine_from(find_gpu("RTX 4090", 24564), 4)
    return make_plan(load_model("qwen3.6-27b", "w4a16"), machine, get_release("0.32.0"), [NamedGoal("main", goal)])


def _document(plan: Plan) -> Any:
    return json.loads(json.dumps(plan_to_document(plan)))


def test_a_document_reads_back_as_the_plan(plan: Plan) -> None:
    again = plan_from_document(_document(plan))
    assert plan_to_document(again) == plan_to_document(plan)
    assert again.instances[0].options == plan.instances[0].options


def test_a_flag_edited_by_hand_takes_effect(plan: Plan) -> None:
    document = _document(plan)
    argv = document["instances"][0]["argv"]
    argv[argv.index("--port") + 1 if "--port" in argv else len(argv) :] = (
        ["9001"] if "--port" in argv else ["--port", "9001"]
    )
    again = plan_from_document(document)
    assert (again.instances[0].port, again.instances[0].options.port) == (9001, 9001)
    assert "9001" in again.instances[0].shell


def test_a_length_edited_by_hand_takes_effect(plan: Plan) -> None:
    document = _document(plan)
    argv = document["instances"][0]["argv"]
    argv[argv.index("--max-model-len") + 1] = "400k"
    assert plan_from_document(document).instances[0].max_model_len == 400_000


def _set(path: str, value: object) -> Change:
    def change(document: dict[str, Any]) -> None:
        target: Any = document
        *parents, last = path.split(".")
        for part in parents:
            target = target[int(part)] if part.isdigit() else target[part]
        target[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (_set("schema", "longreach/plan/99"), "longreach/plan/99"),
        (lambda document: document.pop("schema"), "schema"),
        (lambda document: document.pop("instances"), "instances"),
        (lambda document: document.pop("verdict"), "verdict"),
        (_set("instances", "none"), "instances"),
        (_set("surprise", 1), "surprise"),
        (_set("instances.0.surprise", 1), "surprise"),
        (_set("instances.0.argv", "vllm serve"), "argv"),
        (_set("instances.0.argv", []), "command"),
        (_set("instances.0.env", {"A": 1}), "env"),
        (_set("instances.0.max_model_len", "long"), "max_model_len"),
        (_set("instances.0.kv_cache.num_blocks", 1.5), "num_blocks"),
        (_set("verdict", "perhaps"), "verdict"),
        (_set("machine.num_gpus", True), "num_gpus"),
        (_set("machine", [1]), "machine"),
        (_set("instances", []), "instances"),
        (_set("instances.0.kv_cache.max_concurrency", float("inf")), "max_concurrency"),
        (_set("instances.0.argv", ["vllm", "serve", "m", "--port", "99999"]), "99999"),
        (_set("instances.0.env", {"A=B": "x"}), "A=B"),
        (lambda document: document.update({1: 1, "b": 2}), "1, b"),
        (lambda document: document["instances"].append(document["instances"][0]), "one name"),
        (lambda document: document["instances"].append({**document["instances"][0], "name": "b"}), "one port"),
    ],
    ids=["schema", "no schema", "no instances", "no verdict", "instances text", "extra", "extra in instance", "argv text",
         "argv empty", "env number", "length text", "blocks float", "verdict word", "gpus bool", "machine list", "no instance",
         "inf", "port", "env name", "keys of two types", "same name", "same port"],
)  # fmt: skip
def test_a_malformed_document_is_refused_by_name(plan: Plan, change: Change, word: str) -> None:
    document = _document(plan)
    change(document)
    with pytest.raises(InputFileError) as caught:
        plan_from_document(document, "plan.yaml")
    assert word in str(caught.value)
    assert "longreach plan" in caught.value.fix


@pytest.mark.parametrize("document", [None, [], "text", 7], ids=repr)
def test_what_is_not_a_mapping_is_no_plan(document: object) -> None:
    with pytest.raises(InputFileError, match="not a plan"):
        plan_from_document(document)


def test_an_unknown_release_in_a_document_is_an_input_error(plan: Plan) -> None:
    document = _document(plan)
    document["release"] = "9.9"
    with pytest.raises(InputFileError, match=r"9\.9"):
        plan_from_document(document)
