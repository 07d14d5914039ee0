import contextlib
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from longreach.host.processes import StopTimes, read_family, reap_child, send_signal
from longreach.launch.spec import LaunchSpec
from longreach.launch.state import StateFolder, read_state
from longreach.launch.up import UpSettings
from longreach.launch.up_events import LaunchEvent
from longreach.launch.watch import WaitLimits

FAKE = Path(__file__).with_name("fake_engine.py")
QUICK = WaitLimits(stall_s=5.0, total_s=20.0, poll_s=0.02, probe_s=0.05, http_timeout_s=1.0)
SOON = StopTimes(leader_s=2.0, orphan_s=0.1, family_s=0.2, kill_s=2.0)


class Heard(list[LaunchEvent]):
    """A listener that keeps what it hears."""

    def __call__(self, event: LaunchEvent) -> None:
        self.append(event)

    def of(self, kind: type[LaunchEvent]) -> list[LaunchEvent]:
        return [event for event in self if isinstance(event, kind)]


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def engine_folder(tmp_path: Path) -> Path:
    """A folder with a `vllm` in it."""
    command = tmp_path / "bin" / "vllm"
    command.parent.mkdir()
    command.write_text(f"#!{sys.executable}\n{FAKE.read_text(encoding='utf-8')}", encoding="utf-8")
    command.chmod(0o755)
    return command.parent


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[StateFolder]:
    """A state folder; whatever still runs from it after the test is killed."""
    folder = StateFolder(tmp_path / "state")
    yield folder
    for deployment in folder.deployments():
        with contextlib.suppress(Exception):  # a test may have damaged its state file on purpose
            state = read_state(folder, deployment)
            for instance in state.instances if state else ():
                for member in read_family(instance.process):
                    send_signal(member, signal.SIGKILL)
                reap_child(instance.process.pid)


@pytest.fixture
def settings(folder: StateFolder, engine_folder: Path) -> UpSettings:
    return UpSettings(deployment="box", folder=folder, engine=engine_folder, limits=QUICK, stop_times=SOON)


@pytest.fixture
def make_spec() -> Callable[..., LaunchSpec]:
    """A spec on a free port; `mode` is how the fake engine misbehaves."""

    def make(name: str = "long", mode: str = "", **env: str) -> LaunchSpec:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        spec = LaunchSpec(name=name, argv=(), host="127.0.0.1", port=port, env={"FAKE_MODE": mode, **env})
        return replace(spec, argv=("vllm", "serve", "tiny", "--port", str(port)))

    return make
