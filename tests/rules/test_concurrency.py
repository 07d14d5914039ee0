from dataclasses import replace

from tests.rules.deployments import DENSE, FULL_32B, HYBRID, MEMORY, with_model, with_options

from longreach.rules.concurrency import concurrency_not_met, window_capacity_depends_on_chunk
from longreach.rules.remedy import set_option
from longreach.units import GIB


def test_bytes_for_the_wish_are_the_remedy_where_the_gpu_has_them() -> None:
    roomy = replace(MEMORY, gpu_total_bytes=(80 * GIB, 80 * GIB))
    (finding,) = concurrency_not_met.check(replace(HYBRID, memory=roomy, concurrency=4))
    assert finding.remedy == set_option("kv_cache_memory_bytes", (4 * 484 + 1) * 13_926_400)
    assert finding.fix.endswith("set --kv-cache-memory-bytes to that")


def test_nothing_is_said_without_a_count_of_blocks() -> None:
    assert list(concurrency_not_met.check(replace(HYBRID, kv_request=None, concurrency=4))) == []


def test_window_that_hardly_depends_on_the_chunk_is_not_worth_a_word() -> None:
    window = replace(FULL_32B, window_tokens=131_072)
    wide = with_options(with_model(DENSE, layers=(FULL_32B, window)), max_model_len=131_072)
    assert list(window_capacity_depends_on_chunk.check(wide)) == []
