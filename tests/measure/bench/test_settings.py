import pytest

from longreach.errors import UsageError
from longreach.measure.bench.settings import plan_phases
from longreach.measure.bench.values import CacheState


@pytest.mark.parametrize(
    ("states", "is_hybrid", "names"),
    [
        (("cold",), None, ["cold"]),
        (("cold", "warm"), None, ["cold", "warm 1"]),
        (("cold", "warm"), False, ["cold", "warm 1"]),
        (("cold", "warm"), True, ["cold", "warm 1", "warm 2"]),
        (("cold", "evicted"), None, ["cold", "flood", "evicted"]),
        (("cold", "warm", "evicted"), True, ["cold", "warm 1", "warm 2", "flood", "evicted"]),
        (("as_it_comes",), True, ["as it comes"]),
    ],
)
def test_states_become_passes(states: tuple[CacheState, ...], is_hybrid: bool | None, names: list[str]) -> None:
    assert [phase.name for phase in plan_phases(states, is_hybrid=is_hybrid)] == names


@pytest.mark.parametrize("states", [(), ("warm",), ("evicted", "cold"), ("cold", "cold"), ("cold", "as_it_comes")])
def test_states_that_do_not_follow_from_each_other_are_refused(states: tuple[CacheState, ...]) -> None:
    with pytest.raises(UsageError, match="cannot be measured in this order"):
        plan_phases(states, is_hybrid=None)
