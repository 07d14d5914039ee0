"""How late our own event loop runs. A busy client makes every server look slow; this number says by how much."""

import asyncio
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

_INTERVAL_S = 0.02


def compute_p99(samples: list[float]) -> float | None:
    """The 99th percentile (nearest rank); None of nothing."""
    if not samples:
        return None
    return sorted(samples)[min(len(samples) - 1, int(0.99 * len(samples)))]


class LoopLagMeter:
    """Sleeps in short steps while it is entered and keeps by how much each was overslept, in seconds."""

    __slots__ = ("_samples", "_task")

    def __init__(self) -> None:
        self._samples: list[float] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def p99_s(self) -> float | None:
        """99th percentile so far; None before the first sample."""
        return compute_p99(self._samples)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._sample())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _sample(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(_INTERVAL_S)
            self._samples.append(max(0.0, time.perf_counter() - before - _INTERVAL_S))
