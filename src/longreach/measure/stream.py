"""What one streamed request showed: text, the server's own counts, and times that mean what they say.

Times are seconds after the request was sent. A token is a chunk that carries content, reasoning or a tool call; a chunk
that only names the role is none. Chunks are not tokens either: a server may put several tokens into one (speculation
does), so the time between tokens is taken from the server's count and the gaps between chunks are a separate figure.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from longreach.wire.chunks import ChoiceDelta, StreamChunk, Usage
from longreach.wire.refusals import ApiError

FailureKind = Literal[
    "unreachable",  # no connection
    "refused",  # an HTTP status other than 200
    "error_event",  # an error inside a stream that began with 200
    "malformed",  # an event that is no completion chunk
    "disconnected",  # the connection broke: the server died
    "cut_short",  # the stream closed without a finish reason
    "first_token_timeout",
    "stall_timeout",
]


@dataclass(frozen=True, slots=True)
class StreamFailure:
    """Why a request did not end well, in the server's own words where it had any."""

    kind: FailureKind
    error: ApiError
    status: int | None = None  # HTTP status, once there was one


@dataclass(frozen=True, slots=True)
class StreamTiming:
    """Seconds after sending; None for what never came."""

    ttft_s: float | None  # first token of any kind
    first_answer_s: float | None  # first token of the answer itself: content or a tool call, not reasoning
    last_token_s: float | None
    e2e_latency_s: float  # until the stream ended, well or not
    chunk_gaps_s: tuple[float, ...]  # between successive chunks that carry tokens


@dataclass(frozen=True, slots=True)
class StreamResult:
    """One request from sending to end. `failure` is None only when the answer is complete."""

    timing: StreamTiming
    content: str
    reasoning: str
    finish_reason: str | None
    usage: Usage | None
    failure: StreamFailure | None = None
    event_loop_lag_p99_s: float | None = None  # how late this client itself ran: its share in every time above
    num_chunks: int = 0  # that carry tokens
    is_only_answer: bool = True  # False: several came, unasked; the server's count is of all of them

    @property
    def itl_s(self) -> float | None:
        """Mean time between tokens: (last - first) / (completion tokens by usage - 1)."""
        first, last = self.timing.ttft_s, self.timing.last_token_s
        tokens = self.usage.completion_tokens if self.usage and self.is_only_answer else None
        if first is None or last is None or tokens is None or tokens < 2 or last <= first:
            return None
        return (last - first) / (tokens - 1)

    @property
    def output_tokens_per_s(self) -> float | None:
        """Decode rate of this request: 1 / itl."""
        itl_s = self.itl_s
        return None if itl_s is None else 1 / itl_s


class StreamRecorder:
    """Takes chunks with the time they arrived and ends as a StreamResult. It reads no clock."""

    __slots__ = (
        *("_chunk_stamps", "_content", "_first_answer", "_is_only_answer", "_last", "_reasoning", "_sent"),
        *("finish_reason", "usage"),
    )

    def __init__(self, sent_stamp: float) -> None:
        self._sent = sent_stamp
        self._chunk_stamps: list[float] = []
        self._first_answer: float | None = None
        self._last: float | None = None
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._is_only_answer = True
        self.finish_reason: str | None = None
        self.usage: Usage | None = None

    @property
    def has_token(self) -> bool:
        """True once a token has arrived."""
        return bool(self._chunk_stamps)

    @property
    def heard_stamp(self) -> float:
        """When the latest token arrived; before the first, when the request was sent."""
        return self._chunk_stamps[-1] if self._chunk_stamps else self._sent

    def take(self, stamp: float, chunk: StreamChunk) -> None:
        """Take one chunk in."""
        self.usage = chunk.usage or self.usage
        for choice in chunk.choices:
            if choice.index == 0:
                self._take_choice(stamp, choice)
            else:
                self._is_only_answer = False

    def _take_choice(self, stamp: float, choice: ChoiceDelta) -> None:
        if choice.carries_token:
            self._chunk_stamps.append(stamp)
            self._content.append(choice.content)
            self._reasoning.append(choice.reasoning)
            if self._first_answer is None and (choice.content or choice.tool_calls):
                self._first_answer = stamp
            self._last = stamp
        if choice.finish_reason is not None:
            self.finish_reason = choice.finish_reason
            if self._chunk_stamps:
                self._last = stamp  # the chunk that ends an answer stands for its end token, which has no text

    def finish(self, stamp: float, failure: StreamFailure | None, lag_p99_s: float | None = None) -> StreamResult:
        """The result, once nothing more will come."""
        stamps = self._chunk_stamps
        timing = StreamTiming(
            ttft_s=self._after(stamps[0]) if stamps else None,
            first_answer_s=self._after(self._first_answer),
            last_token_s=self._after(self._last),
            e2e_latency_s=stamp - self._sent,
            chunk_gaps_s=tuple(later - earlier for earlier, later in pairwise(stamps)),
        )
        return StreamResult(
            timing=timing,
            content="".join(self._content),
            reasoning="".join(self._reasoning),
            finish_reason=self.finish_reason,
            usage=self.usage,
            failure=failure,
            event_loop_lag_p99_s=lag_p99_s,
            num_chunks=len(stamps),
            is_only_answer=self._is_only_answer,
        )

    def _after(self, stamp: float | None) -> float | None:
        return None if stamp is None else stamp - self._sent
