"""The event loop that measuring runs on: uvloop where it exists, which takes a third off the cost of a lone token."""

import asyncio
import os
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

Result = TypeVar("Result")


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """As asyncio.run: Ctrl-C cancels `main`."""
    if sys.platform == "win32":
        return asyncio.run(main)
    import uvloop

    _allow_many_sockets()
    _fill_standard_descriptors()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def _fill_standard_descriptors() -> None:
    """A process begun without stdin, stdout or stderr (`>&-`) would get uvloop's own pipes there, which abort it."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


def _allow_many_sockets() -> None:
    """Every request under way has a socket, and the usual limit is 1,024: as many as this user may have."""
    if sys.platform != "win32":
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        with suppress(OSError, ValueError):  # macOS calls endless what it does not take
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
