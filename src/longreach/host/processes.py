"""Processes that are certainly ours, and how to end them. Linux: everything is read from /proc.

A pid alone proves nothing: the kernel gives it to somebody else once its process is gone. A process is therefore named by
its pid, its start time in the kernel's own ticks (field 22 of /proc/PID/stat, proc(5); it does not move when the clock is
set, as a wall-clock time does) and the boot it belongs to.

An engine runs in a session of its own, and all its helpers inherit that session. The kernel does not give a number to a
new process while it still names a session, so members of a session whose leader is dead are that leader's orphans.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_DEAD_STATES = frozenset("ZXx")  # zombie, dead: nothing runs and nothing is held
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process, for ever: a later process with the same pid is not equal to it."""

    pid: int
    start_ticks: int
    boot_id: str


@dataclass(frozen=True, slots=True)
class _Stat:
    """The fields of /proc/PID/stat that are of use here."""

    pid: int
    state: str
    parent_pid: int
    session_id: int
    start_ticks: int
    cpu_ticks: int


def read_boot_id() -> str:
    """A word that changes with every boot of this machine."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"


def _read_stat(pid: int) -> _Stat | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the command's name may hold blanks and brackets
    return _Stat(pid, fields[0], int(fields[1]), int(fields[3]), int(fields[19]), int(fields[11]) + int(fields[12]))


def _read_live_stats() -> Iterator[_Stat]:
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            stat = _read_stat(int(entry.name))
            if stat is not None and stat.state not in _DEAD_STATES:
                yield stat


def read_identity(pid: int) -> ProcessIdentity | None:
    """Who has this pid now; None when nobody does, or only a zombie."""
    stat = _read_stat(pid)
    if stat is None or stat.state in _DEAD_STATES:
        return None
    return ProcessIdentity(pid, stat.start_ticks, read_boot_id())


def read_child_identity(pid: int) -> ProcessIdentity:
    """The identity of a child of this process; its pid is its own until it is reaped, even when it has ended already."""
    stat = _read_stat(pid)
    assert stat is not None, f"pid {pid} is no child of this process, or was reaped"
    return ProcessIdentity(pid, stat.start_ticks, read_boot_id())


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether this very process still runs."""
    return read_identity(identity.pid) == identity


def read_family(leader: ProcessIdentity) -> tuple[ProcessIdentity, ...]:
    """The leader of a session, its members and their descendants, as far as they are alive. Empty after a reboot, and when
    the leader's pid belongs to a stranger.
    """
    boot_id = read_boot_id()
    if leader.boot_id != boot_id:
        return ()
    stats = [stat for stat in _read_live_stats() if stat.start_ticks >= leader.start_ticks]
    holder = next((stat for stat in stats if stat.pid == leader.pid), None)
    if holder is not None and holder.start_ticks != leader.start_ticks:
        return ()
    family = {stat.pid for stat in stats if stat.session_id == leader.pid}
    grew = bool(family)
    while grew:
        children = {stat.pid for stat in stats if stat.parent_pid in family} - family
        grew = bool(children)
        family |= children
    return tuple(ProcessIdentity(stat.pid, stat.start_ticks, boot_id) for stat in stats if stat.pid in family)


def read_cpu_s(family: Iterable[ProcessIdentity]) -> float:
    """Seconds of CPU these processes have used so far, user and system together."""
    stats = (_read_stat(member.pid) for member in family)
    return sum(stat.cpu_ticks for stat in stats if stat is not None) / os.sysconf("SC_CLK_TCK")


def send_signal(identity: ProcessIdentity, number: signal.Signals) -> bool:
    """Signal exactly this process; False when it is gone. The process is pinned first, so that a reused pid is never hit.

    Raises PermissionError when it belongs to another user.
    """
    descriptor = _pin(identity.pid)
    try:
        if not is_alive(identity):
            return False
        if descriptor is None:
            os.kill(identity.pid, number)
        else:
            signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return True


def _pin(pid: int) -> int | None:
    """A descriptor that keeps meaning this process; None where the process is gone, or kernel or sandbox know no such thing."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def reap_child(pid: int) -> int | None:
    """The exit code of an ended child of this process (negative: the signal), once; None while it runs or is not a child."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if ended else None


@dataclass(frozen=True, slots=True)
class StopTimes:
    """How long each step of an end may take, in seconds."""

    leader_s: float = 20.0  # SIGTERM to the leader alone: it knows best how to end its helpers
    orphan_s: float = 2.0  # of these, how long its helpers may outlive it
    family_s: float = 5.0  # then SIGTERM to whoever is left
    kill_s: float = 5.0  # then SIGKILL


DEFAULT_STOP_TIMES = StopTimes()


@dataclass(frozen=True, slots=True)
class StopResult:
    """How a family ended. `killed` needed SIGKILL; `survivors` are still there: uninterruptible, or another user's."""

    num_ended: int
    killed: tuple[int, ...]
    survivors: tuple[int, ...]


def end_family(leader: ProcessIdentity, times: StopTimes, is_hurried: Callable[[], bool] = lambda: False) -> StopResult:
    """SIGTERM the leader, then its family, then SIGKILL, each step bounded. A hurry goes straight to SIGKILL."""
    family = set(read_family(leader))
    num_seen = len(family)
    left = family
    if leader in left and not is_hurried():
        _signal_each({leader}, signal.SIGTERM)
        left = _wait_for_end(leader, left, times.leader_s, is_hurried, times.orphan_s)
    if left and not is_hurried():
        _signal_each(left, signal.SIGTERM)
        left = _wait_for_end(leader, left, times.family_s, is_hurried)
    killed = tuple(sorted(identity.pid for identity in left))
    if left:
        _signal_each(left, signal.SIGKILL)
        left = _wait_for_end(leader, left, times.kill_s, lambda: False)
    survivors = tuple(sorted(identity.pid for identity in left))
    return StopResult(max(num_seen, len(killed)) - len(survivors), killed, survivors)


def _signal_each(identities: Iterable[ProcessIdentity], number: signal.Signals) -> None:
    for identity in identities:
        with contextlib.suppress(PermissionError):  # it will be named among the survivors
            send_signal(identity, number)


def _wait_for_end(
    leader: ProcessIdentity,
    family: set[ProcessIdentity],
    wait_s: float,
    is_hurried: Callable[[], bool],
    orphan_s: float | None = None,
) -> set[ProcessIdentity]:
    """Who is left of the family after at most `wait_s`, or `orphan_s` after the leader; members born meanwhile included."""
    deadline = time.monotonic() + wait_s
    leader_lives = orphan_s is not None
    while True:
        left = {identity for identity in family if is_alive(identity)} or set(read_family(leader))
        if not left or is_hurried() or time.monotonic() >= deadline:
            return left | set(read_family(leader))
        if orphan_s is not None and leader_lives and leader not in left:
            leader_lives = False
            deadline = min(deadline, time.monotonic() + orphan_s)
        family = left
        time.sleep(_POLL_S)
