"""Why a start failed, as an error: the engine's decisive line where it has one, and what the system knows where not."""

import signal
from collections.abc import Sequence
from pathlib import Path

from longreach.engine.failures import UNKNOWN, find_failure
from longreach.errors import EngineError
from longreach.host.files import read_free_bytes
from longreach.units import format_duration

_NUM_LAST_LINES = 5
_MAX_LINE_CHARACTERS = 200  # the line that tells the configuration has thousands
_FULL_BYTES = 64 * 2**10
_SIGNAL_REASONS = {
    "SIGKILL": "SIGKILL comes from the kernel when memory runs out (see: journalctl -k | grep -i oom), or from a user",
    "SIGTERM": "somebody asked it to stop while it was starting (`longreach down`, or kill)",
    "SIGSEGV": "a crash in native code: a driver, kernel or library that does not fit",
    "SIGABRT": "a native library gave up",
    "SIGILL": "a wheel built for another CPU",
}


class EngineStartError(EngineError):
    """An engine that did not become ready. `cause` is the stable word of the failure table; None: it is not in it."""


def explain_end(name: str, exit_code: int, lines: Sequence[str], log_path: Path) -> EngineStartError:
    """The error for an engine that ended before it was ready; `lines` are its whole log."""
    failure = find_failure(lines)
    if failure is not None:
        is_known = failure.cause != UNKNOWN
        return EngineStartError(
            f"engine '{name}' did not start"
            + (f": {failure.what}" if is_known else ", for a reason that is new to us"),
            f"line {failure.line_number} of {log_path}: {failure.why}",
            failure.fix if is_known else f"no fix is known; read its log from that line on: {log_path}",
            failure.cause,
        )
    return EngineStartError(
        f"engine '{name}' ended before it was ready, {describe_exit(exit_code)}", *_traces(exit_code, lines, log_path)
    )


def explain_later_end(name: str, exit_code: int, lines: Sequence[str], log_path: Path) -> EngineError:
    """The error for an engine that was ready and ended by itself. Its log is full of requests: no line is singled out."""
    return EngineError(
        f"engine '{name}' ended while it was serving, {describe_exit(exit_code)}", *_traces(exit_code, lines, log_path)
    )


def _traces(exit_code: int, lines: Sequence[str], log_path: Path) -> tuple[str, str]:
    """Why and fix, of what an engine without a known cause left behind."""
    last = f"its last lines: {_last_lines(lines)}"
    free_bytes = read_free_bytes(log_path.parent)
    if free_bytes is not None and free_bytes < _FULL_BYTES:
        return f"the disk that holds its log is full ({free_bytes} bytes free); {last}", f"make room for {log_path}"
    return f"{_reason(exit_code)}; {last}", f"read its log: {log_path}"


def explain_silence(
    name: str, phase: str, silent_s: float, cpu_s: float, lines: Sequence[str], log_path: Path
) -> EngineStartError:
    """The error for an engine that lives but has logged nothing for too long; `cpu_s` is what it used meanwhile."""
    failure = find_failure(lines)
    busy = "it was working" if cpu_s > silent_s / 4 else "it was waiting for something"
    used = f"its processes used {cpu_s:.0f} s of CPU meanwhile, so {busy}"
    hint = f"; an earlier error: {failure.why}" if failure else f"; its last line: {_last_lines(lines[-1:])}"
    return EngineStartError(
        f"engine '{name}' logged nothing for {format_duration(silent_s)} in phase '{phase}'",
        f"{used}{hint}",
        failure.fix if failure else f"give it longer with --stall {2 * silent_s:.0f}, or read its log: {log_path}",
        failure.cause if failure else None,
    )


def explain_lateness(name: str, phase: str, limit_s: float, log_path: Path) -> EngineStartError:
    """The error for an engine that is still starting at the very last moment."""
    return EngineStartError(
        f"engine '{name}' was not ready after {format_duration(limit_s)}",
        f"it is in phase '{phase}' and still logging",
        f"no start should take so long; read its log: {log_path}",
    )


def describe_exit(exit_code: int) -> str:
    """`exit code 1`, or `killed by SIGKILL`."""
    if exit_code >= 0:
        return f"exit code {exit_code}"
    return f"killed by {_signal_name(-exit_code)}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _reason(exit_code: int) -> str:
    if exit_code < 0:
        return _SIGNAL_REASONS.get(_signal_name(-exit_code), "it was ended from outside")
    return "its log names no cause that is known"


def _clip(line: str) -> str:
    return line if len(line) <= _MAX_LINE_CHARACTERS else f"{line[:_MAX_LINE_CHARACTERS]} ..."


def _last_lines(lines: Sequence[str]) -> str:
    last = [line.strip() for line in lines if line.strip()][-_NUM_LAST_LINES:]
    return " / ".join(_clip(line) for line in last) or "none, the log is empty"
