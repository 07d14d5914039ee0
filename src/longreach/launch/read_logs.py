"""`logs`: what an engine printed, with the lines that mean something marked. It works for engines that are gone, too."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from longreach.engine.events import LogEvent
from longreach.engine.logs import parse_log_line
from longreach.errors import InputFileError
from longreach.host.processes import is_alive
from longreach.launch.log_tail import LogTail, open_tail, read_last_lines
from longreach.launch.state import InstanceState, StateFolder, read_state
from longreach.units import did_you_mean

_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One line; `event` is what it means, None for the many that mean nothing to us."""

    instance: str
    text: str
    event: LogEvent | None


def log_paths(folder: StateFolder, deployment: str) -> dict[str, Path]:
    """The logs of a deployment by instance. InputFileError when it never ran here."""
    log_folder = folder.log_path(deployment, "x").parent
    paths = {path.stem: path for path in sorted(log_folder.glob("*.log"))}
    unreadable = next((path for path in (log_folder, *paths.values()) if not _is_readable(path)), None)
    if unreadable is not None:
        raise InputFileError(
            f"the log {unreadable} cannot be read", "Permission denied", "read it as the user who started it"
        )
    if not paths:
        known = folder.logged()
        raise InputFileError(
            f"there is no log of a deployment '{deployment}'",
            f"{log_folder} holds none",
            did_you_mean(deployment, known) or (f"known are {', '.join(sorted(known))}" if known else "start it first"),
        )
    return paths


def _is_readable(path: Path) -> bool:
    return os.access(path, os.R_OK) or not path.exists()


def read_logs(
    folder: StateFolder, deployment: str, num_lines: int, *, only_events: bool = False
) -> tuple[LogRecord, ...]:
    """The last lines of each instance's log, one instance after the other. `only_events` counts and gives only lines with
    an event.
    """
    paths = log_paths(folder, deployment)
    return tuple(
        record
        for instance, path in paths.items()
        for record in _last_records(instance, read_last_lines(path), num_lines, only_events=only_events)
    )


def follow_logs(
    folder: StateFolder,
    deployment: str,
    num_lines: int = 0,
    poll_s: float = _POLL_S,
    *,
    only_events: bool = False,
) -> Iterator[LogRecord]:
    """The last lines of the logs, then what is added to them, until the engines have ended (at once when they have)."""
    tails: dict[str, LogTail] = {}
    for instance, path in log_paths(folder, deployment).items():
        lines, tails[instance] = open_tail(path)
        yield from _last_records(instance, lines, num_lines, only_events=only_events)
    goes_on = True
    while goes_on:
        goes_on = _any_alive(folder, deployment)
        for instance, tail in tails.items():
            lines = tail.read_lines() if goes_on else tail.read_rest()
            yield from _last_records(instance, lines, len(lines), only_events=only_events)
        if goes_on:
            time.sleep(poll_s)


def _any_alive(folder: StateFolder, deployment: str) -> bool:
    state = read_state(folder, deployment)
    instances: Sequence[InstanceState] = state.instances if state else ()
    return any(is_alive(instance.process) for instance in instances)


def _last_records(instance: str, lines: Sequence[str], num_lines: int, *, only_events: bool) -> list[LogRecord]:
    if not only_events:
        lines = lines[len(lines) - min(num_lines, len(lines)) :]
    records = [LogRecord(instance, line, parse_log_line(line)) for line in lines]
    if only_events:
        records = [record for record in records if record.event is not None]
    return records[len(records) - min(num_lines, len(records)) :]
