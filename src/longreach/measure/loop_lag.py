"""How late our own event loop runs. A busy client makes every server look slow; this number says by how much."""

import asyncio
from array import array
from collections.abc import Sequence
from types import TracebackType
from typing import Self

_INTERVAL_S = 0.05


def compute_p99(samples: Sequence[float]) -> float | None:
    """The 99th percentile (nearest rank); None of nothing."""
    if not samples:
        return None
    return sorted(samples)[min(len(samples) - 1, int(0.99 * len(samples)))]


class LoopLagMeter:
    """Asks to be called in short steps while it is entered and keeps by how much each call was late, in seconds."""

    __slots__ = ("_due", "_next_call", "_samples")

    def __init__(self) -> None:
        self._samples = array("d")
        self._next_call: asyncio.TimerHandle | None = None
        self._due = 0.0

    @property
    def num_samples(self) -> int:
        """So many until now: what marks this moment for `compute_p99_since`."""
        return len(self._samples)

    @property
    def p99_s(self) -> float | None:
        """99th percentile so far; None before the first sample."""
        return compute_p99(self._samples)

    def compute_p99_since(self, num_samples: int) -> float | None:
        """99th percentile of what came after the first so many samples; of a shorter time than one step, its last."""
        return compute_p99(self._samples[num_samples:] or self._samples[-1:])

    async def __aenter__(self) -> Self:
        self._wait()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._next_call is not None
        self._next_call.cancel()

    def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = loop.time() + _INTERVAL_S
        self._next_call = loop.call_at(self._due, self._sample)

    def _sample(self) -> None:
        self._samples.append(max(0.0, asyncio.get_running_loop().time() - self._due))
        self._wait()
