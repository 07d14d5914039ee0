from dataclasses import replace

import pytest
from tests.measure.bench.results import failed, record

from longreach.measure.bench.events import Ahead, Tally


def test_a_tally_counts_what_ended_and_how_much_longer_it_takes() -> None:
    tally = Tally(num_wanted=8, tokens_wanted=8 * 1_011)
    tally.add(record(0), was_before=True)
    for index, ttft_s in ((1, 1.0), (2, 9.0), (3, 3.0)):
        tally.add(replace(record(index), ttft_s=ttft_s))
    tally.add(failed(4))
    event = tally.event("requests", elapsed_s=40.0, phase="cold")
    assert (event.num_done, event.num_failed, event.tokens_done) == (5, 1, 5 * 1_011)
    assert event.ttft_p50_s == 3.0
    assert event.left_s == pytest.approx(40.0 * 3 / 4)  # four of them in this sitting, three are left


def test_what_comes_on_top_is_counted() -> None:
    tally = Tally(2, 100)
    tally.expect(3, 50)
    event = tally.event("requests", 0.0)
    assert (event.num_wanted, event.tokens_wanted, event.left_s) == (5, 150, None)


def test_an_open_loop_is_timed_by_its_clock() -> None:
    tally, ahead = Tally(4, 400), Ahead([0.0, 10.0, 3_000.0], num_later=1, later_s=3_000.0)
    waiting = ahead.tell(tally.event("requests", 20.0), 20.0, tally.latency_p50_s)
    assert (waiting.next_due_s, waiting.left_s) == (2_980.0, None)  # nothing was answered: nothing is guessed
    tally.add(replace(record(0), e2e_latency_s=5.0))
    for now_s, next_due_s, left_s in ((20.0, 2_980.0, 5_990.0), (1_000.0, 2_000.0, 5_010.0), (3_004.0, None, 3_010.0)):
        event = ahead.tell(tally.event("requests", now_s), now_s, tally.latency_p50_s)
        assert (event.next_due_s, event.left_s) == (next_due_s, left_s)
    flooded = replace(ahead, later_s=None).tell(tally.event("requests", 20.0), 20.0, 5.0)
    assert flooded.left_s is None
