"""Server-sent events: bytes in, events out, whatever the pieces they arrive in.

The rules are those of the WHATWG HTML standard, section "Server-sent events": lines end with LF, CR or CRLF, a blank
line dispatches, `:` starts a comment, repeated `data` fields join with a newline, an event without data is dropped.
"""

from collections.abc import Iterable
from dataclasses import dataclass

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One dispatched event. `event` is empty unless the stream named it (`event: error`)."""

    data: str
    event: str = ""


class SseDecoder:
    """Decodes one stream. Feed it what the socket gives; it keeps an unfinished line or event until the rest arrives."""

    __slots__ = ("_at_start", "_data", "_event", "_line", "_skip_line_feed")

    def __init__(self) -> None:
        self._line: list[bytes] = []  # pieces of a line whose end has not arrived
        self._data: list[str] = []  # data fields of the event being read
        self._event = ""
        self._skip_line_feed = False  # the last piece ended with CR: a LF that follows belongs to it
        self._at_start = True

    @property
    def has_unfinished_event(self) -> bool:
        """True when bytes were fed that no dispatched event accounts for: the stream was cut inside an event."""
        return bool(self._line or self._data)

    def feed(self, piece: bytes) -> list[SseEvent]:
        """The events that `piece` completes, in order."""
        if self._skip_line_feed and piece:
            piece = piece.removeprefix(b"\n")
            self._skip_line_feed = False
        if b"\n" not in piece and b"\r" not in piece:
            if piece:
                self._line.append(piece)
            return []
        lines = b"".join((*self._line, piece)).splitlines(keepends=True)
        self._line = [] if lines[-1].endswith((b"\n", b"\r")) else [lines.pop()]
        self._skip_line_feed = not self._line and lines[-1].endswith(b"\r")
        if self._at_start:
            lines[0] = lines[0].removeprefix(_BYTE_ORDER_MARK)
            self._at_start = False
        return [event for line in lines if (event := self._take_line(line)) is not None]

    def _take_line(self, line: bytes) -> SseEvent | None:
        """Take one whole line in; a blank one dispatches."""
        field, _, value = line.decode("utf-8", errors="replace").rstrip("\r\n").partition(":")
        if field == "data":
            self._data.append(value.removeprefix(" "))
        elif field == "event":
            self._event = value.removeprefix(" ")
        elif not field and not value and line.strip(b"\r\n") == b"":
            return self._dispatch()
        return None

    def _dispatch(self) -> SseEvent | None:
        data, event = self._data, self._event
        self._data, self._event = [], ""
        return SseEvent("\n".join(data), event) if data else None


def decode_events(pieces: Iterable[bytes]) -> list[SseEvent]:
    """All events of a finished stream."""
    decoder = SseDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)]
