from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from longreach.measure.tiers.places import Place, places_of
from longreach.measure.tiers.values import WorkloadSizing
from longreach.measure.tiers.workload import describe_order, in_order, send_order, wish_for
from longreach.measure.workload.digest import digest_workload
from longreach.measure.workload.values import Workload, WorkloadRequest
from longreach.measure.workload.wishes import SyntheticSource

CYCLIC = WorkloadSizing(100, 6, 6, 3, 1, 400, 1_000)
GROUPED = WorkloadSizing(100, 7, 3, 2, 2, 200, 500)


def workload(sizing: WorkloadSizing) -> Workload:
    """In rounds, as it is built: the same body with another last line each time."""
    requests = tuple(
        WorkloadRequest(index, (f"body {index % sizing.num_prompts}",), f"tail {index}", 100, 16)
        for index in range(sizing.num_requests)
    )
    bodies = {f"body {prompt}": f"text {prompt}" for prompt in range(sizing.num_prompts)}
    made = Workload("generated", "seed", "tokenizer", 0, bodies, requests)
    return replace(made, digest=digest_workload(made))


def bodies(sent: Workload) -> list[int]:
    return [int(request.segments[0].removeprefix("body ")) for request in sent.requests]


def distances(order: Sequence[int]) -> list[int]:
    """How many other prompts came between two sends of the same one."""
    found, last = [], dict[int, int]()
    for place, prompt in enumerate(order):
        if prompt in last:
            found.append(len(set(order[last[prompt] + 1 : place])))
        last[prompt] = place
    return found


def test_in_a_cycle_every_repeat_comes_after_everything_else() -> None:
    assert in_order(workload(CYCLIC), CYCLIC) == workload(CYCLIC), "rounds are the cycle already"
    assert set(distances(bodies(workload(CYCLIC)))) == {5}


def test_in_groups_one_repeat_comes_after_the_group_and_one_after_all_of_it() -> None:
    order = bodies(in_order(workload(GROUPED), GROUPED))
    assert order == [*(0, 1, 2) * 2, *(3, 4, 5, 6) * 2] * 2, "what is left over joins the last group"
    assert Counter(distances(order)) == {2: 6, 3: 8, 6: 7}


@pytest.mark.parametrize("sizing", [CYCLIC, GROUPED, replace(GROUPED, is_shuffled=True), replace(CYCLIC, num_passes=3)])
def test_every_request_is_sent_once_and_earlier_rounds_first(sizing: WorkloadSizing) -> None:
    order = send_order(sizing, "seed")
    assert sorted(order) == list(range(sizing.num_requests))
    for prompt in range(sizing.num_prompts):
        sends = [old for old in order if old % sizing.num_prompts == prompt]
        assert sends == sorted(sends)


def test_a_shuffled_order_depends_on_the_seed_alone() -> None:
    shuffled = replace(CYCLIC, is_shuffled=True)
    assert send_order(shuffled, "a") == send_order(shuffled, "a") != send_order(shuffled, "b")


def test_another_order_is_another_workload() -> None:
    sent = in_order(workload(GROUPED), GROUPED)
    assert [request.index for request in sent.requests] == list(range(GROUPED.num_requests))
    assert sent.digest == digest_workload(sent) != workload(GROUPED).digest
    assert describe_order(GROUPED) == "groups of 3 prompts twice over, in the same order, and all groups twice"
    assert sent.source.endswith(describe_order(GROUPED))


def test_places_tell_the_round_and_what_hangs_together() -> None:
    places = places_of(in_order(workload(GROUPED), GROUPED))
    assert [places[index].round for index in (0, 3, 6, 14, 17)] == [1, 2, 1, 3, 4]
    assert places[0].unit == places[3].unit == places[14].unit != places[1].unit


def test_a_session_hangs_together() -> None:
    turns = tuple(replace(request, session=request.index % 2, segments=()) for request in workload(CYCLIC).requests)
    places = places_of(replace(workload(CYCLIC), requests=turns))
    assert places[0] == Place(1, -1)
    assert {place.unit for place in places.values()} == {-1, -2}


def test_the_wish_asks_for_every_round() -> None:
    wish = wish_for(GROUPED, 16, "seed")
    assert wish.source == SyntheticSource(num_requests=7, input_tokens=100, output_tokens=16, rounds=4)
