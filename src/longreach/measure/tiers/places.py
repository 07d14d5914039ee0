"""Which send of which prompt each request of a workload is. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from longreach.measure.workload.values import Workload


@dataclass(frozen=True, slots=True)
class Place:
    """`round` counts the sends of one prompt from 1. Requests of one `unit` hang together: one prompt, or one session.

    Repeats of a prompt have the same segments, and each a last line of its own.
    """

    round: int
    unit: int


def places_of(workload: Workload) -> Mapping[int, Place]:
    """By the request's index. A session is a unit; where there is none, all sends of one prompt are."""
    sends: dict[tuple[str, ...], list[int]] = {}
    places: dict[int, Place] = {}
    for request in workload.requests:
        earlier = sends.setdefault(request.segments or (request.tail,), [])
        earlier.append(request.index)
        unit = earlier[0] if request.session is None else -1 - request.session  # no session is the index of a request
        places[request.index] = Place(len(earlier), unit)
    return places
