"""Which send of which prompt each request of a workload is. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from longreach.measure.workload.values import Workload


@dataclass(frozen=True, slots=True)
class Place:
    """`round` counts the sends of the same text from 1. Requests of one `unit` hang together: one prompt, or one session."""

    round: int
    unit: int


def places_of(workload: Workload) -> Mapping[int, Place]:
    """By the request's index. A session is a unit; where there is none, all sends of one text are."""
    sends: dict[tuple[object, ...], list[int]] = {}
    places: dict[int, Place] = {}
    for request in workload.requests:
        earlier = sends.setdefault((request.segments, request.tail), [])
        earlier.append(request.index)
        unit = earlier[0] if request.session is None else -1 - request.session  # no session is the index of a request
        places[request.index] = Place(len(earlier), unit)
    return places
