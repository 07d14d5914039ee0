"""Where a comparison of tiers stands, on stderr: starts as `up` shows them, runs as `bench` does."""

from dataclasses import replace
from typing import Any

import click

from longreach.cli.bench_progress import BenchProgress
from longreach.cli.launch_progress import LaunchProgress
from longreach.measure.bench.events import BenchEvent
from longreach.measure.tiers.run import TiersEvent


class TiersProgress:
    """Takes three kinds of events. Only one live display is up at a time."""

    def __init__(self) -> None:
        self._shown: LaunchProgress | BenchProgress | None = None
        self._variant = ""

    def on_run(self, event: TiersEvent) -> None:
        """A run begins, ends or fails."""
        self.close()
        self._variant = event.variant.title
        head = f"run {event.number} of {event.num_runs}: {event.variant.title}"
        click.echo(
            {"begin": head, "end": f"{head}: {event.text}"}.get(event.step, f"{head} failed: {event.text}"), err=True
        )

    def on_launch(self, event: Any) -> None:
        """An engine starts or ends."""
        if not isinstance(self._shown, LaunchProgress):
            self.close()
            self._shown = LaunchProgress()
        self._shown(replace(event, instance=f"{self._variant}: {event.instance}"))

    def on_bench(self, event: BenchEvent) -> None:
        """Requests are under way."""
        if not isinstance(self._shown, BenchProgress):
            self.close()
            self._shown = BenchProgress()
        self._shown(event)

    def close(self) -> None:
        """Stop drawing."""
        if self._shown is not None:
            self._shown.close()
        self._shown = None
