"""What is written for a CPU engine: cores for every rank, and tiers as on a GPU box."""

import pytest

from longreach.engine.release import get_release
from longreach.hardware.catalogue import parse_gpus
from longreach.hardware.machine import machine_from
from longreach.hardware.spec import Machine
from longreach.model.source import load_model
from longreach.plan.build import make_plan
from longreach.plan.goal import Goal, NamedGoal
from longreach.plan.values import Plan
from longreach.units import GIB

DIVIDED = {"VLLM_CPU_SIM_MULTI_NUMA": "1"}
RESERVED = "VLLM_CPU_NUM_OF_RESERVED_CPU"
BOUND = (("VLLM_CPU_OMP_THREADS_BIND", "0|1"),)


def cpu(num_numa_nodes: int | None = None) -> Machine:
    return Machine(gpu=None, num_gpus=0, link=None, device_type="cpu", num_numa_nodes=num_numa_nodes)


def plan_on(machine: Machine, goal: Goal, release: str = "0.32.0") -> Plan:
    return make_plan(load_model("qwen3-8b"), machine, get_release(release), [NamedGoal("main", goal)])


@pytest.mark.parametrize(
    ("machine", "goal", "env"),
    [
        (cpu(), Goal(), {}),
        (cpu(), Goal(tp_size=2), DIVIDED),
        (cpu(2), Goal(tp_size=2), {}),
        (cpu(2), Goal(tp_size=2, pp_size=2), DIVIDED),
        (cpu(), Goal(tp_size=2, env=BOUND), dict(BOUND)),
        (cpu(), Goal(dp_size=2), {}),
        (cpu(), Goal(cpu_tier_bytes=8 * GIB), {RESERVED: "1"}),
        (cpu(), Goal(cpu_tier_bytes=8 * GIB, tp_size=2), DIVIDED | {RESERVED: "2"}),
        (cpu(), Goal(cpu_tier_bytes=8 * GIB, env=((RESERVED, "3"),)), {RESERVED: "3"}),
        (cpu(), Goal(cpu_tier_bytes=8 * GIB, tp_size=2, env=BOUND), dict(BOUND)),
    ],
    ids=[
        "one rank",
        "two ranks",
        "a node each",
        "more ranks than nodes",
        "bound by hand",
        "replicas",
        "a tier",
        "a tier, two ranks",
        "a tier, reserved by hand",
        "a tier, bound by hand",
    ],
)
def test_a_cpu_engine_has_a_core_for_each_rank_and_keeps_no_more_of_them_back_for_tiers(
    machine: Machine, goal: Goal, env: dict[str, str]
) -> None:
    assert plan_on(machine, goal).instances[0].env == env


def test_tiers_are_written_as_for_a_gpu_box() -> None:
    goal = Goal(max_model_len=16_384, cpu_tier_bytes=8 * GIB, disk_tier_path="/var/kv")
    order = parse_gpus("1xRTX4090")
    written = []
    for machine in (cpu(), machine_from(order.gpu, order.count)):
        argv = plan_on(machine, goal).instances[0].argv
        written.append(argv[argv.index("--kv-transfer-config") + 1])
    assert written[0] == written[1]


@pytest.mark.parametrize(("release", "severity"), [("0.31.0", "error"), ("0.32.0", "warning"), ("0.33.0", "error")])
def test_tiers_on_a_cpu_are_refused_but_for_the_release_that_has_a_plugin(release: str, severity: str) -> None:
    plan = plan_on(cpu(), Goal(cpu_tier_bytes=8 * GIB), release)
    causes = {finding.cause: finding.severity for finding in plan.findings}
    assert [causes[cause] for cause in causes if cause.startswith("offload_on_cpu")] == [severity]
