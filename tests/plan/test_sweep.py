"""Values that a sweep goes through by itself."""

import pytest

from longreach.hardware.catalogue import parse_gpus
from longreach.hardware.machine import machine_from
from longreach.model.source import load_model
from longreach.plan.goal import Goal
from longreach.plan.sweep import default_values


def values(name: str, model: str = "qwen3-32b", gpus: str = "4xRTX4090", goal: Goal | None = None) -> list[str]:
    order = parse_gpus(gpus)
    return list(default_values(name, load_model(model), machine_from(order.gpu, order.count), goal or Goal()))


@pytest.mark.parametrize(
    ("name", "model", "gpus", "expected"),
    [
        ("tp", "qwen3-32b", "6xH100", ["1", "2", "4"]),
        ("dcp", "qwen3-32b", "1xH100", ["1"]),
        ("kv-cache-dtype", "qwen3-32b", "4xRTX4090", ["auto", "fp8_e4m3"]),
        ("kv-cache-dtype", "qwen3-32b", "4xRTX5090", ["auto", "fp8_e4m3", "nvfp4"]),
        ("spec", "qwen3-32b", "1xH100", ["none"]),
        ("spec", "glm-4.5-air", "1xH100", ["none", "mtp:1", "mtp:3"]),
        ("max-num-batched-tokens", "qwen3-32b", "1xH100", ["2048", "4096", "8192", "16384"]),
        ("gpus", "qwen3-32b", "4xRTX4090", ["1xRTX4090", "2xRTX4090", "4xRTX4090", "8xRTX4090"]),
        ("concurrency", "qwen3-32b", "1xH100", []),
    ],
)
def test_the_values_are_those_that_make_sense(name: str, model: str, gpus: str, expected: list[str]) -> None:
    assert values(name, model, gpus) == expected


def test_lengths_go_up_to_what_was_asked_or_what_the_publisher_names() -> None:
    assert values("max-model-len", goal=Goal(max_model_len=100_000)) == ["32768", "65536", "100000"]
    assert values("max-model-len") == ["32768", "65536", "131072"]


def test_weights_begin_with_the_models_own() -> None:
    own, *published = values("weights")
    assert own == "bf16"
    assert "w4a16" in published
    assert values("weights", "gpt-oss-120b")[0] == "mxfp4"


def test_a_machine_without_gpus_has_no_other_counts() -> None:
    model, machine = load_model("qwen3-8b"), machine_from(None, 0)
    assert default_values("gpus", model, machine, Goal()) == ()
    assert default_values("tp", model, machine, Goal()) == ("1",)
    assert default_values("kv-cache-dtype", model, machine, Goal()) == ("auto",)
