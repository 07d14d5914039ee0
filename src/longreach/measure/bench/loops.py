"""How requests follow each other: a closed loop keeps a number of them under way, open loops send when it is time.

Requests of one session never overlap: each waits for the one before it. Neither loop knows what a request is made of.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from longreach.errors import UsageError
from longreach.measure.bench.values import Load
from longreach.measure.workload.values import WorkloadRequest

Send = Callable[[WorkloadRequest, float | None], Coroutine[None, None, None]]
"""Sends one request and comes back when it has ended; the second value is when it was due by the run's clock."""


def schedule(load: Load, requests: Sequence[WorkloadRequest], seed: str) -> list[float]:
    """When each request is due in an open loop, in seconds after the first moment of the loop. UsageError when the load
    asks for a rate or for times that are not there.
    """
    if load.arrivals == "trace":
        times = [request.arrival_s for request in requests if request.arrival_s is not None]
        if len(times) < len(requests):
            raise UsageError(
                "the workload has no arrival times",
                "only a trace says when its requests came",
                "--trace FILE, or --rate",
            )
        return times
    if not load.rate_per_s:
        raise UsageError("no rate is given", f"arrivals '{load.arrivals}' need one", "--rate 0.5")
    if load.arrivals == "constant":
        return [place / load.rate_per_s for place in range(len(requests))]
    rng, now, drawn = Random(f"arrivals {seed}"), 0.0, []  # noqa: S311 - a schedule, not a secret
    for _ in requests:
        now += rng.expovariate(load.rate_per_s)
        drawn.append(now)
    return drawn


def last_due_s(load: Load, requests: Sequence[WorkloadRequest], seed: str) -> float:
    """How long after the first request the last one is due; 0 in a closed loop, where none is."""
    times = [] if load.arrivals == "closed" else schedule(load, requests, seed)
    return max(times, default=0.0) - min(times, default=0.0)


async def run_closed(requests: Sequence[WorkloadRequest], concurrency: int, send: Send) -> None:
    """Keep `concurrency` requests under way: always the first that is left and does not wait for its own session."""
    waiting = list(requests)
    under_way: dict[asyncio.Task[None], int | None] = {}
    try:
        while waiting or under_way:
            while len(under_way) < concurrency and (request := _take(waiting, under_way.values())) is not None:
                under_way[asyncio.create_task(send(request, None))] = request.session
            done, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                del under_way[task]
                task.result()
    finally:
        await _end(under_way)


def _take(waiting: list[WorkloadRequest], busy: Iterable[int | None]) -> WorkloadRequest | None:
    sessions = {session for session in busy if session is not None}
    for place, request in enumerate(waiting):
        if request.session not in sessions:
            return waiting.pop(place)
    return None


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """Sends every request at its time, whatever the server does. `cap` is the most under way at once; None: no limit."""

    clock: Callable[[], float]
    cap: int | None
    hurry: asyncio.Event  # set: waste no time on waiting, all that is left fails

    async def run(self, requests: Sequence[WorkloadRequest], times: Sequence[float], send: Send) -> None:
        """The first request is due `times[0]` seconds from now, and so on in the order of the times."""
        began = self.clock()
        room = asyncio.Semaphore(self.cap) if self.cap else None
        last_of_session: dict[int, asyncio.Task[None]] = {}
        try:
            async with asyncio.TaskGroup() as under_way:
                for due, request in sorted(zip(times, requests, strict=True), key=lambda pair: pair[0]):
                    await self._wait_until(began + due)
                    before = None if request.session is None else last_of_session.get(request.session)
                    task = under_way.create_task(self._send_in_turn(request, began + due, before, room, send))
                    if request.session is not None:
                        last_of_session[request.session] = task
        except ExceptionGroup as errors:  # of ours: what a server does wrong is a record
            raise errors.exceptions[0] from errors

    async def _wait_until(self, due: float) -> None:
        left_s = due - self.clock()
        if left_s <= 0:
            await asyncio.sleep(0)  # late as it is: what is under way must go on
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(left_s):
                await self.hurry.wait()

    async def _send_in_turn(
        self,
        request: WorkloadRequest,
        due: float,
        before: asyncio.Task[None] | None,
        room: asyncio.Semaphore | None,
        send: Send,
    ) -> None:
        if before is not None and not before.done():
            await asyncio.wait([before])
            due = max(due, self.clock())  # the turn before it made it wait, not this client
        if room is None:
            return await send(request, due)
        async with room:
            return await send(request, due)


async def _end(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel what still runs and wait for its end, so that every connection is closed."""
    left = [task for task in tasks if not task.done()]
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # seen: the first of them ended the loop, the others say the same
