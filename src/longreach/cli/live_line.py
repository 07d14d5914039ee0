"""One line on stderr that lives on a terminal; elsewhere only what is said for good."""

import sys
from contextlib import suppress
from typing import Any

import click


class LiveLine:
    """`update` redraws the line (nothing, where there is no terminal), `say` prints above it, `close` ends it."""

    def __init__(self) -> None:
        self._status: Any = None
        if sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console
            from rich.status import Status

            self._status = Status("", console=Console(stderr=True))

    @property
    def is_live(self) -> bool:
        """There is a terminal to draw on."""
        return self._status is not None

    def start(self) -> None:
        """Begin to draw."""
        if self._status:
            self._status.start()

    def update(self, text: str) -> None:
        """What the line shows now."""
        if self._status:
            self._status.update(text)

    def say(self, text: str) -> None:
        """A line that stays."""
        if self._status:
            self._status.console.print(text, markup=False, highlight=False)
        else:
            with suppress(OSError):  # nobody listens any more
                click.echo(text, err=True)

    def close(self) -> None:
        """Stop drawing."""
        if self._status:
            self._status.stop()
