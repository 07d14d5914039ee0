from dataclasses import replace

import pytest
from tests.measure.bench.results import failed, record

from longreach.measure.bench.events import Tally


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
