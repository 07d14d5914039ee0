import pytest

from longreach.measure.bench.proof import judge_state
from longreach.measure.bench.values import CacheState, Proof
from longreach.measure.verify_report import Counters
from longreach.measure.workload.values import WorkloadRequest

TEMPLATE = 7
SHARED = 512
BY_SOURCE = Counters(attributed=True, prefix_hit_tokens=0, hits_by_source=(("device", 7), ("host", 960)))
ON_GPU = Counters(attributed=True, prefix_hit_tokens=960, hits_by_source=(("device", 960),))
OLD_RELEASE = Counters(attributed=True, prefix_hit_tokens=0, external_hit_tokens=960)
OTHERS_TOO = Counters(attributed=False, prefix_hit_tokens=960, hits_by_source=(("device", 960),))


@pytest.mark.parametrize(
    ("state", "reusable", "cached", "counters", "expected"),
    [
        ("cold", 0, 0, None, "proven"),
        ("cold", 0, TEMPLATE, None, "proven"),
        ("cold", 0, TEMPLATE + 1, None, "disproven"),
        ("cold", SHARED, SHARED, None, "proven"),
        ("cold", SHARED, SHARED + TEMPLATE + 1, None, "disproven"),
        ("cold", 0, None, None, "unattributed"),
        ("warm", 0, 992, None, "proven"),
        ("warm", 0, 1_000 - 3 * 16 - 2, None, "disproven"),
        ("warm", 0, 0, None, "disproven"),
        ("warm", 0, None, None, "unattributed"),
        ("evicted", 0, 0, None, "proven"),
        ("evicted", 0, 960, BY_SOURCE, "proven"),
        ("evicted", 0, 960, OLD_RELEASE, "proven"),
        ("evicted", 0, 960, ON_GPU, "disproven"),
        ("evicted", 960, 960, ON_GPU, "proven"),
        ("evicted", 0, 960, OTHERS_TOO, "unattributed"),
        ("evicted", 0, 960, None, "unattributed"),
        ("as_it_comes", 0, 960, None, None),
        ("flood", 0, 0, None, None),
    ],
)
def test_the_servers_count_decides(
    state: CacheState, reusable: int, cached: int | None, counters: Counters | None, expected: Proof | None
) -> None:
    request = WorkloadRequest(0, (), "text", 1_000, 1, reusable_tokens=reusable)
    proof = judge_state(state, request, cached, counters, prompt_tokens=1_000, template_tokens=TEMPLATE, block_size=16)
    assert proof == expected
