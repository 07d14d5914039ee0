from dataclasses import replace

from tests.rules.deployments import HYBRID, MEMORY

from longreach.rules.memory import weights_exceed_gpu
from longreach.units import GIB


def test_weights_that_leave_nothing_have_no_remedy() -> None:
    memory = replace(MEMORY, weights_bytes=(25 * GIB, 26 * GIB), kv_bytes=(0, 0), fits=False)
    (finding,) = weights_exceed_gpu.check(replace(HYBRID, memory=memory))
    assert finding.what == "weights leave no KV cache on a GPU of 23.65 GiB"
    assert finding.remedy is None
