from collections.abc import Callable
from dataclasses import replace

import pytest

from longreach.forecast.tiers import forecast_tiers, reload_time
from longreach.forecast.values import Span, SpeedRequest
from longreach.hardware.machine import machine_from

MakeRequest = Callable[..., SpeedRequest]

GB = 1e9


def ends(span: Span) -> tuple[float, float]:
    assert span.low is not None
    assert span.high is not None
    return span.low, span.high


def test_a_long_prefix_is_worth_reloading_from_either_tier(make_request: MakeRequest) -> None:
    request = make_request(
        "qwen3.6-27b", "4xRTX4090", 262_144, cpu_tier=True, disk_tier=True, kv_cache_dtype="fp8_e4m3"
    )
    cpu, disk = forecast_tiers(request)
    assert [(tier.name, tier.pays) for tier in (cpu, disk)] == [("cpu", True), ("disk", True)]
    assert "262,144 tokens come back from host memory" in cpu.why
    assert ends(cpu.reload_s)[1] < ends(disk.reload_s)[1] < ends(disk.recompute_s)[0]


def test_a_slow_disk_loses_to_a_fast_card(make_request: MakeRequest) -> None:
    request = make_request("qwen3-8b", "1xB200", 4096, disk_tier=True, disk_read_bytes_per_s=(0.2 * GB, 0.4 * GB))
    (disk,) = forecast_tiers(request)
    assert disk.pays is False


def test_overlapping_ranges_cannot_tell(make_request: MakeRequest) -> None:
    request = make_request("qwen3-8b", "1xH200", 32_768, disk_tier=True)
    (disk,) = forecast_tiers(request)
    assert disk.pays is None


def test_the_reload_rate_is_tokens_over_time(make_request: MakeRequest) -> None:
    (cpu,) = forecast_tiers(make_request("qwen3-32b", "4xRTX4090", 100_000, cpu_tier=True))
    low, high = ends(cpu.reload_s)
    assert ends(cpu.reload_tokens_per_s) == pytest.approx((100_000 / high, 100_000 / low))


def test_links_bound_the_reload_of_two_cards_and_the_host_that_of_eight(make_request: MakeRequest) -> None:
    two = make_request("qwen3-32b", "2xRTX4090", 100_000, kv_cache_dtype="fp8_e4m3")
    eight = make_request("qwen3-32b", "8xRTX4090", 100_000, kv_cache_dtype="fp8_e4m3")
    size = 100_000 * 131_072
    assert ends(reload_time("cpu", two)) == pytest.approx((size / (2 * 26.2 * GB), size / (26.2 * GB)))
    assert ends(reload_time("cpu", eight)) == pytest.approx((size / (114 * GB), size / (36 * GB)))


def test_a_known_host_memory_rate_replaces_the_assumed_one(make_request: MakeRequest) -> None:
    request = make_request("qwen3-32b", "8xRTX4090", 100_000, kv_cache_dtype="fp8_e4m3")
    request = replace(request, machine=replace(request.machine, host_memory_bytes_per_s=60 * GB))
    size = 100_000 * 131_072
    assert ends(reload_time("cpu", request)) == pytest.approx((size / (60 * GB), size / (42 * GB)))


def test_a_hybrid_reloads_a_quarter_of_the_bytes_and_one_state(make_request: MakeRequest) -> None:
    dense = make_request("qwen3-32b", "4xRTX4090", 500_000, kv_cache_dtype="fp8_e4m3")
    hybrid = make_request("qwen3.6-27b", "4xRTX4090", 500_000, kv_cache_dtype="fp8_e4m3")
    assert ends(reload_time("cpu", hybrid))[0] / ends(reload_time("cpu", dense))[0] == pytest.approx(0.25, rel=0.01)


def test_every_gpu_loads_its_own_copy_of_a_latent(make_request: MakeRequest) -> None:
    one = make_request("deepseek-v3", "1xH200", 100_000, kv_cache_dtype="fp8_e4m3")
    eight = make_request("deepseek-v3", "8xH200", 100_000, kv_cache_dtype="fp8_e4m3")
    assert ends(reload_time("disk", eight))[1] > 7 * 100_000 * 35_136 / (2.9 * GB)
    assert ends(reload_time("disk", one))[0] == pytest.approx(100_000 * 35_136 / (7 * GB))


@pytest.mark.parametrize("name", ["cpu", "disk"])
def test_more_tokens_take_longer(make_request: MakeRequest, name: str) -> None:
    short, long = (reload_time(name, make_request("qwen3.6-27b", "4xRTX4090", tokens)) for tokens in (10_000, 500_000))
    assert ends(short) < ends(long)


def test_what_is_unknown_is_said(make_request: MakeRequest) -> None:
    unified = make_request("qwen3-4b", "1xGB10", 1000, cpu_tier=True)
    (tier,) = forecast_tiers(unified)
    assert tier.pays is None
    assert "host link of GB10 (DGX Spark) is unknown" in tier.why
    cpu_machine = replace(unified, machine=machine_from(None, 0))
    assert forecast_tiers(cpu_machine)[0].reload_s.certainty == "unknown"


def test_a_card_without_rates_cannot_tell(make_request: MakeRequest) -> None:
    (tier,) = forecast_tiers(make_request("qwen3-32b", "1xRTX PRO 4000", 200_000, cpu_tier=True))
    assert tier.pays is None
    assert "computing them again is unknown: no matrix rate" in tier.why


def test_no_tier_no_forecast(make_request: MakeRequest) -> None:
    assert forecast_tiers(make_request("qwen3-32b", "2xRTX4090", 1000)) == ()
