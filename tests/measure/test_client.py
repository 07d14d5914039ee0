"""One server at a time: what it answers, what it does not, and why, in plain words."""

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
from aiohttp import web

from longreach.errors import ServerError
from longreach.measure.client import Timeouts, open_client
from longreach.measure.endpoint import Endpoint
from longreach.measure.stream import StreamResult

Steps = list[bytes | float | None]
ServeSteps = Callable[[Steps], AbstractAsyncContextManager[str]]
ServeAnswer = Callable[..., AbstractAsyncContextManager[str]]
ServeHandler = Callable[..., AbstractAsyncContextManager[str]]

PATH = "/v1/chat/completions"
DONE = b"data: [DONE]\n\n"


def delta(finish: str | None = None, **fields: str) -> bytes:
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def usage(prompt: int, completion: int) -> bytes:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion}
    return b"data: " + json.dumps({"choices": [], "usage": counts}).encode() + b"\n\n"


async def ask(url: str) -> StreamResult:
    async with open_client(Endpoint(url)) as client:
        return await client.stream(PATH, b"{}")


async def test_no_server_is_unreachable(unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    failure = (await ask(url)).failure
    assert failure is not None
    assert failure.kind == "unreachable"
    async with open_client(Endpoint(url)) as client:
        with pytest.raises(ServerError, match="does not answer"):
            await client.fetch("/version")


@pytest.mark.parametrize(
    ("status", "body"),
    [(400, b"{}"), (200, b'data: {"error": {"message": "bad Bearer sk-secret"}}\n\n')],
    ids=["refusal", "error event"],
)
async def test_a_server_that_quotes_the_key_does_not_reveal_it(
    serve_handler: ServeHandler, status: int, body: bytes
) -> None:
    async def quote(request: web.Request) -> web.Response:
        said = body if status == 200 else f"bad {request.headers['Authorization']}".encode()
        return web.Response(status=status, body=said)

    async with serve_handler(quote) as url, open_client(Endpoint(url, "sk-secret")) as client:
        failure = (await client.stream(PATH, b"{}")).failure
        answer = await client.fetch("/v1/models")
    assert failure is not None
    assert failure.error.message == "bad Bearer ***"
    assert b"secret" not in answer.body or status == 200


@pytest.mark.parametrize("pause_s", [0.0, 0.005])
async def test_a_connection_that_its_server_closes_unannounced_breaks_no_later_request(pause_s: float) -> None:
    answer = delta("stop", content="a") + DONE

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)
        await asyncio.sleep(pause_s)
        writer.close()
        await writer.wait_closed()
        closed.release()

    closed = asyncio.Semaphore(0)
    server = await asyncio.start_server(serve_one, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, open_client(Endpoint(f"http://127.0.0.1:{port}")) as client:
        results = [await client.stream(PATH, b"{}") for _ in range(5)]
        for _ in results:
            await closed.acquire()
    assert {result.failure for result in results} == {None}


@pytest.mark.parametrize(("status", "expected"), [(302, "refused"), (301, "refused"), (307, None), (308, None)])
async def test_a_redirect_that_loses_the_request_names_the_new_address(
    serve_handler: ServeHandler, serve_steps: ServeSteps, status: int, expected: str | None
) -> None:
    async with serve_steps([delta("stop", content="a"), DONE]) as there:

        async def redirect(request: web.Request) -> web.Response:
            return web.Response(status=status, headers={"Location": there + request.path})

        async with serve_handler(redirect) as url:
            failure = (await ask(url)).failure
    assert (failure.kind if failure else None) == expected
    assert failure is None or (failure.error.message, failure.status) == (
        f"it redirects to another address: measure {there}",
        status,
    )


@pytest.mark.parametrize("encoding", ["gzip", "zstd", "br"])
async def test_an_answer_that_cannot_be_unpacked_is_told_so(serve_handler: ServeHandler, encoding: str) -> None:
    async def pack(request: web.Request) -> web.Response:
        assert request.headers["Accept-Encoding"] == "identity"
        return web.Response(body=b"nothing of the kind", headers={"Content-Encoding": encoding})

    async with serve_handler(pack) as url:
        failure = (await ask(url)).failure
    assert failure is not None
    assert "compressed" in failure.error.message


async def test_small_answers_keep_their_status(serve_answer: ServeAnswer) -> None:
    async with serve_answer(status=404, body=b'{"detail":"Not Found"}') as url, open_client(Endpoint(url)) as client:
        answer = await client.fetch("/version")
        assert answer.status == 404
        with pytest.raises(ServerError, match="answers HTTP 404") as caught:
            answer.require_ok()
    assert caught.value.why == "Not Found"


async def test_small_answers_have_a_deadline(serve_steps: ServeSteps) -> None:
    async with serve_steps([1.0]) as url, open_client(Endpoint(url), Timeouts(answer_s=0.1)) as client:
        with pytest.raises(ServerError, match="does not answer") as caught:
            await client.fetch("/metrics", b"{}")
    assert caught.value.why == "no answer within 100 ms"


async def test_cancelling_closes_the_connection(serve_handler: Callable[..., AbstractAsyncContextManager[str]]) -> None:
    closed = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            closed.set()
            raise
        return web.Response()

    async with serve_handler(silent) as url:
        task = asyncio.create_task(ask(url))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(closed.wait(), 2)


async def test_key_and_large_body_arrive_and_the_client_reports_its_own_lag(
    serve_handler: Callable[..., AbstractAsyncContextManager[str]],
) -> None:
    seen: list[tuple[str | None, int]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.headers.get("Authorization"), len(await request.read())))
        await asyncio.sleep(0.1)
        return web.Response(body=delta("stop", content="a") + usage(1, 1) + DONE)

    async with serve_handler(answer) as url, open_client(Endpoint(url, "sk-1")) as client:
        result = await client.stream(PATH, b"x" * 5_000_000)
    assert seen == [("Bearer sk-1", 5_000_000)]
    assert result.failure is None
    assert result.event_loop_lag_p99_s is not None


async def test_an_answer_without_end_is_given_up(serve_answer: ServeAnswer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longreach.measure.client._MAX_ANSWER_BYTES", 1000)
    async with serve_answer(status=200, body=b"x" * 1001) as url, open_client(Endpoint(url)) as client:
        with pytest.raises(ServerError, match="answers without end"):
            await client.fetch("/v1/models")


@pytest.mark.parametrize("status", [401, 403])
async def test_a_server_that_wants_a_key_is_told_apart(serve_answer: ServeAnswer, status: int) -> None:
    async with serve_answer(status=status, body=b"no") as url, open_client(Endpoint(url)) as client:
        with pytest.raises(ServerError) as caught:
            (await client.fetch("/v1/models")).require_ok()
    assert "--api-key-env" in caught.value.fix


@pytest.mark.parametrize(
    ("scheme", "said", "words"),
    [
        ("http", b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP"),
        ("http", b"", "closed the connection"),
        ("http", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", "closed the connection"),
        ("https", b"HTTP/1.1 400 Bad Request\r\n\r\n", "begins with http://"),
    ],
    ids=["another protocol", "silent", "cut short", "no tls"],
)
async def test_what_is_no_such_server_is_told_in_plain_words(scheme: str, said: bytes, words: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(said)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, open_client(Endpoint(url)) as client:
        with pytest.raises(ServerError, match="does not answer") as caught:
            await client.fetch("/version")
    assert words in caught.value.why


async def test_a_refused_connection_is_told_in_the_words_of_the_system(unused_tcp_port: int) -> None:
    async with open_client(Endpoint(f"http://127.0.0.1:{unused_tcp_port}")) as client:
        with pytest.raises(ServerError) as caught:
            await client.fetch("/version")
    assert caught.value.why == "Connection refused"
