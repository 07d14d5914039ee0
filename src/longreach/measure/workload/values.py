"""A workload as data: segments of text that requests share, and the requests that are made of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class WorkloadRequest:
    """One request. Its text is its segments in order, then `tail`, which no other request has.

    `prompt_tokens` is what the server is to count, template included. Requests of one session are sent one after the
    other, in the order of the workload. `arrival_s` counts from the beginning of the run; None: a closed loop decides.
    """

    index: int
    segments: tuple[str, ...]
    tail: str
    prompt_tokens: int
    output_tokens: int
    session: int | None = None
    arrival_s: float | None = None
    reusable_tokens: int = (
        0  # of the prompt, in segments that earlier requests brought: an endless cache would hit them
    )


@dataclass(frozen=True, slots=True)
class Workload:
    """What A and B both get. `source` says in words where the text comes from; `digest` is over every text in order."""

    source: str
    seed: str
    tokenizer: str  # what counted, in words
    template_tokens: int  # that the server adds to every text; part of `prompt_tokens`
    segments: Mapping[str, str] = field(repr=False)
    requests: tuple[WorkloadRequest, ...] = field(repr=False)
    digest: str = ""
    notes: tuple[str, ...] = ()  # what a reader of the figures must know: sampled sessions, a stretched clock
    nobody: str | None = (
        None  # why nothing answered when texts were to be made: there are lengths alone, not to be sent
    )

    def render_text(self, request: WorkloadRequest) -> str:
        """The whole text of one request."""
        return "".join(self.segments[name] for name in request.segments) + request.tail

    @property
    def total_prompt_tokens(self) -> int:
        """Tokens of all prompts."""
        return sum(request.prompt_tokens for request in self.requests)
