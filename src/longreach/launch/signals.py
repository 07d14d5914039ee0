"""Ctrl-C, `kill` and a closed terminal while an engine is starting: noted, and acted upon where it is safe."""

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

_Handler = Callable[[int, FrameType | None], object] | int | None


class StopSignals:
    """While it is entered, a stop signal is counted instead of raised, so that no engine is lost between two lines of code.

    One that is ignored stays ignored: `nohup` does so with SIGHUP, a shell with the SIGINT of what runs in its background.
    SIGPIPE is ignored as well: a reader of our output that goes away must not kill us before we end the engine.
    Outside the main thread Python allows no handlers; then nothing is noted.
    """

    def __init__(self) -> None:
        self._num_received = 0
        self._num_when_stopping: int | None = None
        self._previous: dict[signal.Signals, _Handler] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) != signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self._note)
            self._previous[signal.SIGPIPE] = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self._num_received += 1

    @property
    def is_requested(self) -> bool:
        """Somebody asked us to stop."""
        return self._num_received > 0

    def check(self) -> None:
        """KeyboardInterrupt when somebody asked us to stop."""
        if self.is_requested:
            raise KeyboardInterrupt

    def begin_stopping(self) -> None:
        """From here on, one more signal means: at once."""
        if self._num_when_stopping is None:
            self._num_when_stopping = self._num_received

    def is_hurried(self) -> bool:
        """Somebody asked again while we were stopping."""
        return self._num_when_stopping is not None and self._num_received > self._num_when_stopping
