from tests.rules.deployments import DENSE, with_options

from longreach.rules.scheduler import prefix_caching_off, reserve_full_isl_off


def test_cost_of_a_cold_turn_is_told_in_tokens_where_no_time_is_known() -> None:
    (finding,) = prefix_caching_off.check(with_options(DENSE, enable_prefix_caching=False))
    assert finding.why == "up to 750000 tokens are computed again at every turn"


def test_thrashing_is_told_without_a_count_where_capacity_is_unknown() -> None:
    unknown = with_options(DENSE, scheduler_reserve_full_isl=False, tensor_parallel_size=3)
    assert unknown.capacity is None
    (finding,) = reserve_full_isl_off.check(unknown)
    assert "the cache holds" not in finding.why
