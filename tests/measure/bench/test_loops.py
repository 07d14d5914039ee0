"""Loops with a send that is over when the test says so: who is under way together, in which order, and due when."""

import asyncio
import gc
import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest

from longreach.errors import InputFileError, UsageError
from longreach.measure.bench.loops import OpenLoop, last_due_s, run_closed, schedule
from longreach.measure.bench.values import Load
from longreach.measure.workload.values import WorkloadRequest


def request(index: int, session: int | None = None, arrival_s: float | None = None) -> WorkloadRequest:
    return WorkloadRequest(index, (), "text", 10, 1, session, arrival_s)


class Sends:
    """Each send takes a few turns of the event loop; what was under way together is noted."""

    def __init__(self, num_turns: int = 3) -> None:
        self.num_turns = num_turns
        self.order: list[int] = []
        self.under_way: set[int] = set()
        self.most_at_once = 0
        self.due: dict[int, float | None] = {}
        self.sessions: list[int | None] = []

    async def __call__(self, request: WorkloadRequest, due_s: float | None) -> None:
        self.order.append(request.index)
        self.due[request.index] = due_s
        if request.session is not None:
            assert request.session not in self.sessions, "two requests of one session at once"
            self.sessions.append(request.session)
        self.under_way.add(request.index)
        self.most_at_once = max(self.most_at_once, len(self.under_way))
        for _ in range(self.num_turns + request.index % 3):
            await asyncio.sleep(0)
        self.under_way.remove(request.index)
        if request.session is not None:
            self.sessions.remove(request.session)


@pytest.mark.parametrize("concurrency", [1, 3, 50])
async def test_a_closed_loop_keeps_its_number_under_way(concurrency: int) -> None:
    sends = Sends()
    await run_closed([request(index) for index in range(20)], concurrency, sends)
    assert sends.order == list(range(20))
    assert sends.most_at_once == min(concurrency, 20)


async def test_requests_of_one_session_wait_for_each_other_and_let_others_pass() -> None:
    sends = Sends()
    requests = [request(0, session=0), request(1, session=0), request(2, session=1), request(3), request(4, session=0)]
    await run_closed(requests, 2, sends)
    assert sorted(sends.order) == [0, 1, 2, 3, 4]
    assert sends.order[:2] == [0, 2]
    assert [index for index in sends.order if index in (0, 1, 4)] == [0, 1, 4]


async def test_an_error_of_ours_ends_the_loop_and_what_runs() -> None:
    cancelled = []

    async def send(request: WorkloadRequest, due_s: float | None) -> None:
        if request.index == 1:
            raise OSError("no space left on device")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(request.index)
            raise

    with pytest.raises(OSError, match="no space"):
        await run_closed([request(0), request(1)], 2, send)
    assert cancelled == [0]


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (Load(), 0.0),
        (Load("constant", None, 0.5), 4.0),
        (Load("trace", None), 70.0),
    ],
    ids=["closed", "constant", "trace"],
)
def test_the_length_of_an_open_loop_is_known_before(load: Load, expected: float) -> None:
    requests = [replace(request(index), arrival_s=moment) for index, moment in enumerate((5.0, 75.0, 10.0))]
    assert last_due_s(load, requests, "seed") == expected


class Clock:
    """Moves only when it is asked, a little each time: an open loop never waits in earnest."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


async def run_open(requests: Sequence[WorkloadRequest], times: Sequence[float], cap: int | None = None) -> Sends:
    sends = Sends(num_turns=40)
    await OpenLoop(Clock(), cap, asyncio.Event()).run(requests, times, sends)
    return sends


async def test_an_open_loop_sends_in_the_order_of_its_times() -> None:
    sends = await run_open([request(0), request(1), request(2)], [0.02, 0.0, 0.01])
    assert sends.order == [1, 2, 0]
    assert [sends.due[index] for index in (1, 2, 0)] == pytest.approx([100.001, 100.011, 100.021])


async def test_an_open_loop_with_a_cap_never_exceeds_it() -> None:
    sends = await run_open([request(index) for index in range(12)], [0.0] * 12, cap=4)
    assert sends.most_at_once == 4
    assert sorted(sends.order) == list(range(12))


async def test_a_turn_that_waits_for_the_one_before_is_due_when_that_ends() -> None:
    sends = await run_open([request(0, session=0), request(1, session=0), request(2)], [0.0, 0.0, 0.0])
    assert sends.order.index(0) < sends.order.index(1)
    assert sends.due[0] is not None
    assert sends.due[1] is not None
    assert sends.due[1] > sends.due[0] == sends.due[2]


async def test_in_a_hurry_nobody_waits_for_the_time() -> None:
    sends, hurry = Sends(), asyncio.Event()
    hurry.set()
    await asyncio.wait_for(OpenLoop(Clock(), None, hurry).run([request(0), request(1)], [0.0, 3600.0], sends), 5)
    assert sends.order == [0, 1]


def test_a_constant_rate_has_equal_steps() -> None:
    times = schedule(Load("constant", None, 4.0), [request(index) for index in range(4)], "s")
    assert times == [0.0, 0.25, 0.5, 0.75]


def test_poisson_times_have_their_rate_and_depend_on_the_seed_alone() -> None:
    requests = [request(index) for index in range(4_000)]
    load = Load("poisson", None, 5.0)
    times = schedule(load, requests, "s")
    assert times == schedule(load, requests, "s") != schedule(load, requests, "t")
    assert times == sorted(times)
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    mean = sum(gaps) / len(gaps)
    variance = sum((gap - mean) ** 2 for gap in gaps) / len(gaps)
    assert mean == pytest.approx(0.2, rel=0.05)
    assert variance == pytest.approx(0.04, rel=0.15)  # of an exponential: the square of its mean


def test_a_trace_has_its_own_times() -> None:
    requests = [request(0, arrival_s=0.0), request(1, arrival_s=7.5)]
    assert schedule(Load("trace", None), requests, "s") == [0.0, 7.5]


@pytest.mark.parametrize(
    ("load", "what"),
    [
        (Load("trace", None), "no arrival times"),
        (Load("poisson", None), "no rate"),
        (Load("constant", None), "no rate"),
    ],
    ids=["trace", "poisson", "constant"],
)
def test_a_schedule_that_cannot_be_made_is_refused(load: Load, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        schedule(load, [request(0)], "s")


async def test_of_several_errors_of_ours_the_first_ends_the_loop_and_none_is_left_over() -> None:
    left_over: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: left_over.append(context))

    async def fail(_request: WorkloadRequest, _due_s: float | None) -> None:
        raise InputFileError("the disk is full", "no space", "make room")

    with pytest.raises(InputFileError):
        await run_closed([request(index) for index in range(8)], 4, fail)
    gc.collect()
    assert left_over == []
