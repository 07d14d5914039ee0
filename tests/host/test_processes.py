import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from longreach.host.processes import (
    ProcessIdentity,
    StopTimes,
    end_family,
    is_alive,
    read_family,
    read_identity,
    reap_child,
    send_signal,
)

SHORT = StopTimes(leader_s=1.0, orphan_s=0.1, family_s=0.3, kill_s=5.0)
SLEEP = "import time; time.sleep(60)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
CHILD = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', {code!r}])"
READY = "print('ready', flush=True)"
Leader = Callable[..., ProcessIdentity]


@pytest.fixture
def leader() -> Iterator[Leader]:
    """Start a Python program as the leader of a session, wait until it says ready, end it after the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*lines: str) -> ProcessIdentity:
        code = "\n".join([*lines, READY, SLEEP])
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        identity = read_identity(process.pid)
        assert identity is not None
        return identity

    yield start
    for process in started:
        for member in read_family_of(process.pid):
            send_signal(member, signal.SIGKILL)
        with process:
            process.kill()


def read_family_of(pid: int) -> tuple[ProcessIdentity, ...]:
    identity = read_identity(pid)
    return read_family(identity) if identity else ()


def test_an_identity_does_not_survive_its_process(leader: Leader) -> None:
    identity = leader()
    assert is_alive(identity)
    end_family(identity, SHORT)
    assert not is_alive(identity)
    assert read_identity(identity.pid) is None  # a zombie of ours until it is reaped: dead all the same
    assert reap_child(identity.pid) == -signal.SIGTERM
    assert reap_child(identity.pid) is None


@pytest.mark.parametrize(
    "mistake",
    [lambda identity: replace(identity, start_ticks=1), lambda identity: replace(identity, boot_id="another-boot")],
    ids=["pid reused", "machine rebooted"],
)
def test_a_stranger_with_our_pid_is_never_touched(
    mistake: Callable[[ProcessIdentity], ProcessIdentity], leader: Leader
) -> None:
    identity = leader()
    recorded = mistake(identity)
    assert not is_alive(recorded)
    assert read_family(recorded) == ()
    assert not send_signal(recorded, signal.SIGTERM)
    assert end_family(recorded, SHORT).num_ended == 0
    assert is_alive(identity)


def test_children_end_with_their_leader(leader: Leader) -> None:
    identity = leader(CHILD.format(code=SLEEP))
    family = read_family(identity)
    assert len(family) == 2
    result = end_family(identity, SHORT)
    assert (result.num_ended, result.killed, result.survivors) == (2, (), ())
    assert not any(is_alive(member) for member in family)


def test_orphans_of_a_dead_leader_are_found_by_its_session(leader: Leader) -> None:
    identity = leader(CHILD.format(code=SLEEP))
    send_signal(identity, signal.SIGKILL)
    os.waitid(os.P_PID, identity.pid, os.WEXITED | os.WNOWAIT)
    (orphan,) = read_family(identity)
    assert orphan.pid != identity.pid
    assert end_family(identity, SHORT).num_ended == 1
    assert read_family(identity) == ()


def test_a_stubborn_process_is_killed(leader: Leader) -> None:
    identity = leader(STUBBORN)
    result = end_family(identity, replace(SHORT, leader_s=0.1, family_s=0.1))
    assert (result.killed, result.survivors) == ((identity.pid,), ())


def test_a_hurry_skips_the_asking(leader: Leader) -> None:
    identity = leader(STUBBORN)
    result = end_family(identity, StopTimes(leader_s=60, family_s=60, kill_s=5), is_hurried=lambda: True)
    assert result.killed == (identity.pid,)
