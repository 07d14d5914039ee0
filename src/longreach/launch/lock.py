"""One `up` or `down` at a time for each deployment: a lock that the kernel drops when its holder dies. Linux and macOS."""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO

from longreach.host.processes import ProcessIdentity, read_identity


class LockHeldError(Exception):
    """Somebody else holds the lock; `holder` is who, as far as the file tells."""

    def __init__(self, holder: ProcessIdentity | None) -> None:
        super().__init__(f"held by {f'pid {holder.pid}' if holder else 'another process'}")
        self.holder = holder


@contextlib.contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock for the length of a `with`; LockHeldError at once when it is taken. Children do not inherit it."""
    with path.open("a+", encoding="utf-8") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LockHeldError(_read_holder(handle)) from error
        _write_holder(handle)
        try:
            yield
        finally:
            handle.truncate(0)


def _write_holder(handle: IO[str]) -> None:
    identity = read_identity(os.getpid())
    handle.truncate(0)
    if identity is not None:
        handle.write(json.dumps(asdict(identity)))
        handle.flush()


def _read_holder(handle: IO[str]) -> ProcessIdentity | None:
    handle.seek(0)
    try:
        return ProcessIdentity(**json.loads(handle.read()))
    except (ValueError, TypeError):
        return None
