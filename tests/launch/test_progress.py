from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longreach.engine import events
from longreach.engine.events import LogEvent
from longreach.launch.progress import PHASES, PhaseTime, StartProgress, advance, begin, enter

GPU_START: tuple[LogEvent, ...] = (
    events.EngineVersion("0.32.0"),
    events.WeightsStarted(),
    events.WeightsProgress(1, 12),
    events.WeightsLoaded(31.0),
    events.WeightsMemory(7 * 2**30, 33.0),
    events.CompileStarted(),
    events.Compiled(40.0),
    events.KvMemory(10 * 2**30, is_explicit=True),
    events.KvCapacityLine("GPU", 1_291_237, 750_000, 1.72),
    events.GraphProgress("decode, FULL", 3, 51),
    events.GraphsCaptured(9.0, 2**29),
    events.EngineInitialized(60.0, 40.0),
    events.Listening("http://127.0.0.1:8000"),
)


def test_a_gpu_start_goes_through_every_phase() -> None:
    progress = begin(100.0)
    for number, event in enumerate(GPU_START):
        progress = advance(progress, event, 100.0 + number)
    progress = enter(progress, "ready", 120.0)
    assert [time.phase for time in progress.finished] == list(PHASES[:-1])
    assert progress.finished[0] == PhaseTime("starting", 1.0)
    assert sum(time.seconds for time in progress.finished) == progress.elapsed_s(120.0) == 20.0


@pytest.mark.parametrize(
    ("event", "detail"),
    [
        (events.WeightsProgress(3, 12), "3 of 12 shards"),
        (events.GraphProgress("decode, FULL", 3, 51), "3 of 51 graphs (decode, FULL)"),
        (events.GraphProgress("", 3, 51), "3 of 51 graphs"),
        (events.KvCapacityLine("GPU", 1_291_237, 750_000, 1.72), "1,291,237 tokens"),
    ],
)
def test_what_the_engine_counts_is_the_detail(event: LogEvent, detail: str) -> None:
    assert advance(begin(0.0), event, 1.0).detail == detail


def test_a_new_phase_forgets_the_detail_of_the_old_one() -> None:
    loading = advance(begin(0.0), events.WeightsProgress(3, 12), 1.0)
    assert advance(loading, events.Listening("http://x"), 2.0).detail == ""


def test_a_slower_worker_does_not_turn_back_the_phase() -> None:
    progress = advance(begin(0.0), events.KvMemory(1, is_explicit=False), 1.0)
    assert advance(progress, events.WeightsLoaded(1.0), 2.0) == progress


@given(st.lists(st.tuples(st.sampled_from(GPU_START), st.floats(0, 1e6)), max_size=30))
def test_phases_only_ever_move_forward(said: list[tuple[LogEvent, float]]) -> None:
    seen: list[StartProgress] = [begin(0.0)]
    for event, now_s in sorted(said, key=lambda pair: pair[1]):
        seen.append(advance(seen[-1], event, now_s))
    assert all(PHASES.index(old.phase) <= PHASES.index(new.phase) for old, new in pairwise(seen))
    assert all(time.seconds >= 0 for time in seen[-1].finished)
