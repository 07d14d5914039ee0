import re
from dataclasses import replace

from tests.rules.deployments import DENSE, HYBRID, MEMORY, with_options

from longreach.rules.memory import memory_cannot_tell, weights_exceed_gpu
from longreach.units import GIB, MIB


def test_weights_that_leave_nothing_have_no_remedy() -> None:
    memory = replace(MEMORY, weights_bytes=(25 * GIB, 26 * GIB), kv_bytes=(0, 0), fits=False)
    (finding,) = weights_exceed_gpu.check(replace(HYBRID, memory=memory))
    assert finding.what == "weights leave no KV cache on a GPU of 23.65 GiB"
    assert finding.remedy is None


_NARROW = replace(MEMORY, weights_bytes=(7500 * MIB, 12000 * MIB), fits=None)


def test_bytes_that_are_sure_are_advised_where_they_hold_the_request() -> None:
    (finding,) = memory_cannot_tell.check(replace(HYBRID, memory=_NARROW))
    assert finding.fix.startswith("set --kv-cache-memory-bytes 9522118656")


def test_a_shorter_length_is_advised_where_they_do_not() -> None:
    (finding,) = memory_cannot_tell.check(replace(DENSE, memory=_NARROW))
    length = re.search(r"--max-model-len (\d+) and --kv-cache-memory-bytes 9522118656, or take smaller", finding.fix)
    assert length is not None
    shorter = with_options(DENSE, max_model_len=int(length[1]), kv_cache_memory_bytes=9522118656)
    assert shorter.capacity is not None
    assert shorter.capacity.serves


def test_a_share_that_leaves_nothing_is_no_doubt() -> None:
    memory = replace(_NARROW, kv_bytes=(-GIB, -1))
    assert not list(memory_cannot_tell.check(replace(HYBRID, memory=memory)))


def test_nothing_is_not_advised_as_a_size() -> None:
    memory = replace(MEMORY, weights_bytes=(7500 * MIB, 40000 * MIB), fits=None)
    (finding,) = memory_cannot_tell.check(replace(HYBRID, memory=memory))
    assert "leave at most 15.15 GiB" in finding.why
    assert "--kv-cache-memory-bytes" not in finding.fix
