"""How a model is spread over GPUs, and that lint finds nothing wrong with the command that comes of it."""

from typing import Any

import pytest

from longreach.cli.planning import find_machine
from longreach.engine.options import ServeCommand
from longreach.engine.release import get_release
from longreach.errors import LongreachError
from longreach.lint.check import Surroundings, lint_command
from longreach.model.catalogue import catalogue_names
from longreach.model.source import load_model
from longreach.model.spec import QuantizationName
from longreach.plan.build import make_plan
from longreach.plan.goal import Goal, NamedGoal
from longreach.plan.values import Plan

_MACHINES = ("4xRTX4090", "8xH100", "8xB200", "6xRTX4090", "2xH200")
_WEIGHTS: tuple[QuantizationName | None, ...] = (None, "fp8", "w4a16")
_RELEASES = ("0.33.0", "0.32.0", "0.20.1", "0.11.2")
_TOKENS = 32768


def _plan(model: str, gpus: str, weights: QuantizationName | None, release: str = "0.32.0", **goal: Any) -> Plan:
    spec, machine = load_model(model, weights), find_machine(gpus=gpus, link=None, ram=None, numa=None)
    named = NamedGoal("main", Goal(max_model_len=_TOKENS, **goal))
    return make_plan(spec, machine, get_release(release), [named], with_alternatives=False)


@pytest.mark.parametrize(
    ("model", "weights", "gpus", "tp", "spreads_experts"),
    [
        ("qwen3-30b-a3b", "fp8", "4xRTX4090", 4, True),
        ("qwen3-30b-a3b", "fp8", "2xH200", 2, False),
        ("qwen3-30b-a3b", "none", "4xRTX4090", 4, False),
        ("qwen3-30b-a3b", "w4a16", "4xRTX4090", 4, True),
        ("qwen3-next-80b-a3b", "fp8", "8xH100", 4, False),  # expert parallelism leaves its shared expert cut
    ],
)
def test_blocks_of_quantized_experts_stay_whole(
    model: str, weights: QuantizationName, gpus: str, tp: int, *, spreads_experts: bool
) -> None:
    (instance,) = _plan(model, gpus, weights).instances
    assert instance.options.tensor_parallel_size == tp
    assert ("--enable-expert-parallel" in instance.argv) is spreads_experts


def test_expert_parallelism_is_not_added_where_it_was_refused() -> None:
    (instance,) = _plan("qwen3-30b-a3b", "4xRTX4090", "fp8", extra_args=("--no-enable-expert-parallel",)).instances
    assert instance.options.tensor_parallel_size == 2
    assert "--enable-expert-parallel" not in instance.argv


def test_size_that_cuts_blocks_is_refused_where_it_was_given() -> None:
    plan = _plan("qwen3-next-80b-a3b", "8xH100", "fp8", tp_size=8)
    assert plan.verdict == "does_not_fit"
    assert "LR997" in {finding.code for finding in plan.findings if finding.severity == "error"}


@pytest.mark.parametrize(
    ("model", "weights", "gpus", "release", "code"),
    [
        ("qwen3-8b", "fp8", "2xT4", "0.11.2", "LR983"),
        ("glm-5.3", "fp8", "8xA100-SXM-80GB", "0.32.0", "LR135"),
    ],
)
def test_what_lint_would_refuse_the_plan_refuses(
    model: str, weights: QuantizationName, gpus: str, release: str, code: str
) -> None:
    plan = _plan(model, gpus, weights, release)
    assert plan.verdict == "does_not_fit"
    assert [finding.code for finding in plan.findings].count(code) == 1


def _samples() -> list[tuple[str, str, QuantizationName | None, str]]:
    """Every fourth model of the catalogue, with the machines, forms and releases in turn."""
    return [
        (
            name,
            _MACHINES[number % len(_MACHINES)],
            _WEIGHTS[number % len(_WEIGHTS)],
            _RELEASES[number % len(_RELEASES)],
        )
        for number, name in enumerate(catalogue_names()[::4])
    ]


def test_lint_finds_no_error_in_a_command_whose_plan_fits() -> None:
    wrong, num_fitting = [], 0
    for sample in _samples():
        model, gpus, weights, release = sample
        try:
            plan = _plan(*sample)
        except LongreachError:
            continue
        if plan.verdict != "fits":
            continue
        num_fitting += 1
        around = Surroundings(load_model(model, weights), find_machine(gpus=gpus, link=None, ram=None, numa=None))
        (instance,) = plan.instances
        report = lint_command(ServeCommand(instance.argv, tuple(instance.env.items())), get_release(release), around)
        wrong += [(sample, finding.what) for finding in report.findings if finding.severity == "error"]
    assert not wrong
    assert num_fitting > len(_samples()) / 2
