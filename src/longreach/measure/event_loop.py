"""The event loop that measuring runs on: uvloop where it exists, which takes a third off the cost of a lone token."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """As asyncio.run: Ctrl-C cancels `main`."""
    if sys.platform == "win32":
        return asyncio.run(main)
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)
