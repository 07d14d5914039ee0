"""One `up`, `down` or `tiers` at a time for each deployment: a lock that the kernel drops when its holder dies. Unix."""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Literal

from longreach.errors import InputFileError
from longreach.host.processes import ProcessIdentity, read_identity

Purpose = Literal["up", "down", "tiers"]


class LockHeldError(Exception):
    """Somebody else holds the lock; `holder` and `purpose` as far as its file tells."""

    def __init__(self, holder: ProcessIdentity | None = None, purpose: Purpose | None = None) -> None:
        by = f"`longreach {purpose}`, pid {holder.pid}" if holder else "another process"
        super().__init__(f"held by {by}")
        self.holder = holder
        self.purpose = purpose


@contextlib.contextmanager
def hold_lock(path: Path, purpose: Purpose) -> Iterator[None]:
    """Hold the lock for the length of a `with`; LockHeldError at once when it is taken. Children do not inherit it.

    InputFileError when its file cannot be used: another user's folder, a full disk.
    """
    try:
        handle = path.open("ab+", buffering=0)
    except OSError as error:
        raise _unusable(path, error) from error
    with handle:
        _take(handle, path, purpose)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                handle.truncate(0)


def _take(handle: IO[bytes], path: Path, purpose: Purpose) -> None:
    import fcntl  # not on Windows, where people plan

    identity = read_identity(os.getpid())
    holder = json.dumps({"purpose": purpose, "holder": asdict(identity)}) if identity is not None else ""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise _held(handle) from error
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        handle.truncate(0)
        handle.write(holder.encode())
    except OSError as error:
        if purpose == "up":  # a full disk must not keep anybody from ending an engine
            raise _unusable(path, error) from error


def _unusable(path: Path, error: OSError) -> InputFileError:
    fix = "make room there, or set XDG_STATE_HOME to a folder that may be written"
    return InputFileError(f"the lock file {path} cannot be used", error.strerror or str(error), fix)


def _held(handle: IO[bytes]) -> LockHeldError:
    handle.seek(0)
    try:
        content = json.loads(handle.read())
        return LockHeldError(ProcessIdentity(**content["holder"]), content["purpose"])
    except (ValueError, TypeError, KeyError):
        return LockHeldError()
