"""Telling the caller where a benchmark stands. `measure` itself never prints."""

from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from longreach.measure.bench.values import RequestRecord


@dataclass(frozen=True, slots=True)
class BenchEvent:
    """Where a run stands: once a second, and when a step begins or ends. Tokens are prompt and output together."""

    step: Literal["reach", "prompts", "requests", "finished"]
    elapsed_s: float = 0.0
    phase: str = ""
    num_wanted: int = 0
    num_done: int = 0
    num_failed: int = 0
    tokens_wanted: int = 0
    tokens_done: int = 0
    ttft_p50_s: float | None = None
    left_s: float | None = None  # if it goes on as until now; in an open loop by its times
    next_due_s: float | None = None  # until an open loop sends the next
    say: str = ""  # a line that stays: what a reader must know at once


OnBenchEvent = Callable[[BenchEvent], None]


class Tally:
    """Counts what has ended. Its median costs nothing to ask for."""

    def __init__(self, num_wanted: int, tokens_wanted: int) -> None:
        self.num_wanted = num_wanted
        self.tokens_wanted = tokens_wanted
        self._num_done = 0
        self._num_failed = 0
        self._tokens_done = 0
        self._tokens_before = 0
        self._ttfts: list[float] = []
        self._latencies: list[float] = []

    def expect(self, num_requests: int, tokens: int) -> None:
        """More is to be sent than was known at first."""
        self.num_wanted += num_requests
        self.tokens_wanted += tokens

    def add(self, record: RequestRecord, *, was_before: bool = False) -> None:
        """One request has ended, in this sitting or in one before it."""
        tokens = (record.wanted_prompt_tokens or 0) + record.wanted_output_tokens
        self._num_done += 1
        self._num_failed += not record.ok
        self._tokens_done += tokens
        self._tokens_before += tokens if was_before else 0
        if record.ok and record.ttft_s is not None:
            insort(self._ttfts, record.ttft_s)
            insort(self._latencies, record.e2e_latency_s)

    def event(
        self, step: Literal["requests", "finished"], elapsed_s: float, phase: str = "", say: str = ""
    ) -> BenchEvent:
        """How it stands now."""
        return BenchEvent(
            step,
            elapsed_s,
            phase,
            self.num_wanted,
            self._num_done,
            self._num_failed,
            self.tokens_wanted,
            self._tokens_done,
            _middle(self._ttfts),
            self._left_s(elapsed_s),
            say=say,
        )

    @property
    def latency_p50_s(self) -> float | None:
        """Of the requests that were answered, from first to last byte."""
        return _middle(self._latencies)

    def _left_s(self, elapsed_s: float) -> float | None:
        done = self._tokens_done - self._tokens_before
        return elapsed_s * (self.tokens_wanted - self._tokens_done) / done if done else None


def _middle(ordered: Sequence[float]) -> float | None:
    return ordered[len(ordered) // 2] if ordered else None


@dataclass(frozen=True, slots=True)
class Ahead:
    """What an open loop still waits for: the moments at which the requests of this pass are due, in order, and how long the
    passes after it take at least; None where a flood is among them, whose speed nobody knows.
    """

    due: Sequence[float] = ()
    num_later: int = 0
    later_s: float | None = 0.0

    def tell(self, event: BenchEvent, now_s: float, latency_s: float | None) -> BenchEvent:
        """The event with the time that is left by the clock and not by what is done, `latency_s` for the last request."""
        place, left_s = bisect_right(self.due, now_s), None
        if self.due and self.later_s is not None and latency_s is not None:
            left_s = max(0.0, self.due[-1] - now_s) + self.later_s + (1 + self.num_later) * latency_s
        next_due_s = self.due[place] - now_s if place < len(self.due) else None
        return replace(event, left_s=left_s, next_due_s=next_due_s)
