"""Telling the caller where a benchmark stands. `measure` itself never prints."""

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass
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
    left_s: float | None = None  # if it goes on as until now
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
            self._ttfts[len(self._ttfts) // 2] if self._ttfts else None,
            self._left_s(elapsed_s),
            say,
        )

    def _left_s(self, elapsed_s: float) -> float | None:
        done = self._tokens_done - self._tokens_before
        return elapsed_s * (self.tokens_wanted - self._tokens_done) / done if done else None
