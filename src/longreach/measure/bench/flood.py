"""Other prompts, as many as push everything out of the GPU's KV cache, or as warm the engine up. Pure.

They are the workload's own texts under another salt: to the cache they are others, and nothing new has to be built.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle, islice

from longreach.errors import UsageError
from longreach.measure.workload.values import WorkloadRequest

_MARGIN = 1.05  # the last block of a prompt that is not full counts as little as one that another request still holds


def choose_flood_tokens(asked: int | None, *capacities: int | None) -> int:
    """The tokens to flood with: as asked, else what the GPU holds by the first that tells. UsageError when none does."""
    if asked is not None:
        return asked
    known = next((capacity for capacity in capacities if capacity), None)
    if known is None:
        raise UsageError(
            "how much it takes to evict a prompt is not known",
            "neither the server's metrics nor a plan tell how many tokens the GPU's KV cache holds",
            "--flood-tokens TOKENS, or leave 'evicted' out of --states",
        )
    return int(known * _MARGIN)


def make_warm_up(requests: Sequence[WorkloadRequest], num_requests: int) -> list[WorkloadRequest]:
    """The first so many of the workload, from its beginning again where it has fewer; answers as long as theirs."""
    return [
        replace(request, index=index, session=None, arrival_s=None, reusable_tokens=0)
        for index, request in enumerate(islice(cycle(requests), num_requests))
    ]


def make_flood(requests: Sequence[WorkloadRequest], num_tokens: int) -> list[WorkloadRequest]:
    """The workload over and over until it holds `num_tokens`; one token of output each, in no session."""
    flood: list[WorkloadRequest] = []
    while num_tokens > 0:
        for request in requests:
            flood.append(
                replace(request, index=len(flood), output_tokens=1, session=None, arrival_s=None, reusable_tokens=0)
            )
            num_tokens -= request.prompt_tokens
            if num_tokens <= 0:
                break
    return flood
