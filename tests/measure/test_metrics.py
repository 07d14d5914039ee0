"""Whose counts are they?"""

import pytest

from longreach.engine.metrics import EngineMetrics
from longreach.measure.metrics import count_request

BEFORE = EngineMetrics(num_running=0.0, num_waiting=0.0, num_finished=4.0, prefix_hit_tokens=100.0)


@pytest.mark.parametrize(
    ("after", "attributed"),
    [
        (EngineMetrics(num_running=0.0, num_waiting=0.0, num_finished=5.0, prefix_hit_tokens=612.0), True),
        (EngineMetrics(num_running=0.0, num_waiting=0.0, num_finished=6.0, prefix_hit_tokens=612.0), False),
        (EngineMetrics(num_running=1.0, num_waiting=0.0, num_finished=5.0, prefix_hit_tokens=612.0), False),
        (EngineMetrics(num_running=0.0, num_waiting=2.0, num_finished=5.0, prefix_hit_tokens=612.0), False),
    ],
    ids=["alone", "another_finished", "another_running", "others_waiting"],
)
def test_counts_are_ours_only_when_nothing_else_ran(after: EngineMetrics, attributed: bool) -> None:
    counters = count_request(BEFORE, after)
    assert counters is not None
    assert counters.prefix_hit_tokens == 512
    assert counters.attributed is attributed


def test_absent_families_stay_unknown_and_empty_sources_are_left_out() -> None:
    after = EngineMetrics(num_finished=5.0, cached_tokens_by_source=(("device", 512.0), ("host", 0.0)))
    counters = count_request(BEFORE, after)
    assert counters is not None
    assert counters.external_hit_tokens is None
    assert counters.num_drafts is None
    assert counters.hits_by_source == (("device", 512),)


def test_restarted_engine_has_no_difference() -> None:
    assert count_request(BEFORE, EngineMetrics(num_finished=1.0)) is None


@pytest.mark.parametrize("count", [float("nan"), float("inf"), 1e30])
def test_what_is_no_count_is_unknown(count: float) -> None:
    after = EngineMetrics(num_finished=5.0, num_preemptions=count, cached_tokens_by_source=(("device", count),))
    counters = count_request(EngineMetrics(num_finished=4.0, num_preemptions=0.0), after)
    assert counters is not None
    assert (counters.preemptions, counters.hits_by_source) == (None, ())
