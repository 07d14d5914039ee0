"""Reads one streamed answer: stamps each piece as it comes, parses a few at a time, and gives up on a silent server.

A token that comes alone finds the processor's caches filled with something else: to parse it at once costs some five
times what it costs as one of many. So pieces wait, with their stamps, until there are some to parse, or something else
than a token may have come, or a second has passed.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Self

from longreach.errors import ServerError
from longreach.measure.stream import FailureKind, StreamFailure, StreamRecorder
from longreach.units import format_duration
from longreach.wire.chunks import StreamDone, parse_stream_event
from longreach.wire.documents import parse_json
from longreach.wire.refusals import ApiError, parse_error_body, parse_error_object
from longreach.wire.sse import SseDecoder, SseEvent

_PIECES_AT_ONCE = 32
_LARGE_PIECE_BYTES = 2**13  # many tokens in one; to let these wait would only hold up the loop later
_LONGEST_WAIT_S = 1.0  # of a piece that was stamped and not parsed yet
_STREAM_FIELDS = (b":", b"data:", b"event:", b"id:", b"retry:")
_MAX_OPENING_BYTES = 2**16
_MAX_QUOTED = 200  # characters of what is no stream
_BROKEN_OFF = frozenset({"abort", "error"})  # of vLLM's finish reasons


class AnswerReader:
    """Entered, it watches over one request; TimeoutError leaves it when nothing came for `first_token_s` or, after the
    first token, for `stall_s`. `failure` then says which, or what else went wrong.
    """

    __slots__ = (
        *("_check_later", "_decoder", "_first_token_s", "_limit", "_opening", "_pieces", "_stall_s"),
        *("failure", "is_over", "recorder"),
    )

    def __init__(self, recorder: StreamRecorder, first_token_s: float, stall_s: float) -> None:
        self.recorder = recorder
        self.failure: StreamFailure | None = None
        self.is_over = False  # the answer has ended, well or not
        self._first_token_s = first_token_s
        self._stall_s = stall_s
        self._decoder = SseDecoder()
        self._pieces: list[tuple[float, bytes]] = []
        self._opening: bytearray | None = bytearray()  # what came before the first event: all of it, if none comes
        self._limit = asyncio.timeout(None)
        self._check_later: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        await self._limit.__aenter__()
        self._check()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._check_later is not None:
            self._check_later.cancel()
        self._parse()
        await self._limit.__aexit__(kind, error, trace)

    async def read(self, read_piece: Callable[[], Awaitable[bytes]]) -> None:
        """Read until the answer is over."""
        while not self.is_over and (piece := await read_piece()):
            self._pieces.append((time.perf_counter(), piece))
            is_maybe_last = not piece.endswith(b"}\n\n")
            is_much = len(self._pieces) >= _PIECES_AT_ONCE or len(piece) >= _LARGE_PIECE_BYTES
            if is_maybe_last or is_much or not self.recorder.has_token:
                self._parse()
        self._parse()
        finish_reason = self.recorder.finish_reason
        if not self.is_over and self._opening and not self._opening.lstrip().startswith(_STREAM_FIELDS):
            self._fail(*_explain_no_stream(bytes(self._opening)))
        elif not self.is_over and finish_reason is None:
            self._fail("cut_short", ApiError("the stream ended without a finish reason"))
        elif self.failure is None and finish_reason in _BROKEN_OFF:
            self._fail("cut_short", ApiError(f"the server broke the answer off: its finish reason is {finish_reason}"))

    def _parse(self) -> None:
        pieces, self._pieces = self._pieces, []
        for stamp, piece in pieces:
            events = self._decoder.feed(piece)
            if self._opening is not None:
                self._opening = None if events else self._opening + piece[: _MAX_OPENING_BYTES - len(self._opening)]
            for event in events:
                if not self.is_over:
                    self._take(stamp, event)

    def _take(self, stamp: float, event: SseEvent) -> None:
        try:
            chunk = parse_stream_event(event)
        except ServerError as error:
            self._fail("malformed", ApiError(f"{error.what}: {error.why}"))
            return
        if isinstance(chunk, StreamDone):
            self.is_over = True
        elif chunk.error is not None:
            self._fail("error_event", chunk.error)
        else:
            self.recorder.take(stamp, chunk)

    def _fail(self, kind: FailureKind, error: ApiError, status: int | None = 200) -> None:
        self.is_over = True
        self.failure = StreamFailure(kind, error, status)

    def _check(self) -> None:
        """Look at the clock; now and then is enough, as every piece has its stamp."""
        self._parse()
        loop, has_token = asyncio.get_running_loop(), self.recorder.has_token
        allowed_s = self._stall_s if has_token else self._first_token_s
        left_s = allowed_s - (time.perf_counter() - self.recorder.heard_stamp)
        if left_s <= 0 and not self.is_over:
            limit = format_duration(allowed_s)
            if has_token:
                self._fail("stall_timeout", ApiError(f"the answer began, then nothing came for {limit}"))
            else:
                self._fail("first_token_timeout", ApiError(f"no token within {limit} of sending"), None)
        if self.is_over:
            self._limit.reschedule(loop.time())
        else:
            # The stricter limit may begin at any moment from now on, so that none ends before this.
            self._check_later = loop.call_later(min(left_s, self._stall_s, _LONGEST_WAIT_S), self._check)


def _explain_no_stream(body: bytes) -> tuple[FailureKind, ApiError]:
    """What came with HTTP 200 and holds no event: an error in a plain body, a whole answer, a page for people."""
    try:
        parsed = parse_json(body)
    except ValueError:
        parsed = None
    error = parse_error_object(parsed) if isinstance(parsed, Mapping) else None
    if error is not None:
        return "error_event", error
    return "malformed", ApiError(f"it answers with no stream but: {parse_error_body(body).message[:_MAX_QUOTED]}")
