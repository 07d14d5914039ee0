"""The traps that load generators fall into, each against a server of known truth or a stream of a given shape."""

import asyncio
import errno
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.measure.known_truth import MODEL, SeenRequest, TruthMode, known_truth

from longreach.measure.client import Client, Timeouts, open_client
from longreach.measure.endpoint import Endpoint
from longreach.measure.reading import AnswerReader
from longreach.measure.stream import StreamRecorder, StreamResult
from longreach.wire.bodies import render_chat_body

Steps = list[bytes | float | None]
ServeSteps = Callable[[Steps], AbstractAsyncContextManager[str]]

DONE = b"data: [DONE]\n\n"


def event(choices: object, **fields: object) -> bytes:
    return b"data: " + json.dumps({"choices": choices, **fields}).encode() + b"\n\n"


def delta(finish: str | None = None, **fields: object) -> bytes:
    return event([{"index": 0, "delta": fields, "finish_reason": finish}])


def usage(prompt: int, completion: int) -> bytes:
    return event([], usage={"prompt_tokens": prompt, "completion_tokens": completion})


async def ask(url: str, timeouts: Timeouts | None = None, max_tokens: int = 16) -> StreamResult:
    async with open_client(Endpoint(url), timeouts) as client:
        return await client.stream("/v1/chat/completions", render_chat_body(MODEL, "Tell.", max_tokens, {}))


async def ask_truth(mode: TruthMode, timeouts: Timeouts | None = None) -> tuple[StreamResult, SeenRequest]:
    async with known_truth(mode) as server:
        result = await ask(server.url, timeouts)
    return result, server.requests[0]


def kind(result: StreamResult) -> str | None:
    return result.failure.kind if result.failure else None


async def test_early_role_chunk_does_not_shorten_ttft() -> None:
    result, seen = await ask_truth(TruthMode(ttft_s=0.2, early_role_chunk=True))
    assert result.failure is None
    assert result.timing.ttft_s is not None
    assert seen.first_token is not None
    assert result.timing.ttft_s >= seen.first_token - seen.arrived >= 0.2


async def test_reasoning_is_the_first_token_and_the_answer_is_timed_apart() -> None:
    result, _ = await ask_truth(TruthMode(itl_s=0.02, num_reasoning_tokens=8))
    timing = result.timing
    assert timing.ttft_s is not None
    assert timing.first_answer_s is not None
    assert timing.first_answer_s - timing.ttft_s > 0.05
    assert len(result.reasoning.split()) == len(result.content.split()) == 8


async def test_three_tokens_a_chunk_give_the_true_token_time() -> None:
    result, _ = await ask_truth(TruthMode(itl_s=0.01, tokens_per_chunk=3))
    gaps = result.timing.chunk_gaps_s
    assert result.usage is not None
    assert (result.usage.completion_tokens, result.num_chunks, len(gaps)) == (16, 6, 5)
    assert result.itl_s == pytest.approx(sum(gaps) / 15)


async def test_error_event_after_five_tokens_is_a_failure() -> None:
    result, seen = await ask_truth(TruthMode(itl_s=0.001, error_after_tokens=5))
    assert kind(result) == seen.outcome == "error_event"
    assert result.failure is not None
    assert result.failure.error.message == "Internal server error"
    assert (result.num_chunks, len(result.content.split()), result.usage, result.itl_s) == (5, 5, None, None)


async def test_death_in_mid_stream_is_a_failure() -> None:
    result, seen = await ask_truth(TruthMode(itl_s=0.005, die_after_tokens=5))
    assert (kind(result), seen.outcome) == ("disconnected", "died")
    assert result.finish_reason is None


@pytest.mark.parametrize(
    ("mode", "status", "words"),
    [
        (TruthMode(refuse_with=(503, "the queue is full")), 503, "the queue is full"),
        (TruthMode(max_model_len=8), 400, "maximum context length is 8 tokens"),
        (TruthMode(with_chat_template=False), 400, "no chat template"),
    ],
    ids=["refused", "too long", "no template"],
)
async def test_refusal_keeps_the_servers_text(mode: TruthMode, status: int, words: str) -> None:
    result, _ = await ask_truth(mode)
    assert result.failure is not None
    assert (result.failure.kind, result.failure.status) == ("refused", status)
    assert words in result.failure.error.message


@pytest.mark.parametrize(
    ("mode", "limits", "expected"),
    [
        (TruthMode(stall_after_tokens=1), Timeouts(stall_s=0.2), "stall_timeout"),
        (TruthMode(stall_after_tokens=5), Timeouts(stall_s=0.2), "stall_timeout"),
        (TruthMode(stall_after_tokens=0), Timeouts(first_token_s=0.3), "first_token_timeout"),
        (TruthMode(stall_after_tokens=0, early_role_chunk=True), Timeouts(first_token_s=0.3), "first_token_timeout"),
    ],
    ids=["after the first", "after five", "before any", "role chunk only"],
)
async def test_silence_has_two_limits(mode: TruthMode, limits: Timeouts, expected: str) -> None:
    result, seen = await ask_truth(mode, limits)
    assert kind(result) == expected
    assert result.num_chunks == seen.num_output_tokens
    assert seen.outcome == "stalled"
    assert result.timing.e2e_latency_s >= 0.2


async def test_slow_first_token_is_not_a_stall() -> None:
    result, _ = await ask_truth(TruthMode(ttft_s=0.8, num_answer_tokens=1), Timeouts(stall_s=0.4))
    assert result.failure is None


async def test_without_usage_the_token_time_is_unknown_and_the_answer_good() -> None:
    result, _ = await ask_truth(TruthMode(itl_s=0.001, with_usage=False))
    assert (result.failure, result.usage, result.itl_s) == (None, None, None)
    assert result.num_chunks == 16


SHAPES: dict[str, tuple[Steps, int]] = {
    "choices null": ([event(None), delta(content="a"), event(None), delta("stop", content="b"), usage(9, 2), DONE], 2),
    "choices empty": ([event([]), delta(content="a"), event([]), delta("stop", content="b"), usage(9, 2), DONE], 2),
    "usage null": ([event([], usage=None), delta("stop", content="ab"), usage(9, 2), DONE], 1),
    "usage in every chunk": ([delta(content="a"), usage(9, 1), delta("stop", content="b"), usage(9, 2), DONE], 2),
    "empty content": (
        [delta(content=""), delta(content=None), delta(content="ab"), delta("stop", content=""), usage(9, 2), DONE],
        1,
    ),
    "comments": (
        [b": ping\n\n", delta(content="a"), b":\n\n", delta("stop", content="b"), b": x\n", usage(9, 2), DONE],
        2,
    ),
    "end without [DONE]": ([delta(content="a"), delta("stop", content="b"), usage(9, 2)], 2),
    "logprobs that are no JSON": (
        [
            b'data: {"choices":[{"delta":{"content":"ab"},"finish_reason":"stop","logprobs":NaN}]}\n\n',
            usage(9, 2),
            DONE,
        ],
        1,
    ),
}


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize(("steps", "num_chunks"), SHAPES.values(), ids=SHAPES.keys())
async def test_any_shape_of_a_good_answer_is_one(
    serve_steps: ServeSteps, steps: Steps, num_chunks: int, line_end: bytes
) -> None:
    sent: Steps = [step.replace(b"\n", line_end) if isinstance(step, bytes) else step for step in steps]
    async with serve_steps(sent) as url:
        result = await ask(url)
    assert (result.failure, result.content, result.num_chunks) == (None, "ab", num_chunks)
    assert result.usage is not None
    assert result.usage.completion_tokens == 2


@pytest.mark.parametrize(
    ("finish", "expected"),
    [("stop", None), ("length", None), ("tool_calls", None), ("content_filter", None), ("abort", "cut_short")],
)
async def test_the_reason_of_the_end_is_kept_and_an_abort_is_none(
    serve_steps: ServeSteps, finish: str, expected: str | None
) -> None:
    async with serve_steps([delta(content="a"), delta(finish), usage(9, 2), DONE]) as url:
        result = await ask(url)
    assert (result.finish_reason, kind(result)) == (finish, expected)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([delta(content="a")], "cut_short"),
        ([delta(content="a"), b'data: {"choices":[{"ind'], "cut_short"),
        ([b"data: <html>oops\n\n"], "malformed"),
        ([delta(content="a"), b'data: {"choices":3}\n\n', DONE], "malformed"),
        ([b'data: {"error":{"message":"out of blocks"}}\n\n', delta("stop", content="a"), DONE], "error_event"),
        ([b"event: error\ndata: out of blocks\n\n"], "error_event"),
    ],
    ids=["no end", "cut event", "html", "choices 3", "error first", "named"],
)
async def test_answers_without_a_good_end_are_failures(serve_steps: ServeSteps, steps: Steps, expected: str) -> None:
    async with serve_steps(steps) as url:
        result = await ask(url)
    assert kind(result) == expected


@pytest.mark.parametrize(
    ("body", "expected", "words"),
    [
        (b'{"error": {"message": "the model is loading", "code": 503}}', "error_event", "the model is loading"),
        (b'{"detail": "no such model"}\n\n', "error_event", "no such model"),
        (b'{"object": "chat.completion", "choices": []}', "malformed", 'no stream but: {"object": "chat.completion"'),
        (b"<!doctype html><title>Sign in</title>", "malformed", "no stream but: Sign in"),
        (b"", "cut_short", "without a finish reason"),
        (b": ping\n\n", "cut_short", "without a finish reason"),
        (b'data: {"choices"', "cut_short", "without a finish reason"),
    ],
    ids=["error", "detail", "whole answer", "page", "nothing", "comment", "cut event"],
)
async def test_what_is_no_stream_is_quoted(serve_steps: ServeSteps, body: bytes, expected: str, words: str) -> None:
    async with serve_steps([body]) as url:
        result = await ask(url)
    assert result.failure is not None
    assert result.failure.kind == expected
    assert words in result.failure.error.message


async def test_comments_keep_no_answer_alive(serve_steps: ServeSteps) -> None:
    pings: Steps = [0.05, b": ping\n\n"]
    async with serve_steps([delta(role="assistant"), *pings * 200]) as url:
        before = await ask(url, Timeouts(first_token_s=0.3))
    async with serve_steps([delta(content="a"), *pings * 200]) as url:
        after = await ask(url, Timeouts(stall_s=0.3))
    assert (kind(before), kind(after)) == ("first_token_timeout", "stall_timeout")


async def test_an_error_event_is_seen_though_the_server_keeps_the_connection(serve_steps: ServeSteps) -> None:
    error = b'data: {"error":{"message":"out of blocks"}}\n\n'
    async with serve_steps([delta(content="a"), 0.05, error, 8.0]) as url:
        result = await ask(url)
    assert kind(result) == "error_event"
    assert result.timing.e2e_latency_s < 6


async def test_tokens_that_came_before_a_death_are_kept(serve_steps: ServeSteps) -> None:
    steps: Steps = [delta(content="a")]
    for _ in range(5):
        steps += [0.01, delta(content="b")]
    async with serve_steps([*steps, 0.1, None]) as url:
        result = await ask(url)
    assert (kind(result), result.content, result.num_chunks) == ("disconnected", "abbbbb", 6)


async def test_a_connection_that_times_out_is_broken_not_slow() -> None:
    async def read_nothing() -> bytes:
        raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")

    @asynccontextmanager
    async def post(*_: object, **__: object) -> AsyncIterator[Any]:
        yield SimpleNamespace(status=200, method="POST", content=SimpleNamespace(readany=read_nothing))

    session: Any = SimpleNamespace(post=post)
    result = await Client(session, Endpoint("http://x"), Timeouts()).stream("/v1/completions", b"{}")
    assert kind(result) == "disconnected"


STREAM = b"".join(
    [
        delta(role="assistant", content=""),
        delta(reasoning="hm"),
        *[delta(content=f" {number}") for number in range(60)],
        b": ping\n\n",
        delta("stop", content=" ü"),
        usage(9, 62),
        DONE,
    ]
)


async def read_pieces(cuts: list[int]) -> StreamResult:
    edges = [0, *sorted(cuts), len(STREAM)]
    pieces = iter([STREAM[start:end] for start, end in pairwise(edges) if start < end])

    async def read_piece() -> bytes:
        return next(pieces, b"")

    recorder = StreamRecorder(time.perf_counter())
    async with AnswerReader(recorder, 60.0, 60.0) as reader:
        await reader.read(read_piece)
    return recorder.finish(time.perf_counter(), reader.failure)


def test_however_an_answer_is_cut_it_is_the_same() -> None:
    with asyncio.Runner() as runner:

        @settings(max_examples=60, deadline=None)
        @given(st.lists(st.integers(0, len(STREAM)), max_size=120))
        def check(cuts: list[int]) -> None:
            result = runner.run(read_pieces(cuts))
            assert (result.failure, result.num_chunks, result.reasoning) == (None, 62, "hm")
            assert result.content == "".join(f" {number}" for number in range(60)) + " ü"

        check()
