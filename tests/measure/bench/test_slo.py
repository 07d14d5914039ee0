import pytest
from tests.measure.bench.results import failed, record

from longreach.errors import UsageError
from longreach.measure.bench.slo import compute_goodput, judge, parse_slo
from longreach.measure.bench.summary_values import Slo
from longreach.measure.bench.values import RequestRecord


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ttft=60s,itl=80ms,e2e=5m", Slo(60, 0.08, 300)),
        ("TTFT = 1.5min , e2e=1h", Slo(90, None, 3600)),
        ("tpot=500us", Slo(itl_s=0.0005)),
        ("latency=2s", Slo(e2e_latency_s=2)),
    ],
)
def test_limits_are_read_as_people_type_them(text: str, expected: Slo) -> None:
    found = parse_slo(text)
    assert (found.ttft_s, found.e2e_latency_s) == (expected.ttft_s, expected.e2e_latency_s)
    assert found.itl_s == pytest.approx(expected.itl_s)


@pytest.mark.parametrize(
    ("text", "what", "why"),
    [
        ("tfft=60s", "no limit is called 'tfft'", "did you mean 'ttft'?"),
        ("q=1s", "no limit is called 'q'", "known are ttft, itl, e2e"),
        ("ttft", "limit 'ttft' is not understood", "expected NAME=DURATION"),
        ("", "limit '' is not understood", "expected NAME=DURATION"),
        ("ttft=60", "ttft limit '60' is no duration", "expected a number and a unit of us, ms, s, m, min, h"),
        ("ttft=-1s", "ttft limit '-1s' is no duration", "expected a number and a unit"),
        ("itl=0ms", "itl limit '0ms' is too short", "no request is answered in no time"),
        ("itl=1ms,tpot=2ms", "limit 'tpot' stands twice in --slo", "each is given once"),
    ],
)
def test_what_is_no_limit_is_refused_with_advice(text: str, what: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_slo(text)
    assert caught.value.what == what
    assert caught.value.why.startswith(why)
    assert caught.value.fix == "--slo ttft=60s,itl=80ms,e2e=5m"


@pytest.mark.parametrize(
    ("item", "slo", "met"),
    [
        (record(), Slo(), True),
        (record(), Slo(2.0, 0.1, 3.0), True),
        (record(), Slo(ttft_s=1.99), False),
        (record(), Slo(itl_s=0.099), False),
        (record(), Slo(e2e_latency_s=2.99), False),
        (failed(), Slo(), False),
        (record(output_tokens=1, itl_s=None), Slo(itl_s=0.01), True),
        (record(output_tokens=None, itl_s=None), Slo(itl_s=0.01), False),
        (record(itl_s=None, e2e_latency_s=2.1), Slo(itl_s=0.011), True),
        (record(itl_s=None, e2e_latency_s=2.1), Slo(itl_s=0.009), False),
    ],
    ids=[
        "no limit",
        "all kept",
        "ttft",
        "itl",
        "e2e",
        "failed",
        "one token",
        "tokens not known",
        "one piece",
        "one slow piece",
    ],
)
def test_a_request_keeps_every_limit_or_none(item: RequestRecord, slo: Slo, met: bool) -> None:
    assert judge(item, slo) is met


def test_goodput_counts_what_failed_as_not_met() -> None:
    records = [*(record(index) for index in range(6)), record(6, ttft_s=9.0), failed(7)]
    goodput = compute_goodput(records, Slo(ttft_s=5.0), 20.0)
    assert goodput is not None
    assert (goodput.num_met, goodput.share, goodput.requests_per_s) == (6, 0.75, 0.3)
    assert goodput.share_interval == pytest.approx((0.4093, 0.9285), abs=1e-4)
    assert compute_goodput([], Slo(), 1.0) is None
    few = compute_goodput(records[:3], Slo(), 0.0)
    assert few is not None
    assert (few.share_interval, few.requests_per_s) == (None, 0.0)


def test_goodput_of_what_is_not_counted_is_no_share() -> None:
    records = [record(0), *(record(index, output_tokens=None, itl_s=None) for index in range(1, 10))]
    goodput = compute_goodput(records, Slo(ttft_s=5.0, itl_s=0.2), 20.0)
    assert goodput is not None
    assert (goodput.num_met, goodput.num_unknown, goodput.share_interval) == (1, 9, None)
    slow = compute_goodput(records, Slo(ttft_s=1.0, itl_s=0.2), 20.0)
    assert slow is not None
    assert (slow.num_met, slow.num_unknown) == (0, 0)
