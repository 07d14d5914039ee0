"""One `up` or `down` at a time for each deployment: a lock that the kernel drops when its holder dies. Unix."""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Literal

from longreach.host.processes import ProcessIdentity, read_identity

Purpose = Literal["up", "down"]


class LockHeldError(Exception):
    """Somebody else holds the lock; `holder` and `purpose` as far as its file tells."""

    def __init__(self, holder: ProcessIdentity | None = None, purpose: Purpose | None = None) -> None:
        by = f"`longreach {purpose}`, pid {holder.pid}" if holder else "another process"
        super().__init__(f"held by {by}")
        self.holder = holder
        self.purpose = purpose


@contextlib.contextmanager
def hold_lock(path: Path, purpose: Purpose) -> Iterator[None]:
    """Hold the lock for the length of a `with`; LockHeldError at once when it is taken. Children do not inherit it."""
    import fcntl  # not on Windows, where people plan

    with path.open("a+", encoding="utf-8") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise _held(handle) from error
        handle.truncate(0)
        identity = read_identity(os.getpid())
        if identity is not None:
            handle.write(json.dumps({"purpose": purpose, "holder": asdict(identity)}))
            handle.flush()
        try:
            yield
        finally:
            handle.truncate(0)


def _held(handle: IO[str]) -> LockHeldError:
    handle.seek(0)
    try:
        content = json.loads(handle.read())
        return LockHeldError(ProcessIdentity(**content["holder"]), content["purpose"])
    except (ValueError, TypeError, KeyError):
        return LockHeldError()
