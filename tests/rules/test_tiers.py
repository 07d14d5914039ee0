from dataclasses import replace

import pytest
from tests.rules.deployments import CPU_TIER, HYBRID, with_options

from longreach.engine.options import OffloadOptions
from longreach.forecast.values import Span, TierForecast
from longreach.rules.tiers import cpu_tier_exceeds_ram, disk_tier_never_deletes, tier_does_not_pay
from longreach.units import GIB

DISK = with_options(HYBRID, offload=OffloadOptions(cpu_bytes=200 * GIB, disk_path="/var/cache/kv"))
UNTIMED = TierForecast("disk", Span(None, None), Span(None, None), Span(None, None), pays=False, why="32 KiB a token")


def test_wear_of_the_disk_is_counted_from_the_cpu_tier() -> None:
    (finding,) = disk_tier_never_deletes.check(replace(DISK, tiers=(CPU_TIER,)))
    assert "every new prompt token writes at least 34477 bytes" in finding.why


def test_wear_is_left_out_where_it_is_not_known() -> None:
    (finding,) = disk_tier_never_deletes.check(DISK)
    assert finding.why == "the fs tier has no size limit and no eviction"


def test_tier_that_does_not_pay_is_told_without_times_where_none_are_known() -> None:
    (finding,) = tier_does_not_pay.check(replace(DISK, tier_forecasts=(UNTIMED,)))
    assert finding.what == "the disk tier does not pay"


@pytest.mark.parametrize(
    ("engines", "others", "why", "fix"),
    [
        (1, 400, "the engine takes 200 GiB and the other instances 400 GiB", "at most 9 GiB per engine"),
        (1, 500, "the engine takes 200 GiB and the other instances 500 GiB", "do without the tier here"),
        (3, 0, "3 engines take 200 GiB each", "at most 136 GiB per engine"),
    ],
    ids=["some is left", "nothing is left", "data parallel"],
)
def test_tiers_of_all_engines_share_the_memory(engines: int, others: int, why: str, fix: str) -> None:
    other = replace(HYBRID.options, offload=OffloadOptions(cpu_bytes=others * GIB)) if others else HYBRID.options
    (finding,) = cpu_tier_exceeds_ram.check(replace(with_options(DISK, data_parallel_size=engines), others=(other,)))
    assert why in finding.why
    assert fix in finding.fix
