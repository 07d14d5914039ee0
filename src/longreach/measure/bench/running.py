"""A run under way: its phases in order, every request recorded as it ends, and the end of a server noticed."""

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace

from longreach.engine.metrics import EngineMetrics
from longreach.errors import ServerError
from longreach.measure.bench.asking import Asking
from longreach.measure.bench.counting import PhaseCount, report_phase, sample_gauges
from longreach.measure.bench.events import Ahead, OnBenchEvent, Tally
from longreach.measure.bench.flood import make_flood, make_warm_up
from longreach.measure.bench.loops import OpenLoop, last_due_s, run_closed, schedule
from longreach.measure.bench.recording import Sent, make_record, unsent
from longreach.measure.bench.settings import WARM_UP
from longreach.measure.bench.store import Store
from longreach.measure.bench.values import Load, PhaseSpec, RequestRecord
from longreach.measure.client import Client
from longreach.measure.loop_lag import LoopLagMeter
from longreach.measure.metrics import count_request, fetch_metrics, fetch_settled_metrics, is_idle
from longreach.measure.stream import StreamResult
from longreach.measure.verify_report import Counters
from longreach.measure.workload.values import WorkloadRequest

_TICK_S = 1.0
_TRIES_BEFORE_ASKING = 3  # requests in a row that find no server, before it is asked whether it is there at all
_FLOOD_CONCURRENCY = 4  # in an open loop
_NEVER_TAKEN_UP = frozenset({"unreachable", "refused"})
_SECOND_PASS = PhaseSpec("warm 2", "warm")


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What is to be done, once it is known who the server is."""

    requests: tuple[WorkloadRequest, ...]
    load: Load
    seed: str
    template_tokens: int
    block_size: int | None
    is_hybrid: bool | None  # None: not known, a first repeat that misses will tell
    flood_tokens: int  # 0: nothing floods
    num_warm_up: int = 0


@dataclass(slots=True)
class _OpenPhase:
    """The phase under way. `is_alone`: nothing else runs, so that each request can be told its own counters."""

    spec: PhaseSpec
    began_s: float
    before: EngineMetrics | None
    is_alone: bool
    num_sent: int = 0
    num_ok: int = 0
    num_not_taken: int = 0

    @property
    def num_broken(self) -> int:
        """Requests that the server took up, and that did not end well or have not ended."""
        return self.num_sent - self.num_ok - self.num_not_taken


class Run:
    """A run under way; what is known of it is in its log at every moment. `dead` says why there is no server, if so."""

    def __init__(
        self,
        client: Client,
        asking: Asking,
        plan: RunPlan,
        store: Store,
        on_event: OnBenchEvent,
        dead: str | None = None,
    ) -> None:
        self._client = client
        self._asking = asking
        self._plan = plan
        self._store = store
        self._log = store.log
        self._on_event = on_event
        self._dead = dead
        self._is_dead = asyncio.Event()
        if dead is not None:
            self._is_dead.set()
        self._resumed_at_s = self._log.last_moment_s  # a run that is taken up again goes on by the same clock
        self._began = time.perf_counter() - self._resumed_at_s
        self._phase: _OpenPhase | None = None
        self._tries = 0
        self._last_metrics: EngineMetrics | None = None
        self._flood = make_flood(plan.requests, plan.flood_tokens)
        self._warm_up = make_warm_up(plan.requests, plan.num_warm_up)
        self._ahead = Ahead()
        self._tally = Tally(*self._size(self._log.header.phases))

    def clock(self) -> float:
        """Seconds after the beginning of the run."""
        return time.perf_counter() - self._began

    async def run(self, lag: LoopLagMeter) -> None:
        """All phases; cancelling ends it at once, and `close_phase` is due then."""
        async with AsyncExitStack() as beside:
            await beside.enter_async_context(_beside(self._tick()))
            if self._dead is None:
                await beside.enter_async_context(_beside(sample_gauges(self._client, self.clock, self._store.keep)))
            if self._resumed_at_s and not any(map(self._left_of, self._log.header.phases)):
                self._tell("nothing is left to send: the results file holds it all")
            place = 0
            while place < len(self._log.header.phases):
                spec = self._log.header.phases[place]
                await self._run_phase(spec, lag)
                self._add_second_pass(spec)
                place += 1

    def _size(self, phases: Iterable[PhaseSpec]) -> tuple[int, int]:
        """Requests of these phases and their tokens."""
        requests = [request for phase in phases for request in self._requests_of(phase)]
        return len(requests), sum(request.prompt_tokens + request.output_tokens for request in requests)

    def _requests_of(self, phase: PhaseSpec) -> Sequence[WorkloadRequest]:
        if phase == WARM_UP:
            return self._warm_up
        return self._flood if phase.state == "flood" else self._plan.requests

    def _left_of(self, spec: PhaseSpec) -> Sequence[WorkloadRequest]:
        """What of a phase is to be sent. Of a run that is taken up again while something is still to be evicted, that is the
        whole flood: what was cut off is in the cache again.
        """
        left = [request for request in self._requests_of(spec) if not self._log.has(spec.name, request.index)]
        if spec.state != "flood" or spec == WARM_UP or not self._resumed_at_s or self._is_dead.is_set():
            return left
        evicted = next(phase for phase in self._log.header.phases if phase.state == "evicted")
        return self._flood if self._left_of(evicted) else left

    def _tell(self, say: str = "") -> None:
        name, now_s = self._phase.spec.name if self._phase else "", self.clock()
        event = self._tally.event("requests", now_s - self._resumed_at_s, name, say)
        if self._plan.load.arrivals != "closed":
            event = self._ahead.tell(event, now_s, self._tally.latency_p50_s)
        self._on_event(event)

    def _look_ahead(self, spec: PhaseSpec, times: Sequence[float]) -> Ahead:
        """`times` are those of the pass that begins now."""
        phases = self._log.header.phases
        later = phases[phases.index(spec) + 1 :]
        spans = [last_due_s(self._plan.load, self._plan.requests, self._seed_of(each)) for each in later]
        now_s, floods = self.clock(), any(each.state == "flood" for each in later)
        return Ahead(sorted(now_s + moment for moment in times), len(later), None if floods else sum(spans))

    def _seed_of(self, spec: PhaseSpec) -> str:
        return f"{self._plan.seed} {spec.name}"

    async def _tick(self) -> None:
        while True:
            self._tell()
            await asyncio.sleep(_TICK_S)

    async def _run_phase(self, spec: PhaseSpec, lag: LoopLagMeter) -> None:
        left = self._left_of(spec)
        for index in {request.index for request in self._requests_of(spec)} - {request.index for request in left}:
            self._tally.add(self._log.records[spec.name, index], was_before=True)
        if not left:
            return
        before = None if self._is_dead.is_set() else await fetch_metrics(self._client)
        load = self._plan.load
        is_alone = before is not None and load.arrivals == "closed" and load.concurrency == 1
        self._phase = _OpenPhase(spec, self.clock(), before, is_alone)
        self._last_metrics = before
        self._tell()

        async def send(request: WorkloadRequest, due_s: float | None) -> None:
            await self._send(request, due_s, lag)

        if load.arrivals == "closed" or spec.state == "flood":
            self._ahead = Ahead()
            await run_closed(left, load.concurrency or _FLOOD_CONCURRENCY, send)
        else:
            times = schedule(load, left, self._seed_of(spec))
            times = [moment - min(times) for moment in times]
            self._ahead = self._look_ahead(spec, times)
            await OpenLoop(self.clock, load.concurrency, self._is_dead).run(left, times, send)
        await self.close_phase()

    async def close_phase(self, patience_s: float | None = None) -> None:
        """Record what the server counted in the phase that is open, if one is; without its word when that takes too long."""
        phase, self._phase = self._phase, None
        if phase is None:
            return
        ended_s, after = self.clock(), None
        if phase.before is not None and not self._is_dead.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    after = await fetch_settled_metrics(self._client, phase.before, phase.num_ok)
        count = PhaseCount(phase.spec, phase.began_s, ended_s, phase.num_sent, phase.num_ok, phase.num_broken)
        self._store.keep(report_phase(count, phase.before, after))

    async def _send(self, request: WorkloadRequest, due_s: float | None, lag: LoopLagMeter) -> None:
        phase = self._phase
        assert phase is not None
        if self._is_dead.is_set():
            sent = Sent(phase.spec, request, due_s, self.clock())
            self._record(make_record(sent, unsent(self._dead or "")))
            return
        body = self._asking.render(phase.spec, request)
        sent = Sent(phase.spec, request, due_s, self.clock())
        phase.num_sent += 1
        result = await self._client.stream(self._asking.sender.path, body, lag=lag)
        phase.num_ok += result.failure is None
        phase.num_not_taken += result.failure is not None and result.failure.kind in _NEVER_TAKEN_UP
        counters = await self._count_alone(phase, result)
        record = make_record(
            sent,
            result,
            counters,
            template_tokens=self._plan.template_tokens,
            block_size=self._plan.block_size,
        )
        self._record(record)
        self._store.keep_answer(record, result)
        await self._notice_death(record)

    def _record(self, record: RequestRecord) -> None:
        self._tally.add(record)
        self._store.keep(record)

    async def _count_alone(self, phase: _OpenPhase, result: StreamResult) -> Counters | None:
        """The request's own counters. Once others keep the server busy, nobody waits for them any more."""
        before = self._last_metrics
        if not phase.is_alone or before is None:
            return None
        if result.failure is not None:
            self._last_metrics = await fetch_metrics(self._client)
            return None
        self._last_metrics = after = await fetch_settled_metrics(self._client, before)
        phase.is_alone = after is not None and is_idle(after)
        return None if after is None else count_request(before, after)

    async def _notice_death(self, record: RequestRecord) -> None:
        """A server that several requests in a row did not find is asked for; when nothing answers, the rest fails fast."""
        self._tries = self._tries + 1 if record.error_kind == "unreachable" else 0
        if self._tries < _TRIES_BEFORE_ASKING or self._is_dead.is_set():
            return
        try:
            await self._client.fetch("/v1/models")
        except ServerError as error:
            self._dead = error.why
            self._is_dead.set()
            self._tell(f"nothing answers any more ({error.why}): what is left is not sent, and counts as failed")

    def _add_second_pass(self, spec: PhaseSpec) -> None:
        """Hybrid models may hit from their second repeat on; a model that nobody knows gets the chance."""
        phases = self._log.header.phases
        if self._plan.is_hybrid is not None or spec.name != "warm 1" or _SECOND_PASS in phases:
            return
        if not any(record.proof == "disproven" for (name, _), record in self._log.records.items() if name == spec.name):
            return
        place = phases.index(spec) + 1
        self._store.keep(replace(self._log.header, phases=(*phases[:place], _SECOND_PASS, *phases[place:])))
        self._tally.expect(*self._size([_SECOND_PASS]))
        self._tell("the first repeat missed the cache, as it may with hybrid models: there is a second one")


@asynccontextmanager
async def _beside(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Let it run while the block does."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
