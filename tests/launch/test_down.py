import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.launch.conftest import SOON, Heard

from longreach.errors import InputFileError
from longreach.host.processes import ProcessIdentity, is_alive, read_child_identity
from longreach.launch.down import down
from longreach.launch.state import DeploymentState, InstanceState, StateFolder, read_state, write_state
from longreach.launch.status import status
from longreach.launch.up_events import EngineStopping, LaunchEvent


@pytest.fixture
def bystander() -> Iterator[ProcessIdentity]:
    """A process that is nobody's engine."""
    argv = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(argv, start_new_session=True) as process:
        yield read_child_identity(process.pid)
        process.kill()


@pytest.fixture
def record(folder: StateFolder) -> Callable[[ProcessIdentity], None]:
    """Write the state of a deployment whose engine was this process."""

    def write(process: ProcessIdentity) -> None:
        folder.prepare("box")
        instance = InstanceState(
            name="long",
            process=process,
            host="127.0.0.1",
            port=9,
            argv=("vllm",),
            env={},
            log_path=str(folder.log_path("box", "long")),
            started_at=datetime.now(UTC),
        )
        write_state(folder, DeploymentState("box", "ready", (instance,)))

    return write


@pytest.mark.parametrize(
    ("mistake", "note"),
    [
        (lambda process: replace(process, start_ticks=1), "belongs to another program now"),
        (lambda process: replace(process, boot_id="before"), "the machine was restarted since"),
    ],
    ids=["pid reused", "rebooted"],
)
def test_a_stale_deployment_is_forgotten_and_the_stranger_lives(
    mistake: Callable[[ProcessIdentity], ProcessIdentity],
    note: str,
    bystander: ProcessIdentity,
    record: Callable[[ProcessIdentity], None],
    folder: StateFolder,
    heard: Heard,
) -> None:
    record(mistake(bystander))
    (line,) = status(folder)
    assert (line.life, line.health, line.orphan_pids) == ("stale", None, ())
    assert note in line.note
    (end,) = down([], folder, heard, SOON).instances
    assert (end.life_before, end.outcome) == ("stale", "was not running")
    assert is_alive(bystander)
    assert status(folder) == ()


def test_an_engine_that_does_not_answer_is_alive_without_figures(
    bystander: ProcessIdentity, record: Callable[[ProcessIdentity], None], folder: StateFolder
) -> None:
    record(bystander)
    (line,) = status(folder)
    assert (line.life, line.health, line.num_running) == ("alive", "no answer", None)
    assert line.uptime_s is not None
    assert 0 <= line.uptime_s < 60


def test_down_twice_is_down(
    bystander: ProcessIdentity, record: Callable[[ProcessIdentity], None], folder: StateFolder, heard: Heard
) -> None:
    record(bystander)
    assert [end.outcome for end in down(["box"], folder, heard, SOON).instances] == ["stopped"]
    again = down(["box"], folder, heard, SOON)
    assert (again.instances, again.unknown) == ((), ("box",))
    assert read_state(folder, "box") is None


def test_a_mistyped_name_touches_nothing_and_is_hinted_at(
    bystander: ProcessIdentity, record: Callable[[ProcessIdentity], None], folder: StateFolder, heard: Heard
) -> None:
    record(bystander)
    report = down(["bix"], folder, heard, SOON)
    assert (report.instances, report.unknown, report.hints) == ((), ("bix",), ("did you mean 'box'?",))
    assert is_alive(bystander)


def test_down_where_nothing_ever_ran_is_quiet(folder: StateFolder, heard: Heard) -> None:
    assert down([], folder, heard, SOON).instances == ()
    assert down(["box"], folder, heard, SOON).unknown == ("box",)
    assert not folder.path.exists()


def test_a_damaged_state_file_is_one_line_of_status(folder: StateFolder) -> None:
    folder.prepare("box")
    folder.state_path("box").write_text("{")
    (line,) = status(folder)
    assert (line.life, line.deployment) == ("unreadable", "box")
    assert "cannot be read" in line.note


def test_a_damaged_state_file_does_not_save_the_others(
    bystander: ProcessIdentity, record: Callable[[ProcessIdentity], None], folder: StateFolder, heard: Heard
) -> None:
    record(bystander)
    folder.state_path("a-damaged-one").write_text("{")
    with pytest.raises(InputFileError, match="a-damaged-one"):
        down([], folder, heard, SOON)
    assert not is_alive(bystander)
    assert folder.deployments() == ("a-damaged-one",)


def test_a_stop_signal_meanwhile_is_told_and_the_engine_ends_all_the_same(
    bystander: ProcessIdentity, record: Callable[[ProcessIdentity], None], folder: StateFolder
) -> None:
    def press_ctrl_c(event: LaunchEvent) -> None:
        if isinstance(event, EngineStopping):
            os.kill(os.getpid(), signal.SIGINT)

    record(bystander)
    report = down(["box"], folder, press_ctrl_c, SOON)
    assert (report.was_asked_to_stop, [end.outcome for end in report.instances]) == (True, ["stopped"])
