"""Stream chunks of OpenAI-compatible servers, as vLLM 0.32.0 and others word them."""

import pytest

from longreach.errors import ServerError
from longreach.wire.chunks import ChoiceDelta, StreamChunk, StreamDone, ToolCallDelta, Usage, parse_stream_event
from longreach.wire.refusals import ApiError
from longreach.wire.sse import SseEvent


def chunk(data: str, event: str = "") -> StreamChunk:
    parsed = parse_stream_event(SseEvent(data, event))
    assert isinstance(parsed, StreamChunk)
    return parsed


DELTAS = {
    "role_only": ('{"role":"assistant","content":""}', ChoiceDelta(role="assistant"), False),
    "content": ('{"content":"hi"}', ChoiceDelta(content="hi"), True),
    "reasoning": ('{"reasoning":"hm"}', ChoiceDelta(reasoning="hm"), True),
    "reasoning_content": ('{"reasoning_content":"hm","content":null}', ChoiceDelta(reasoning="hm"), True),
    "empty": ("{}", ChoiceDelta(), False),
    "tool_call": (
        '{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{\\"a\\""}}]}',
        ChoiceDelta(tool_calls=(ToolCallDelta(0, "c1", "f", '{"a"'),)),
        True,
    ),
    "tool_arguments": (
        '{"tool_calls":[{"index":1,"function":{"arguments":"}"}}]}',
        ChoiceDelta(tool_calls=(ToolCallDelta(1, None, None, "}"),)),
        True,
    ),
}


@pytest.mark.parametrize(("delta", "expected", "is_token"), DELTAS.values(), ids=DELTAS.keys())
def test_only_generated_text_is_a_token(delta: str, expected: ChoiceDelta, is_token: bool) -> None:
    (choice,) = chunk(
        f'{{"id":"x","model":"m","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}'
    ).choices
    assert choice == expected
    assert choice.carries_token is is_token


def test_completion_text_is_content() -> None:
    (choice,) = chunk('{"choices":[{"index":0,"text":" the","finish_reason":"length"}]}').choices
    assert choice == ChoiceDelta(content=" the", finish_reason="length")


def test_last_chunk_carries_usage_with_cached_tokens() -> None:
    last = chunk(
        '{"model":"m","choices":[],"usage":{"prompt_tokens":601,"total_tokens":609,"completion_tokens":8,'
        '"prompt_tokens_details":{"cached_tokens":512},"completion_tokens_details":{"reasoning_tokens":3}}}'
    )
    assert last == StreamChunk(usage=Usage(601, 8, cached_tokens=512, reasoning_tokens=3), model="m")


def test_usage_without_details_leaves_cached_tokens_unknown() -> None:
    usage = chunk('{"choices":[],"usage":{"prompt_tokens":5,"prompt_tokens_details":null}}').usage
    assert usage == Usage(prompt_tokens=5, completion_tokens=None)


def test_done_ends_the_stream() -> None:
    assert parse_stream_event(SseEvent(" [DONE] ")) == StreamDone()


ERRORS = {
    "vllm": (
        SseEvent('{"error":{"message":"Internal server error","type":"InternalServerError","param":null,"code":500}}'),
        ApiError("Internal server error", "InternalServerError", "500"),
    ),
    "old_vllm": (
        SseEvent('{"object":"error","message":"boom","type":"X","code":400}'),
        ApiError("boom", "X", "400"),
    ),
    "named_event_with_json": (SseEvent('{"reason":"overloaded"}', "error"), ApiError('{"reason":"overloaded"}')),
    "named_event_with_text": (SseEvent("out of memory", "error"), ApiError("out of memory")),
}


@pytest.mark.parametrize(("event", "error"), ERRORS.values(), ids=ERRORS.keys())
def test_error_inside_a_stream_is_an_error(event: SseEvent, error: ApiError) -> None:
    assert parse_stream_event(event) == StreamChunk(error=error)


@pytest.mark.parametrize("usage", ["{}", "null", '{"prompt_tokens":null}', '{"completion_tokens":1}'])
def test_usage_that_does_not_count_the_prompt_is_unknown_and_no_fault(usage: str) -> None:
    assert chunk(f'{{"choices":[],"usage":{usage}}}') == StreamChunk()


@pytest.mark.parametrize("cached", ["-5", "1e25", "9223372036854775808", "1000000000000000"])
def test_what_can_be_no_count_is_unknown(cached: str) -> None:
    details = f'{{"prompt_tokens":5,"prompt_tokens_details":{{"cached_tokens":{cached}}}}}'
    assert chunk(f'{{"choices":[],"usage":{details}}}').usage == Usage(5, None)


def test_a_whole_count_may_be_written_as_a_fraction() -> None:
    assert chunk('{"usage":{"prompt_tokens":100.0,"completion_tokens":2.0}}').usage == Usage(100, 2)


@pytest.mark.parametrize(
    "data",
    [
        "<html>",
        "[1]",
        '{"choices":3}',
        '{"choices":[3]}',
        '{"choices":[{"delta":{"content":5}}]}',
        '{"choices":[{"delta":{"tool_calls":5}}]}',
        '{"choices":[{"index":true,"text":""}]}',
        '{"usage":{"prompt_tokens":"100"}}',
        '{"usage":{"prompt_tokens":100.5}}',
        "x" * 1000,
    ],
    ids=lambda data: data[:24],
)
def test_malformed_event_names_what_it_holds(data: str) -> None:
    with pytest.raises(ServerError, match="no completion chunk") as caught:
        parse_stream_event(SseEvent(data))
    assert len(caught.value.what) < 300


def test_an_event_that_nests_without_end_is_no_chunk() -> None:
    with pytest.raises(ServerError, match="no completion chunk"):
        parse_stream_event(SseEvent("message", "[" * 100_000))
