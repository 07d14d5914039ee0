from dataclasses import replace

import pytest
from tests.measure.tiers.test_workload import workload
from tests.measure.tiers.tier_cases import planned

from longreach.forecast.values import Span
from longreach.measure.tiers.outlook import GivenSize, bytes_per_token, foresee, size_given
from longreach.measure.tiers.sizing import SizingWish, size_workload
from longreach.measure.tiers.values import WorkloadSizing
from longreach.measure.tiers.variants import tier_sets


def test_time_lies_between_what_a_prompt_takes_at_least_and_at_most() -> None:
    plan = planned()
    instance = plan.instances[0]
    mean = instance.speed[-1]
    assert mean.prompt_tokens == 32_768
    assert mean.ttft_cold_s.low is not None
    assert mean.ttft_cold_s.high is not None
    sizing = size_workload(instance, SizingWish())
    exact = foresee(instance, plan.model, tier_sets(instance), sizing, 3)
    wanted = (sizing.num_requests * mean.ttft_cold_s.low, sizing.num_requests * mean.ttft_cold_s.high)
    assert exact.run_s == pytest.approx(wanted)
    assert (exact.num_starts, exact.disk_bytes_per_start) == (6, None)
    half = foresee(instance, plan.model, tier_sets(instance), replace(sizing, prompt_tokens=16_384), 1)
    assert half.run_s == pytest.approx((wanted[0] / 4, wanted[1] / 2))


def test_a_length_beyond_every_forecast_has_no_time() -> None:
    plan = planned()
    instance = plan.instances[0]
    sizing = replace(size_workload(instance, SizingWish()), prompt_tokens=200_000)
    found = foresee(instance, plan.model, tier_sets(instance), sizing, 1)
    assert found.run_s is None
    assert found.why_no_time == "the plan forecasts prompts of at most 131,072 tokens, and these have 200,000"


def test_a_plan_that_forecasts_no_speed_says_why() -> None:
    plan = planned()
    instance = plan.instances[0]
    sizing = size_workload(instance, SizingWish())
    unknown = Span(None, None, certainty="unknown", reason="no peak is known of this card")
    speeds = tuple(replace(speed, ttft_cold_s=unknown) for speed in instance.speed)
    for speed, wanted in ((speeds, "no speed: no peak is known of this card"), ((), "no speed")):
        found = foresee(replace(instance, speed=speed), plan.model, tier_sets(instance), sizing, 1)
        assert (found.run_s, found.why_no_time) == (None, f"the plan forecasts {wanted}")


def test_the_disk_takes_every_token_once_and_needs_room_to_spare() -> None:
    plan = planned(disk="/kv")
    instance = plan.instances[0]
    sizing = size_workload(instance, SizingWish())
    found = foresee(instance, plan.model, tier_sets(instance), sizing, 1)
    assert found.disk_bytes_per_start == sizing.distinct_tokens * 131_072
    assert found.disk_bytes_wanted is not None
    assert found.disk_bytes_wanted > found.disk_bytes_per_start


def test_without_a_counted_tier_the_model_tells_the_bytes_of_a_token() -> None:
    plan = planned()
    instance = replace(plan.instances[0], tiers=())
    assert bytes_per_token(instance, plan.model) == plan.model.kv_bytes_per_token == 131_072


def test_a_given_workload_tells_its_starts_alone() -> None:
    plan = planned(disk="/kv")
    found = foresee(plan.instances[0], plan.model, tier_sets(plan.instances[0]), None, 2)
    assert (found.num_starts, found.run_s, found.disk_bytes_wanted) == (6, None, None)
    assert "differ in length" in found.why_no_time


def test_a_workload_file_without_times_has_no_span() -> None:
    sent = workload(WorkloadSizing(100, 6, 6, 3, 1, 400, 1_000))
    assert size_given(sent, keeps_times=True) == GivenSize("generated", 18, 1_800, 288, None)
    timed = tuple(replace(one, arrival_s=5.0 + one.index) for one in sent.requests)
    assert size_given(replace(sent, requests=timed), keeps_times=True).span_s == 17
    assert size_given(replace(sent, requests=timed), keeps_times=False).span_s is None
