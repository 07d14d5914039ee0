"""Event streams: whatever the pieces, the same events."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longreach.wire.sse import SseDecoder, SseEvent, decode_events

STREAMS = {
    "line_feeds": (b"data: a\n\ndata: b\n\n", ["a", "b"]),
    "crlf": (b"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
    "carriage_returns": (b"data: a\r\rdata: b\r\r", ["a", "b"]),
    "mixed_ends": (b"data: a\n\r\ndata: b\r\n\ndata: c\r\n\r", ["a", "b", "c"]),
    "comments_between": (b": keep-alive\n\n:\n\ndata: a\n: ping\n\n", ["a"]),
    "several_data_lines": (b"data: one\ndata:  two\ndata\ndata:three\n\n", ["one\n two\n\nthree"]),
    "done": (b"data: {}\n\ndata: [DONE]\n\n", ["{}", "[DONE]"]),
    "byte_order_mark": (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
    "id_and_retry_ignored": (b"id: 7\nretry: 10\ndata: a\n\nid: 8\n\n", ["a"]),
    "unfinished_dropped": (b"data: a\n\ndata: b\n", ["a"]),
    "colon_in_value": (b'data: {"a": "b: c"}\n\n', ['{"a": "b: c"}']),
    "multi_byte_text": ("data: Füße 漢字 🙂\n\n".encode(), ["Füße 漢字 🙂"]),
    "unicode_line_separator_is_text": ("data: a\u2028b\x0bc\x85d\n\n".encode(), ["a\u2028b\x0bc\x85d"]),
    "broken_utf8_replaced": (b"data: a\xff\n\n", ["a\ufffd"]),
}


@pytest.mark.parametrize(("stream", "texts"), STREAMS.values(), ids=STREAMS.keys())
def test_events_follow_the_standard(stream: bytes, texts: list[str]) -> None:
    assert [event.data for event in decode_events([stream])] == texts


@pytest.mark.parametrize("stream", [stream for stream, _ in STREAMS.values()], ids=STREAMS.keys())
def test_single_bytes_give_the_same_events(stream: bytes) -> None:
    assert decode_events(bytes([byte]) for byte in stream) == decode_events([stream])


@given(
    st.lists(
        st.sampled_from(
            [b"data: x\n\n", b"data: x", b"data", b"event: error", b": c", b"\n", b"\r", b"\r\n", b"\xc3\xbc"]
        )
    ),
    st.lists(st.integers(0, 60), max_size=8),
)
def test_any_split_gives_the_same_events(parts: list[bytes], cuts: list[int]) -> None:
    """A stream in one piece is read line by line; of later pieces whole events are taken as they are."""
    stream = b"".join(parts)
    edges = [0, *sorted(cuts), len(stream)]
    pieces = [stream[start:end] for start, end in pairwise(edges)]
    assert decode_events(pieces) == decode_events([stream])


def test_event_name_belongs_to_one_event_only() -> None:
    events = decode_events([b"event: error\ndata: a\n\ndata: b\n\nevent: x\n\ndata: c\n\n"])
    assert events == [SseEvent("a", "error"), SseEvent("b"), SseEvent("c")]


def test_event_is_given_as_soon_as_its_last_byte_is_there() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: a\r\n\r") == [SseEvent("a")]
    assert decoder.feed(b"\ndata: b\n") == []
    assert decoder.has_unfinished_event
    assert decoder.feed(b"\n") == [SseEvent("b")]
    assert not decoder.has_unfinished_event


def test_long_line_in_many_pieces_costs_linear_time() -> None:
    decoder = SseDecoder()
    for _ in range(20_000):
        decoder.feed(b"data: " if not decoder.has_unfinished_event else b"x" * 50)
    assert len(decoder.feed(b"\n\n")[0].data) == 19_999 * 50
