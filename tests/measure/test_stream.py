"""Times and rates of a stream, from chunks with known stamps."""

import pytest

from longreach.measure.stream import StreamFailure, StreamRecorder, StreamResult
from longreach.wire.chunks import ChoiceDelta, StreamChunk, ToolCallDelta, Usage
from longreach.wire.refusals import ApiError


def record(chunks: list[tuple[float, ChoiceDelta]], tokens: int | None = None) -> StreamResult:
    recorder = StreamRecorder(sent_stamp=100.0)
    for stamp, choice in chunks:
        recorder.take(100.0 + stamp, StreamChunk(choices=(choice,)))
    recorder.take(110.0, StreamChunk(usage=None if tokens is None else Usage(7, tokens)))
    return recorder.finish(110.5, None)


def test_role_chunk_is_not_the_first_token() -> None:
    result = record([(0.01, ChoiceDelta(role="assistant")), (0.3, ChoiceDelta(content="a"))])
    assert result.timing.ttft_s == pytest.approx(0.3)


def test_reasoning_counts_for_the_first_token_but_not_for_the_answer() -> None:
    result = record([(0.3, ChoiceDelta(reasoning="hm")), (0.5, ChoiceDelta(content="yes"))])
    assert result.timing.ttft_s == pytest.approx(0.3)
    assert result.timing.first_answer_s == pytest.approx(0.5)
    assert (result.reasoning, result.content) == ("hm", "yes")


def test_tool_call_is_an_answer() -> None:
    result = record([(0.4, ChoiceDelta(tool_calls=(ToolCallDelta(0, "x", "f", ""),)))])
    assert result.timing.first_answer_s == pytest.approx(0.4)


def test_itl_divides_by_the_servers_token_count_not_by_chunks() -> None:
    chunks = [(0.3 + 0.06 * i, ChoiceDelta(content="a b c")) for i in range(7)]
    result = record(chunks, tokens=19)
    assert result.itl_s == pytest.approx(0.02)
    assert result.output_tokens_per_s == pytest.approx(50)
    assert result.timing.chunk_gaps_s == pytest.approx([0.06] * 6)


def test_the_end_token_has_no_text_but_counts_in_time() -> None:
    result = record([(1.0, ChoiceDelta(content="a")), (1.5, ChoiceDelta(finish_reason="stop"))], tokens=2)
    assert result.itl_s == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("chunks", "tokens"),
    [
        ([], 5),
        ([(1.0, ChoiceDelta(content="a"))], 1),
        ([(1.0, ChoiceDelta(content="a")), (2.0, ChoiceDelta(content="b"))], None),
        ([(1.0, ChoiceDelta(content="a b", finish_reason="length"))], 2),
    ],
    ids=["no_token", "one_token", "no_usage", "one_read"],
)
def test_itl_is_unknown_without_two_times_and_a_count(
    chunks: list[tuple[float, ChoiceDelta]], tokens: int | None
) -> None:
    result = record(chunks, tokens)
    assert result.itl_s is None
    assert result.output_tokens_per_s is None


def test_other_choices_are_left_out() -> None:
    chunks = [
        (1.0, ChoiceDelta(index=1, content="b")),
        (2.0, ChoiceDelta(content="a")),
        (3.0, ChoiceDelta(content="a")),
    ]
    result = record(chunks, tokens=3)
    assert result.content == "aa"
    assert result.timing.ttft_s == pytest.approx(2.0)
    assert result.itl_s is None  # the server's count is of all choices


def test_nothing_arrived_leaves_times_unknown_but_the_end_known() -> None:
    failure = StreamFailure("unreachable", ApiError("refused"))
    result = StreamRecorder(1.0).finish(3.0, failure)
    assert (result.timing.ttft_s, result.timing.e2e_latency_s, result.failure) == (None, 2.0, failure)
