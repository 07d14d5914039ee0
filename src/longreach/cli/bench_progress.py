"""Where a benchmark stands, on stderr: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from typing import Any

import click

from longreach.units import format_duration

_LINE_EVERY_S = 15.0
_STEPS = {"reach": "asking the server who it is", "prompts": "writing the prompts"}


class BenchProgress:
    """Takes the events of a run. The bar's measure are tokens, so that its ETA holds for prompts of any length."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._last_line = time.monotonic()
        self._last_step = ""
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=None),
                TimeElapsedColumn(),
                TextColumn("ETA"),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True, expand=True)
            self._bar.start()
            self._task = self._bar.add_task("", total=None)

    def __call__(self, event: Any) -> None:
        """Draw, or say, where it stands."""
        if event.say:
            self.say(event.say)
        text = _describe(event)
        if self._bar is not None:
            if event.step != self._last_step:
                self._bar.reset(self._task)
            self._bar.update(
                self._task, description=text, completed=event.tokens_done, total=event.tokens_wanted or None
            )
        elif event.step in _STEPS and event.step != self._last_step:
            click.echo(text, err=True)
        elif event.step == "requests" and time.monotonic() - self._last_line >= _LINE_EVERY_S:
            self._last_line = time.monotonic()
            click.echo(f"{text}{_eta(event)}", err=True)
        self._last_step = event.step

    def say(self, text: str) -> None:
        """A line that stays."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            click.echo(text, err=True)

    def close(self) -> None:
        """Stop drawing."""
        if self._bar is not None:
            self._bar.stop()


def _describe(event: Any) -> str:
    if event.step in _STEPS:
        return _STEPS[event.step]
    failed = f", {event.num_failed} failed" if event.num_failed else ""
    median = f", TTFT median {format_duration(event.ttft_p50_s)}" if event.ttft_p50_s is not None else ""
    tokens = f"{event.tokens_done:,} of {event.tokens_wanted:,} tokens"
    return f"{event.phase}: {event.num_done} of {event.num_wanted} requests{failed}, {tokens}{median}".removeprefix(
        ": "
    )


def _eta(event: Any) -> str:
    """How long it goes on, if it goes on as until now."""
    if not event.tokens_done:
        return ""
    left_s = event.elapsed_s * (event.tokens_wanted - event.tokens_done) / event.tokens_done
    return f", {format_duration(left_s)} left"
