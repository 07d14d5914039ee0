"""Who answers: with a list of models, without one, behind a key, not at all."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
from aiohttp import web

from longreach.errors import ServerError
from longreach.measure.bench.reach import UNNAMED_MODEL, reach
from longreach.measure.bench.settings import BenchTarget
from longreach.measure.client import open_client
from longreach.measure.endpoint import read_endpoint

Serve = Callable[..., AbstractAsyncContextManager[str]]


async def test_a_server_without_a_list_of_models_is_taken_at_the_users_word(serve_answer: Serve) -> None:
    async with serve_answer(status=404) as url, open_client(read_endpoint(url)) as client:
        reached = await reach(client, BenchTarget(url, "mine"))
        with pytest.raises(ServerError, match="HTTP 404") as error:
            await reach(client, BenchTarget(url))
    assert (reached.model, reached.is_vllm, reached.error) == ("mine", False, None)
    assert "--model NAME" in error.value.fix


@pytest.mark.parametrize(
    "body", [b"<html>Sign in</html>", b'{"status": "ok"}', b'{"data": []}', b""], ids=["page", "json", "none", "empty"]
)
async def test_an_answer_that_lists_nothing_leaves_the_users_word(serve_answer: Serve, body: bytes) -> None:
    async with serve_answer(body=body) as url, open_client(read_endpoint(url)) as client:
        reached = await reach(client, BenchTarget(url, "mine"))
    assert (reached.model, reached.is_vllm, reached.error) == ("mine", False, None)


async def test_a_server_that_breaks_off_what_it_does_not_know_is_there(serve_handler: Serve) -> None:
    async def hang_up(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with serve_handler(hang_up) as url, open_client(read_endpoint(url)) as client:
        named = await reach(client, BenchTarget(url, "mine"))
        unnamed = await reach(client, BenchTarget(url))
    assert (named.model, named.error) == ("mine", None)
    assert unnamed.error is not None
    assert "closed the connection" in unnamed.error


@pytest.mark.parametrize("model", ["mine", None])
async def test_a_locked_server_asks_for_a_key(serve_answer: Serve, model: str | None) -> None:
    async with serve_answer(status=401) as url, open_client(read_endpoint(url)) as client:
        with pytest.raises(ServerError, match="HTTP 401") as error:
            await reach(client, BenchTarget(url, model))
    assert error.value.fix.startswith("--api-key-env NAME")
    assert "--model" not in error.value.fix


async def test_nobody_there_is_a_reason_and_no_error(unused_tcp_port_url: str) -> None:
    async with open_client(read_endpoint(unused_tcp_port_url)) as client:
        reached = await reach(client, BenchTarget(unused_tcp_port_url))
    assert (reached.model, reached.error) == (UNNAMED_MODEL, "Connection refused")
