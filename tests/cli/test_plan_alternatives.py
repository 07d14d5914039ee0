"""What a plan offers where the goal does not fit, fits when it is asked for."""

from collections.abc import Callable
from typing import Any

import pytest

PlanJson = Callable[..., tuple[int, dict[str, Any]]]

_HYBRID = "qwen3.6-27b --gpus 4xRTX4090 --tp 4 --kv-cache-memory-bytes 10G --weights w4a16 --max-model-len 750k"
COMMANDS = {
    "dense of the how-to": "qwen3-32b --gpus 4xRTX4090 --tp 4 --kv-cache-dtype fp8_e4m3 --kv-cache-memory-bytes 10G "
    "--max-model-len 750k --weights w4a16",
    "nothing given": "qwen3-32b --gpus 4xRTX4090 --max-model-len 750k",
    "hybrid at its own dtype": f"{_HYBRID} --kv-cache-dtype auto --spec mtp:3",
    "everything together": "qwen3-32b --gpus 2xRTX5090 --tp 1 --kv-cache-dtype auto --kv-cache-memory-bytes 4G --weights fp8 "
    "--spec ngram:5 --max-model-len 120k",
    "weights": "llama-3.1-70b --gpus 2xH100",
    "concurrency": "qwen3-8b --gpus 1xH100 --concurrency 100 --kv-cache-dtype auto",
    "reach": "qwen3-8b --gpus 1xH100 --max-model-len 100k --yarn none",
    "rope of two kinds": "gemma-3-27b --gpus 1xH100 --max-model-len 200k",
    "images": "gemma-3-27b --gpus 1xA100-SXM-80GB --concurrency 40",
    "share": "qwen3-8b --gpus 1xH100 --gpu-memory-utilization 0.3 --max-model-len 120k --kv-cache-dtype auto",
    "latent": "deepseek-v3 --gpus 8xH200 --tp 8 --dcp 1 --concurrency 200 --spec none",
    "fewer GPUs than there are": "qwen3-32b --gpus 8xRTX4090 --tp 2 --weights w4a16 --max-model-len 400k",
}


def _num_engines(argv: list[str]) -> int:
    return int(argv[argv.index("--data-parallel-size") + 1]) if "--data-parallel-size" in argv else 1


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_every_offered_goal_fits_when_it_is_asked(plan_json: PlanJson, command: str) -> None:
    _, asked = plan_json(*command.split())
    assert asked["alternatives"]
    for offered in asked["alternatives"]:
        _, document = plan_json(*command.split(), *offered["options"])
        instance = document["instances"][0]
        assert document["verdict"] == "fits", offered
        assert instance["max_model_len"] == offered["max_model_len"]
        assert document["alternatives"] == [], offered
        at_once = instance["concurrency_at_mean_input"]["gpu"] * _num_engines(instance["argv"])
        assert at_once == pytest.approx(offered["concurrency"])


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_what_serves_the_goal_comes_first_then_the_longest(plan_json: PlanJson, command: str) -> None:
    _, document = plan_json(*command.split())
    offered = document["alternatives"]
    order = [(not item["serves"], 0 if item["serves"] else -item["max_model_len"]) for item in offered]
    assert order == sorted(order)
    assert len({tuple(item["options"]) for item in offered}) == len(offered) <= 8


def test_a_goal_that_fits_has_no_alternatives(plan_json: PlanJson) -> None:
    _, document = plan_json(*_HYBRID.split(), "--kv-cache-dtype", "fp8_e4m3")
    assert (document["verdict"], document["alternatives"]) == ("fits", [])


def test_the_figures_of_each_change_are_its_own(plan_json: PlanJson) -> None:
    _, document = plan_json(*COMMANDS["hybrid at its own dtype"].split())
    offered = {item["change"]: item for item in document["alternatives"]}
    assert offered["fp8 KV cache"]["serves"]
    assert offered["no drafts (mtp:3)"]["max_model_len"] == 649_152
    assert offered["no drafts (mtp:3)"]["options"] == ["--spec", "none", "--max-model-len", "649152"]
    assert offered["a shorter request"]["max_model_len"] == 604_000


def test_text_alone_leaves_more_and_stands_behind_the_dashes(plan_json: PlanJson) -> None:
    _, document = plan_json(*COMMANDS["images"].split())
    offered = {item["change"]: item for item in document["alternatives"]}
    assert offered["text alone"]["options"][-2:] == ["--", "--language-model-only"]
    assert offered["text alone"]["concurrency"] > offered["fewer requests at once"]["concurrency"]


def test_more_gpus_are_as_few_as_serve(plan_json: PlanJson) -> None:
    _, document = plan_json("qwen3-8b", "--gpus", "1xH100", "--concurrency", "40", "--kv-cache-dtype", "auto")
    more = [item["change"] for item in document["alternatives"] if "more" in item["change"]]
    assert more == ["3 GPUs more"]


def test_no_goal_is_offered_where_no_goal_would_start(plan_json: PlanJson) -> None:
    _, document = plan_json("qwen3-8b", "--gpus", "1xH100", "--spec", "mtp:1", "--max-model-len", "1M")
    assert document["verdict"] == "does_not_fit"
    assert document["alternatives"] == []


def test_the_screen_shows_what_to_add(longreach: Callable[..., tuple[int, str, str]]) -> None:
    _, out, _ = longreach("plan", *COMMANDS["hybrid at its own dtype"].split())
    assert "\nNearest goals that fit\n" in out
    assert "649,152 tokens  17.4 at once  --spec none --max-model-len 649152" in out


def test_alternatives_of_several_instances_name_theirs(plan_json: PlanJson) -> None:
    _, document = plan_json("qwen3-32b", "--gpus", "4xRTX4090", "--weights", "w4a16", "--instance", "a:tp=2,max-model-len=32k",
                            "--instance", "b:tp=2,max-model-len=500k")  # fmt: skip
    assert document["alternatives"]
    assert {item["instance"] for item in document["alternatives"]} == {"b"}
    assert not any("GPU" in item["change"] for item in document["alternatives"])


def test_bytes_that_no_card_has_are_answered_with_those_that_it_has(plan_json: PlanJson) -> None:
    command = (
        "qwen3-32b",
        "--gpus",
        "4xRTX4090",
        "--tp",
        "4",
        "--kv-cache-memory-bytes",
        "20G",
        "--max-model-len",
        "32k",
    )
    _, document = plan_json(*command, "--weights", "fp8")
    assert document["verdict"] == "does_not_fit"
    first = document["alternatives"][0]
    assert first["serves"]
    assert first["options"][0] == "--kv-cache-memory-bytes"


def test_a_shorter_request_may_also_be_one_of_fewer(plan_json: PlanJson) -> None:
    command = ("minimax-m2", "--gpus", "8xA40", "--max-model-len", "1M", "--concurrency", "200", "--weights", "w4a16")
    _, document = plan_json(*command, "--gpu-memory-utilization", "0.3")
    more = next(item for item in document["alternatives"] if "more" in item["change"])
    assert {"--max-model-len", "--concurrency"} <= set(more["options"])
    assert plan_json(*command, "--gpu-memory-utilization", "0.3", *more["options"])[1]["alternatives"] == []


def test_a_length_that_is_no_use_is_not_offered(plan_json: PlanJson) -> None:
    for command in (
        ("qwen3-32b", "--gpus", "1xRTX4090"),
        ("qwen3-32b", "--gpus", "1xRTX3090", "--max-model-len", "128k"),
    ):
        _, document = plan_json(*command)
        lengths = [item["max_model_len"] for item in document["alternatives"]]
        assert lengths
        assert min(lengths) >= 1024
