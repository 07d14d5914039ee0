"""Read what was added to a log since the last look."""

from dataclasses import dataclass, field
from pathlib import Path

_FIRST_LOOK_BYTES = 4 * 2**20


@dataclass(slots=True)
class LogTail:
    """A place in a growing file. It survives a file that is not there yet, and one that was cut short (copytruncate)."""

    path: Path
    offset: int = 0
    _rest: bytes = field(default=b"", repr=False)

    def read_lines(self) -> list[str]:
        """The lines completed since the last call. Of a line drawn over by carriage returns (a progress bar) the last state."""
        added = self._read_added()
        *complete, self._rest = (self._rest + added).split(b"\n")
        return [_last_drawn(line) for line in complete]

    def read_rest(self) -> list[str]:
        """What is left, an unfinished last line included: for a log whose writer has ended."""
        lines = self.read_lines()
        rest, self._rest = self._rest, b""
        return [*lines, _last_drawn(rest)] if rest else lines

    def _read_added(self) -> bytes:
        try:
            with self.path.open("rb") as log:
                size = log.seek(0, 2)
                if size < self.offset:
                    self.offset = 0
                log.seek(self.offset)
                added = log.read()
        except FileNotFoundError:
            return b""
        self.offset += len(added)
        return added


def _last_drawn(line: bytes) -> str:
    drawn = [part for part in line.split(b"\r") if part.strip()]
    return drawn[-1].decode("utf-8", "replace") if drawn else ""


def read_last_lines(path: Path) -> list[str]:
    """The lines of its last 4 MiB, an unfinished one included."""
    tail, lines = _read_end(path)
    return [*lines, *tail.read_rest()]


def open_tail(path: Path) -> tuple[list[str], LogTail]:
    """The complete lines of its last 4 MiB, and the tail that goes on right behind them: nothing is lost or told twice."""
    tail, lines = _read_end(path)
    return lines, tail


def _read_end(path: Path) -> tuple[LogTail, list[str]]:
    tail = LogTail(path)
    if path.exists():
        tail.offset = max(0, path.stat().st_size - _FIRST_LOOK_BYTES)
    is_cut = tail.offset > 0
    return tail, tail.read_lines()[1 if is_cut else 0 :]
