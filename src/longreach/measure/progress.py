"""Telling the caller where a long measurement stands. `measure` itself never prints."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Literal

_TICK_S = 1.0


@dataclass(frozen=True, slots=True)
class VerifyEvent:
    """A step began, still runs (once a second), or ended. `estimate_s` is what the forecast expects it to take."""

    phase: Literal["reach", "prompt", "send"]
    state: Literal["started", "running", "finished"]
    elapsed_s: float
    estimate_s: float | None = None
    detail: str = ""  # "cold", "warm 1", ...


OnEvent = Callable[[VerifyEvent], None]


@asynccontextmanager
async def report_phase(
    on_event: OnEvent,
    phase: Literal["reach", "prompt", "send"],
    detail: str = "",
    estimate_s: float | None = None,
) -> AsyncIterator[None]:
    """Report the block as one phase; a block that raises or is cancelled does not report its end."""
    began = time.monotonic()

    def tell(state: Literal["started", "running", "finished"]) -> None:
        on_event(VerifyEvent(phase, state, time.monotonic() - began, estimate_s, detail))

    async def tick() -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            tell("running")

    tell("started")
    ticker = asyncio.create_task(tick())
    try:
        yield
    finally:
        ticker.cancel()
        with suppress(asyncio.CancelledError):
            await ticker
    tell("finished")
