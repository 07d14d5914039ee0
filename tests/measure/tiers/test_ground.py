"""What would make every run of a comparison fail is told before the first start."""

import os
import socket
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.measure.tiers.tier_cases import planned

from longreach.cli.from_plan import launch_specs
from longreach.engine.release import get_release
from longreach.errors import EngineError
from longreach.host.ports import choose_free_port
from longreach.host.processes import read_identity
from longreach.launch.state import DeploymentState, InstanceState, StateFolder, write_state
from longreach.measure.tiers.ground import Ground, hold
from longreach.measure.tiers.values import TierSet

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="engines are started on Linux only")

VARIANTS = (TierSet(("gpu",)), TierSet(("gpu", "cpu"), "lru"))


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    command = tmp_path / "bin" / "vllm"
    command.parent.mkdir()
    command.touch(mode=0o755)
    plan = planned()
    spec = replace(launch_specs(plan)[0], port=choose_free_port())
    return Ground(
        plan.instances[0], get_release(plan.release), spec, "plan-tiers", StateFolder(tmp_path / "state"), tmp_path
    )


def test_one_comparison_of_a_plan_at_a_time(ground: Ground) -> None:
    again = pytest.raises(EngineError, match="another comparison of this plan")
    with hold(ground, VARIANTS), again as told, hold(ground, VARIANTS):
        pass
    assert f"kill {os.getpid()}" in told.value.fix
    with hold(ground, VARIANTS):
        pass


def test_an_engine_that_a_killed_comparison_left_is_named_with_what_ends_it(ground: Ground, tmp_path: Path) -> None:
    process = read_identity(os.getpid())
    assert process is not None
    left = InstanceState("main", process, "127.0.0.1", 1, (), {}, str(tmp_path / "log"), datetime.now(UTC))
    ground.state.prepare("plan-tiers-gpu-cpu")
    write_state(ground.state, DeploymentState("plan-tiers-gpu-cpu", "ready", (left,)))
    with pytest.raises(EngineError, match="earlier comparison still runs") as told, hold(ground, VARIANTS):
        pass
    assert told.value.fix == "longreach down plan-tiers-gpu-cpu"


def test_a_port_in_use_is_told_once(ground: Ground) -> None:
    with (
        socket.create_server(("127.0.0.1", ground.spec.port)),
        pytest.raises(EngineError, match=f"port {ground.spec.port} of the plan is in use"),
        hold(ground, VARIANTS),
    ):
        pass
