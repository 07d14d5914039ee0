"""Where a benchmark stands, on stderr: a bar on a terminal, a line now and then elsewhere."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import click

from longreach.units import format_duration

_LINE_EVERY_S = 15.0
_BAR_COLUMNS = 20  # a short bar and the time that has passed
_NOTABLE_WAIT_S = 10.0
_STEPS = {"reach": "asking the server who it is", "prompts": "writing the prompts"}


class BenchProgress:
    """Takes the events of a run. The bar measures tokens: requests may be of any length."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._clock = clock
        self._last_line = clock()
        self._said: set[str] = set()
        if sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            text = TextColumn("{task.description}", markup=False)
            columns = (text, BarColumn(bar_width=None), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True, expand=True)
            self._bar.start()
            self._task = self._bar.add_task("", total=None)

    def __call__(self, event: Any) -> None:
        """Draw, or say, where it stands."""
        if event.say:
            self.say(event.say)
        if event.step == "finished":
            return
        if self._bar is not None:
            total = event.tokens_wanted or None
            text = describe(event, self._bar.console.width - _BAR_COLUMNS)
            self._bar.update(self._task, description=text, completed=event.tokens_done, total=total)
        elif event.step in _STEPS and event.step not in self._said:
            self._said.add(event.step)
            self.say(describe(event))
        elif event.step == "requests" and self._clock() - self._last_line >= _LINE_EVERY_S:
            self._last_line = self._clock()
            self.say(describe(event))

    def say(self, text: str) -> None:
        """A line that stays."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            with suppress(OSError):  # nobody listens any more; the run goes on
                click.echo(text, err=True)

    def close(self) -> None:
        """Stop drawing."""
        if self._bar is not None:
            self._bar.stop()


def describe(event: Any, columns: int | None = None) -> str:
    """One line: which step or phase, how far, how well, how much longer. Where it does not fit into so many columns, what a
    reader misses least is left out first.
    """
    if event.step in _STEPS:
        return _STEPS[event.step]
    wait_s = event.next_due_s or 0.0
    parts = [  # the number: in which order they are left out
        (0, f"{event.phase}: {event.num_done} of {event.num_wanted} requests".removeprefix(": ")),
        (0, f"{event.num_failed} failed" if event.num_failed else ""),
        (1, f"{event.tokens_done:,} of {event.tokens_wanted:,} tokens"),
        (2, f"TTFT median {format_duration(event.ttft_p50_s)}" if event.ttft_p50_s is not None else ""),
        (3, f"next request due in {format_duration(wait_s)}" if wait_s > _NOTABLE_WAIT_S else ""),
        (0, f"{format_duration(event.left_s)} left" if event.left_s is not None else ""),
    ]
    line = ""
    for step in range(4):
        line = ", ".join(part for rank, part in parts if part and (rank == 0 or rank > step))
        if columns is None or len(line) <= columns:
            break
    return line
