"""Server-sent events: bytes in, events out, whatever the pieces they arrive in.

The rules are those of the WHATWG HTML standard, section "Server-sent events": lines end with LF, CR or CRLF, a blank
line dispatches, `:` starts a comment, repeated `data` fields join with a newline, an event without data is dropped.
"""

from collections.abc import Iterable
from dataclasses import dataclass

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(slots=True)  # not frozen: every streamed token makes one, and freezing takes four times as long
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
        if self._at_start or self._skip_line_feed or b"\r" in piece:
            return self._feed_lines(piece)
        begun: list[SseEvent] = []
        if self._line or self._data or self._event:
            head, blank, piece = piece.partition(b"\n\n")
            begun = self._feed_lines(head + blank)
        whole, blank, tail = piece.rpartition(b"\n\n")
        events = begun + self._take_whole(whole) if blank else begun
        return events + self._feed_lines(tail) if tail else events

    def _take_whole(self, events: bytes) -> list[SseEvent]:
        """Events that blank lines part. Nearly all that servers send are one line of data: they are taken as they are."""
        taken = []
        for event in events.decode("utf-8", errors="replace").split("\n\n"):
            if event.startswith("data: ") and "\n" not in event:
                taken.append(SseEvent(event[6:]))
            else:
                taken += self._take_lines((*event.split("\n"), ""))
        return taken

    def _feed_lines(self, piece: bytes) -> list[SseEvent]:
        """The same as `feed`, line by line: for whatever shape."""
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
        return self._take_lines(line.decode("utf-8", errors="replace").rstrip("\r\n") for line in lines)

    def _take_lines(self, lines: Iterable[str]) -> list[SseEvent]:
        """Take whole lines in; a blank one dispatches."""
        events = []
        for line in lines:
            field, _, value = line.partition(":")
            if field == "data":
                self._data.append(value.removeprefix(" "))
            elif field == "event":
                self._event = value.removeprefix(" ")
            elif not line:
                if self._data:
                    events.append(SseEvent("\n".join(self._data), self._event))
                self._data, self._event = [], ""
        return events


def decode_events(pieces: Iterable[bytes]) -> list[SseEvent]:
    """All events of a finished stream."""
    decoder = SseDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)]
