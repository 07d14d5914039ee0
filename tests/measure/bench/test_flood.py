import pytest

from longreach.errors import UsageError
from longreach.measure.bench.flood import choose_flood_tokens, make_flood
from longreach.measure.workload.values import WorkloadRequest


def test_a_flood_is_the_workload_again_and_again_until_it_is_large_enough() -> None:
    workload = [WorkloadRequest(index, (), "text", 300, 64, session=1, arrival_s=1.0) for index in range(3)]
    flood = make_flood(workload, 1_000)
    assert [request.index for request in flood] == [0, 1, 2, 3]
    assert {(request.output_tokens, request.session, request.arrival_s) for request in flood} == {(1, None, None)}


def test_nothing_floods_with_nothing() -> None:
    assert make_flood([WorkloadRequest(0, (), "text", 300, 64)], 0) == []


@pytest.mark.parametrize(
    ("asked", "capacities", "expected"),
    [(5, (100,), 5), (None, (100, 200), 105), (None, (None, 200), 210)],
    ids=["as asked", "the server's word", "the plan's"],
)
def test_as_much_floods_as_the_gpu_holds_and_a_little_more(
    asked: int | None, capacities: tuple[int | None, ...], expected: int
) -> None:
    assert choose_flood_tokens(asked, *capacities) == expected


def test_an_unknown_capacity_is_not_guessed() -> None:
    with pytest.raises(UsageError, match="how much it takes to evict") as error:
        choose_flood_tokens(None, None, None)
    assert "--flood-tokens" in error.value.fix
