"""A thin client for OpenAI-compatible servers. It stamps the clock before it looks at what arrived, keeps two separate
time limits (a long prefill is silent for minutes, a pause in mid-answer is a fault), and takes no failure for a success:
an error event after HTTP 200, a broken connection and an answer without an end are failures with a name.
"""

import asyncio
import io
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace

import aiohttp

from longreach.errors import ServerError
from longreach.measure.endpoint import Endpoint
from longreach.measure.loop_lag import LoopLagMeter
from longreach.measure.reading import AnswerReader
from longreach.measure.stream import StreamFailure, StreamRecorder, StreamResult
from longreach.units import format_duration
from longreach.wire.refusals import ApiError, parse_error_body


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits in seconds. `first_token_s` covers upload, queueing and prefill; `stall_s` each pause after that."""

    connect_s: float = 10.0
    first_token_s: float = 3600.0
    stall_s: float = 120.0
    answer_s: float = 60.0  # small requests: models, metrics, tokenize


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer to a small request, whatever its status."""

    url: str
    status: int
    body: bytes
    content_type: str

    def require_ok(self) -> bytes:
        """The body of a 200; ServerError with the server's own words otherwise."""
        if self.status == 200:
            return self.body
        reason = parse_error_body(self.body, self.content_type).message or "it gave no reason"
        wants_key = self.status in _WANTS_KEY
        fix = (
            "--api-key-env NAME, the variable that holds the key"
            if wants_key
            else f"try it by hand: curl -i {self.url}"
        )
        raise ServerError(f"{self.url} answers HTTP {self.status}", reason, fix)


_NO_CONNECTION = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_WANTS_KEY = frozenset({401, 403})
_MAX_ANSWER_BYTES = 128 * 2**20  # the token ids of a million-token text are 8 MB
_MAX_REFUSAL_BYTES = 2**20

# asyncio asks for 256 KiB at each read; to make room for that costs two page faults, more than all else of a lone token.
_READ_BYTES = 2**16

# A server may close an idle connection at the very moment it is used again, which breaks a request that is in order; to
# send that again could hide a death. So each request has a connection of its own, unless that costs a TLS handshake.
_KEEP_ALIVE_S = 1.0


class _Socket(socket.socket):
    """Reads little at a time."""

    __slots__ = ()

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        return super().recv(min(bufsize, _READ_BYTES), flags)


class Client:
    """One server, one pool of connections. `open_client` makes it."""

    __slots__ = ("_session", "endpoint", "timeouts")

    def __init__(self, session: aiohttp.ClientSession, endpoint: Endpoint, timeouts: Timeouts) -> None:
        self._session = session
        self.endpoint = endpoint
        self.timeouts = timeouts

    async def fetch(self, path: str, body: bytes | None = None) -> Answer:
        """GET `path`, or POST JSON to it. ServerError when no answer comes, or one without end."""
        url = self.endpoint.root + path
        try:
            async with asyncio.timeout(self.timeouts.answer_s):
                async with self._session.get(url) if body is None else self._post(url, body) as response:
                    body_read = await _read_at_most(response, _MAX_ANSWER_BYTES + 1)
                    answer = Answer(url, response.status, body_read, response.content_type)
        except (aiohttp.ClientError, OSError) as error:
            raise self._no_answer(url, error) from error
        if len(answer.body) > _MAX_ANSWER_BYTES:
            raise ServerError(
                f"{url} answers without end", f"more than {_MAX_ANSWER_BYTES:,} bytes", "check the address"
            )
        return answer if answer.status == 200 else replace(answer, body=self.endpoint.hide_key(answer.body))

    def _no_answer(self, url: str, error: Exception) -> ServerError:
        """Its cause: `unreachable`, `silent`, or `broken` where somebody is there and breaks off."""
        if isinstance(error, _NO_CONNECTION):
            cause, reason = "unreachable", _reason(error)
        elif isinstance(error, TimeoutError):
            cause, reason = "silent", f"no answer within {format_duration(self.timeouts.answer_s)}"
        else:
            cause, reason = "broken", _reason(error)
        return ServerError(f"{url} does not answer", reason, f"check that the server runs: curl -i {url}", cause=cause)

    def _post(self, url: str, body: bytes) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        # A file object is sent in pieces; raw bytes of a long prompt would hold up the loop.
        return self._session.post(url, data=io.BytesIO(body), headers={"Content-Type": "application/json"})

    async def stream(self, path: str, body: bytes, lag: LoopLagMeter | None = None) -> StreamResult:
        """POST a request for a stream and follow it to its end. A failure is part of the result; only cancelling
        raises, and closes the connection so that the server stops working on it. `lag` is a meter that runs already,
        one for all requests of a run; without it each has its own.
        """
        if lag is None:
            async with LoopLagMeter() as own:
                return await self.stream(path, body, own)
        lag_before = lag.num_samples
        recorder = StreamRecorder(sent_stamp=time.perf_counter())
        reader = AnswerReader(recorder, self.timeouts.first_token_s, self.timeouts.stall_s)
        failure = await self._follow(self.endpoint.root + path, body, reader)
        if failure is not None:
            said = replace(failure.error, message=self.endpoint.hide_key(failure.error.message.encode()).decode())
            failure = replace(failure, error=said)
        return recorder.finish(time.perf_counter(), failure, lag.compute_p99_since(lag_before))

    async def _follow(self, url: str, body: bytes, reader: AnswerReader) -> StreamFailure | None:
        try:
            async with reader, self._post(url, body) as response:
                if response.method != "POST":
                    return _explain_redirect(response)
                if response.status != 200:
                    return await _read_refusal(response)
                await reader.read(response.content.readany)
        except _NO_CONNECTION as error:
            return StreamFailure("unreachable", ApiError(_reason(error)))
        except (aiohttp.ClientError, OSError) as error:  # the reader's own TimeoutError is one, too
            if not reader.is_over:
                return StreamFailure("disconnected", ApiError(_reason(error)))
        return reader.failure


def _explain_redirect(response: aiohttp.ClientResponse) -> StreamFailure:
    """301, 302 and 303 turn a request into one for a page; 307 and 308 are followed."""
    first = response.history[0]
    root = str(response.url).partition("/v1/")[0]
    return StreamFailure("refused", ApiError(f"it redirects to another address: measure {root}"), first.status)


async def _read_at_most(response: aiohttp.ClientResponse, num_bytes: int) -> bytes:
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) >= num_bytes:
            break
    return bytes(body[:num_bytes])


async def _read_refusal(response: aiohttp.ClientResponse) -> StreamFailure:
    error = parse_error_body(await _read_at_most(response, _MAX_REFUSAL_BYTES), response.content_type)
    return StreamFailure("refused", error, response.status)


def _reason(error: BaseException) -> str:
    """Why a connection failed or broke, in the words of the system rather than of the HTTP library."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its TLS certificate is not trusted: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return _reason_of_system(error.os_error)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return "no connection in time"
    if isinstance(error, aiohttp.ClientError) and "content-encoding" in str(error):
        return "its answer is compressed, which it was not asked for, and cannot be read"
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError | ConnectionResetError):
        return "the server closed the connection before its answer was complete"
    if isinstance(error, aiohttp.TooManyRedirects):
        return "it redirects in a circle"
    if isinstance(error, aiohttp.ClientResponseError):
        return "what answers there does not speak HTTP"
    return str(error) or type(error).__name__


def _reason_of_system(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        plain = " (a server without TLS? then its address begins with http://)" if "WRONG_VERSION" in str(error) else ""
        return f"no TLS connection: {(error.reason or str(error)).replace('_', ' ').lower()}{plain}"
    is_plain_number = error.errno is not None and error.errno > 0  # name resolution has negative ones
    return os.strerror(error.errno) if is_plain_number and error.errno else error.strerror or str(error)


def _open_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    return _Socket(*address[:3])


@asynccontextmanager
async def open_client(endpoint: Endpoint, timeouts: Timeouts | None = None) -> AsyncIterator[Client]:
    """A client that is closed, with every connection, when its block ends."""
    limits = timeouts or Timeouts()
    is_tls = endpoint.root.startswith("https:")
    session = aiohttp.ClientSession(
        headers={"Accept-Encoding": "identity", **endpoint.headers},  # what compresses a stream may hold tokens back
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=limits.connect_s),
        connector=aiohttp.TCPConnector(
            limit=0,
            force_close=not is_tls,
            keepalive_timeout=_KEEP_ALIVE_S if is_tls else None,
            socket_factory=_open_socket,
        ),
    )
    async with session:
        yield Client(session, endpoint, limits)
