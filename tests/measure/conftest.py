"""Servers of known truth, in process."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from tokenizers import Tokenizer, models

Step = bytes | float | None
"""One step of a scripted stream: bytes are sent, a float is a pause in seconds, None kills the connection."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serve(handler: Handler) -> AsyncIterator[str]:
    """Serve every path with `handler` on a free port of the loopback address; yields the root URL."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return await handler(request)  # a handler may be any object that is called

    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


async def play(request: web.Request, steps: list[Step]) -> web.StreamResponse:
    """Answer with HTTP 200 and a scripted event stream."""
    await request.read()
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for step in steps:
        if step is None:
            assert request.transport is not None
            request.transport.abort()
            return response
        if isinstance(step, bytes):
            await response.write(step)
        else:
            await asyncio.sleep(step)
    await response.write_eof()
    return response


@pytest.fixture
def serve_steps() -> Callable[[list[Step]], AbstractAsyncContextManager[str]]:
    """`async with serve_steps([...]) as url`: every request is answered with the scripted stream."""

    def start(steps: list[Step]) -> AbstractAsyncContextManager[str]:
        return serve(lambda request: play(request, steps))

    return start


@pytest.fixture
def serve_answer() -> Callable[..., AbstractAsyncContextManager[str]]:
    """`async with serve_answer(status=..., body=..., content_type=...) as url`: the same answer to everything."""

    def start(
        status: int = 200, body: bytes = b"", content_type: str = "text/plain"
    ) -> AbstractAsyncContextManager[str]:
        async def answer(request: web.Request) -> web.Response:
            await request.read()
            return web.Response(status=status, body=body, content_type=content_type)

        return serve(answer)

    return start


@pytest.fixture
def serve_handler() -> Callable[[Handler], AbstractAsyncContextManager[str]]:
    """`async with serve_handler(handler) as url`: a handler of the test's own."""
    return serve


@pytest.fixture
def wrong_tokenizer(tmp_path: Path) -> Path:
    """A folder with a tokenizer that is not the fake server's: one token a letter."""
    tokenizer = Tokenizer(models.BPE(vocab={chr(code): code for code in range(128)}, merges=[]))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path
