"""`down`: end what `up` started, from any shell, as often as one likes."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from longreach.errors import EngineError, InputFileError
from longreach.host.processes import DEFAULT_STOP_TIMES, ProcessIdentity, StopTimes, send_signal
from longreach.launch.lock import LockHeldError, hold_lock
from longreach.launch.signals import StopSignals
from longreach.launch.state import InstanceState, StateFolder, read_state, remove_state
from longreach.launch.status import Life, read_life
from longreach.launch.stop import end_engine
from longreach.launch.up_events import EngineStopped, EngineStopping, LaunchEvent
from longreach.units import did_you_mean

_POLL_S = 0.1
_MARGIN_S = 5.0

Outcome = Literal["stopped", "was not running", "survived"]


@dataclass(frozen=True, slots=True)
class InstanceEnd:
    """One instance after `down`. `killed` and `survivors` are pids."""

    deployment: str
    name: str
    life_before: Life
    outcome: Outcome
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    removed_files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class DownReport:
    """What was ended. `unknown` are names under which nothing is known: ended before, or mistyped (`hints`)."""

    instances: tuple[InstanceEnd, ...]
    unknown: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    was_asked_to_stop: bool = False  # by a signal, which does not keep engines from being ended


def down(
    names: Sequence[str],
    folder: StateFolder,
    on_event: Callable[[LaunchEvent], None],
    times: StopTimes = DEFAULT_STOP_TIMES,
) -> DownReport:
    """End the named deployments, or all of them. A pid that is somebody else's by now is left alone.

    Raises EngineError when another command holds a deployment and does not let go in time; InputFileError for a state file
    that cannot be read, when the other deployments are down.
    """
    known = folder.deployments()
    wanted = tuple(dict.fromkeys(names)) or known
    ends: list[InstanceEnd] = []
    unreadable: InputFileError | None = None
    with StopSignals() as signals:
        signals.begin_stopping()
        for deployment in wanted:
            try:
                ends += _end_or_ask(folder, deployment, on_event, times, signals)
            except InputFileError as error:
                unreadable = unreadable or error
    if unreadable is not None:
        raise unreadable
    ended = {end.deployment for end in ends}
    unknown = tuple(name for name in wanted if name not in known and name not in ended)
    hints = tuple(hint for hint in (did_you_mean(name, known) for name in unknown) if hint)
    return DownReport(tuple(ends), unknown, hints, signals.is_requested)


def _end_or_ask(
    folder: StateFolder,
    deployment: str,
    on_event: Callable[[LaunchEvent], None],
    times: StopTimes,
    signals: StopSignals,
) -> list[InstanceEnd]:
    before = read_state(folder, deployment)
    with _hold(folder, deployment, times) as up_was_asked:
        ended = _end_deployment(folder, deployment, on_event, times, signals)
    if up_was_asked and before is not None and not ended:
        return [InstanceEnd(deployment, instance.name, "alive", "stopped") for instance in before.instances]
    return ended


@contextlib.contextmanager
def _hold(folder: StateFolder, deployment: str, times: StopTimes) -> Iterator[bool]:
    """The deployment's lock. An `up` that has it is asked to stop and ends its engines itself: True. A `down` is awaited."""
    lock_path = folder.lock_path(deployment)
    if not lock_path.parent.is_dir():
        yield False
        return
    deadline = time.monotonic() + times.leader_s + times.family_s + times.kill_s + _MARGIN_S
    asked: set[ProcessIdentity] = set()
    while True:
        try:
            with hold_lock(lock_path, "down"):
                yield bool(asked)
                return
        except LockHeldError as held:
            if time.monotonic() >= deadline:
                raise _never_let_go(deployment, held) from held
            if held.holder is not None and held.purpose == "up" and held.holder not in asked:
                send_signal(held.holder, signal.SIGTERM)
                asked.add(held.holder)
        time.sleep(_POLL_S)


def _never_let_go(deployment: str, held: LockHeldError) -> EngineError:
    command = f": kill {held.holder.pid}" if held.holder else ""
    return EngineError(
        f"deployment '{deployment}' is held by another command",
        f"its lock is {held} and was not given up in time",
        f"end that command first{command}",
    )


def _end_deployment(
    folder: StateFolder,
    deployment: str,
    on_event: Callable[[LaunchEvent], None],
    times: StopTimes,
    signals: StopSignals,
) -> list[InstanceEnd]:
    state = read_state(folder, deployment)
    instances = state.instances if state else ()
    ends = [_end_instance(deployment, instance, on_event, times, signals) for instance in reversed(instances)]
    if state is not None and not any(end.survivors for end in ends):
        remove_state(folder, deployment)
    return ends


def _end_instance(
    deployment: str,
    instance: InstanceState,
    on_event: Callable[[LaunchEvent], None],
    times: StopTimes,
    signals: StopSignals,
) -> InstanceEnd:
    life, _ = read_life(instance)
    if life == "alive":
        on_event(EngineStopping(instance.name, instance.process.pid))
    end = end_engine(instance, times, signals.is_hurried)
    on_event(EngineStopped(instance.name, end.result, end.removed_files))
    outcome: Outcome = "survived" if end.result.survivors else "stopped" if end.result.num_ended else "was not running"
    return InstanceEnd(
        deployment=deployment,
        name=instance.name,
        life_before=life,
        outcome=outcome,
        killed=end.result.killed,
        survivors=end.result.survivors,
        removed_files=end.removed_files,
    )
