"""Ending an asynchronous command early without losing what it knows."""

import contextlib
import signal
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def cancelling_on_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP cancel the current task, as asyncio lets Ctrl-C do; one that is ignored stays ignored."""
    import asyncio

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    heeded = _read_heeded()
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # Windows; outside the main thread
        for number in heeded:
            loop.add_signal_handler(number, task.cancel)
    try:
        yield
    finally:
        for number, handler in heeded.items():
            with contextlib.suppress(NotImplementedError, ValueError):
                if loop.remove_signal_handler(number):
                    signal.signal(number, handler)


@contextlib.contextmanager
def interrupting_on_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt, as Ctrl-C does; one that is ignored stays ignored."""
    heeded = _read_heeded()
    for number in heeded:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in heeded.items():
            signal.signal(number, handler)


def _read_heeded() -> dict[signal.Signals, Any]:
    """Those of the two that are not ignored, with what handles them now."""
    found = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]  # Windows has no SIGHUP
    before = {number: signal.getsignal(number) for number in found if number is not None}
    return {number: handler for number, handler in before.items() if handler != signal.SIG_IGN}
