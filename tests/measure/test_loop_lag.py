"""How late the event loop was."""

import asyncio
import time

import pytest

from longreach.measure.loop_lag import LoopLagMeter, compute_p99


@pytest.mark.parametrize(
    ("samples", "p99"),
    [([], None), ([3.0], 3.0), ([float(value) for value in range(200)], 198.0)],
    ids=["0", "1", "200"],
)
def test_p99_is_a_sample_by_nearest_rank(samples: list[float], p99: float | None) -> None:
    assert compute_p99(samples) == p99


async def test_a_blocked_loop_is_late_and_only_what_followed_counts() -> None:
    async with LoopLagMeter() as lag:
        assert (lag.p99_s, lag.compute_p99_since(0)) == (None, None)
        time.sleep(0.3)  # noqa: ASYNC251 - the block is the point
        await asyncio.sleep(0.01)
        before, late = lag.num_samples, lag.p99_s
        assert lag.compute_p99_since(before) == late  # nothing since: the last one stands
        await asyncio.sleep(0.2)
        since = lag.compute_p99_since(before)
    assert (before, lag.num_samples > before) == (1, True)
    assert late is not None
    assert since is not None
    assert late > 0.2
    assert lag.p99_s == max(late, since)


async def test_it_ends_with_its_block() -> None:
    async with LoopLagMeter() as lag:
        pass
    await asyncio.sleep(0.12)
    assert lag.num_samples == 0
