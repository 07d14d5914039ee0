"""A server of known truth, in this process on the loopback address: what a client measures can be held to what it did.

Its times are given, its counts are exact, its prefix cache holds blocks, its page of metrics counts as vLLM 0.32 does, and
everything it was asked is kept with the moments at which it answered. Each field of TruthMode breaks, withholds or slows
one thing; all else stays true.

    async with known_truth(TruthMode(ttft_s=0.2, early_role_chunk=True)) as server:
        ...server.url, server.requests, server.tokenizer_folder
"""

import asyncio
import atexit
import json
import re
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from aiohttp import web
from tests.measure.known_cache import BLOCK_SIZE, BYTES_PER_TOKEN, PrefixCache, Tier, VllmCounters
from tests.measure.known_words import MODEL, cut_answer, refuse, render_chunk, say_too_long, split_chunks, write_answer
from tokenizers import Tokenizer

from longreach.launch.tiny_model import write_tiny_model

__all__ = ["MODEL", "TEMPLATE_TOKENS", "KnownTruth", "SeenRequest", "TruthMode", "known_truth", "tiny_tokenizer_folder"]

TEMPLATE_TOKENS = 7  # that the chat template adds to every text
_BEFORE, _AFTER = (1, 300, 301, 302), (2, 1, 303)

Outcome = Literal["open", "answered", "refused", "error_event", "died", "stalled", "cancelled"]


@dataclass(frozen=True, slots=True)
class TruthMode:
    """What the server does. Times in seconds; counts of requests are of completions, the first is number 0."""

    ttft_s: float = 0.0  # before the first token, once a request is taken up
    itl_s: float = 0.0  # between tokens, however they are put into chunks
    prefill_s_per_token: float = 0.0  # on top of ttft_s, for tokens that are computed
    reload_s_per_token: float = 0.0  # on top of ttft_s, for tokens that come from host or disk
    max_num_seqs: int | None = None  # more wait in the queue
    tokens_per_chunk: int = 1  # of every chunk but the first, which has one: so speculation sends them
    early_role_chunk: bool = False  # at once, long before the first token
    num_reasoning_tokens: int = 0  # of the answer's first tokens
    num_answer_tokens: int | None = None  # ends by itself after so many; None: at the request's limit
    warm_answer: str | None = None  # what is answered when anything was hit
    error_after_tokens: int | None = None  # an error event, after HTTP 200
    die_after_tokens: int | None = None  # the socket is closed without an end
    stall_after_tokens: int | None = None  # nothing more comes
    dead_from_request: int | None = None  # connections are closed, new ones refused
    refuse_with: tuple[int, str] | None = None
    hangs_up: bool = False  # on all that is no completion
    with_usage: bool = True
    with_cached_tokens: bool = True
    with_metrics: bool = True
    with_sources: bool = True  # 0.32 counts cached tokens by source, older releases do not
    with_tokenize: bool = True
    with_models: bool = True
    with_root: bool = True  # /v1/models names the folder of the model, and so its tokenizer
    with_version: bool = True
    with_chat_template: bool = True
    template_grows: bool = False  # a count that no tokenizer can explain
    max_model_len: int | None = 65_536
    cache_blocks: int = 4_096
    host_blocks: int = 0  # 0: there is no such tier
    disk_blocks: int = 0
    caches: bool = True
    is_hybrid: bool = False
    num_preemptions: int = 0  # in each request
    other_requests: int = 0  # that somebody else finishes meanwhile


@dataclass(slots=True)
class SeenRequest:
    """One completion as the server saw it. Moments are of `time.perf_counter`, which the client reads too."""

    path: str
    body: dict[str, Any]
    arrived: float
    text: str = ""
    num_prompt_tokens: int = 0
    hits: dict[str, int] = field(default_factory=dict)
    first_token: float | None = None
    ended: float | None = None
    num_output_tokens: int = 0
    outcome: Outcome = "open"


@cache
def tiny_tokenizer_folder() -> Path:
    """A folder with the tiny model and its tokenizer, which is what the server counts with."""
    folder = Path(tempfile.mkdtemp(prefix="known_truth."))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return write_tiny_model(folder / "tiny")


@cache
def _tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(tiny_tokenizer_folder() / "tokenizer.json"))


class KnownTruth:
    """The server. `known_truth` starts it."""

    def __init__(self, mode: TruthMode, kill: Callable[[], object]) -> None:
        self.mode = mode
        self.url = ""
        self.requests: list[SeenRequest] = []
        self.counters = VllmCounters()
        sizes = {"device": mode.cache_blocks if mode.caches else 0, "host": mode.host_blocks, "disk": mode.disk_blocks}
        tiers = {name: Tier(size) for name, size in sizes.items() if size or name == "device"}
        self.cache = PrefixCache(tiers, is_hybrid=mode.is_hybrid)
        self._seats = asyncio.Semaphore(mode.max_num_seqs or 1_000_000)
        self._kill = kill
        self._is_dead = False

    @property
    def tokenizer_folder(self) -> Path:
        """What `--tokenizer` is to name."""
        return tiny_tokenizer_folder()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Every path."""
        arrived = time.perf_counter()
        body = json.loads(await request.read() or b"{}")
        is_completion = request.path in {"/v1/chat/completions", "/v1/completions"}
        if is_completion:
            self.requests.append(SeenRequest(request.path, body, arrived))
            if self.mode.dead_from_request is not None and len(self.requests) > self.mode.dead_from_request:
                self._is_dead = True
                self._kill()
        if self.mode.hangs_up and not is_completion:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if self._is_dead:
            return web.Response()  # to nobody
        return (
            await self._complete(request, self.requests[-1])
            if is_completion
            else self._answer_small(request.path, body)
        )

    def _answer_small(self, path: str, body: dict[str, Any]) -> web.Response:
        mode = self.mode
        match path:
            case "/v1/models" if mode.with_models:
                root = str(self.tokenizer_folder) if mode.with_root else None
                entry = {"id": MODEL, "max_model_len": mode.max_model_len, "root": root}
                return web.json_response({"object": "list", "data": [entry]})
            case "/version" if mode.with_version:
                return web.json_response({"version": "0.32.0"})
            case "/health":
                return web.Response()
            case "/metrics" if mode.with_metrics:
                return web.Response(text=self._render_metrics())
            case "/tokenize" if mode.with_tokenize:
                ids = self._read_prompt(body)[1]
                return web.json_response({"count": len(ids), "max_model_len": mode.max_model_len, "tokens": ids})
        return web.json_response({"detail": "Not Found"}, status=404)

    async def _complete(self, request: web.Request, seen: SeenRequest) -> web.StreamResponse:
        try:
            if (refusal := self._refuse(seen.body)) is not None:
                seen.outcome = "refused"
                return refusal
            seen.text, ids = self._read_prompt(seen.body)
            seen.num_prompt_tokens = len(ids)
            if (limit := self.mode.max_model_len) is not None and len(ids) >= limit:
                seen.outcome = "refused"
                return refuse(400, say_too_long(limit, len(ids)), "input_tokens")
            return await self._take_up(request, seen, ids)
        except (asyncio.CancelledError, ConnectionError):
            if seen.outcome == "open":
                seen.outcome = "died" if self._is_dead else "cancelled"
            raise
        finally:
            seen.ended = time.perf_counter()

    def _refuse(self, body: dict[str, Any]) -> web.Response | None:
        if self.mode.refuse_with is not None:
            return refuse(*self.mode.refuse_with)
        if body.get("model", MODEL) != MODEL:
            return refuse(404, f"The model `{body['model']}` does not exist.", "model")
        if "messages" in body and not self.mode.with_chat_template:
            return refuse(400, "no chat template")
        return None

    def _read_prompt(self, body: dict[str, Any]) -> tuple[str, list[int]]:
        """The text and what the model reads; token ids are read as they are."""
        messages = body.get("messages")
        if messages is None and isinstance(body["prompt"], list):
            return "", body["prompt"]
        text = "".join(message["content"] for message in messages) if messages else body["prompt"]
        ids = _tokenizer().encode(text, add_special_tokens=False).ids
        grown = [305] * (len(text) // 10 if self.mode.template_grows else 0)
        return text, [*_BEFORE, *grown, *ids, *_AFTER] if messages else ids

    async def _take_up(self, request: web.Request, seen: SeenRequest, ids: list[int]) -> web.StreamResponse:
        counters = self.counters
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        if self.mode.early_role_chunk:
            await _send(response, render_chunk(seen.path, {"role": "assistant", "content": ""}))
        counters.num_waiting += 1
        try:
            await self._seats.acquire()
        finally:
            counters.num_waiting -= 1
        num_blocks = -(-len(ids) // BLOCK_SIZE)
        counters.num_running += 1
        counters.num_running_blocks += num_blocks
        try:
            return await self._generate(request, response, seen, ids)
        finally:
            self._seats.release()
            counters.num_running -= 1
            counters.num_running_blocks -= num_blocks

    async def _generate(
        self, request: web.Request, response: web.StreamResponse, seen: SeenRequest, ids: list[int]
    ) -> web.StreamResponse:
        mode, taken_up = self.mode, time.perf_counter()
        seen.hits = self.cache.take(str(seen.body.get("cache_salt", "")), ids) if mode.caches else {}
        device = seen.hits.get("device", 0)
        reloaded = sum(seen.hits.values()) - device
        self.counters.count_prompt(len(ids), seen.hits, is_offloading=len(self.cache.tiers) > 1)
        computed = len(ids) - device - reloaded
        first = taken_up + mode.ttft_s + mode.prefill_s_per_token * computed + mode.reload_s_per_token * reloaded
        limit = int(seen.body.get("max_tokens") or seen.body.get("max_completion_tokens") or 16)
        if mode.warm_answer is not None and any(seen.hits.values()):
            tokens, finish = cut_answer(mode.warm_answer.split(" "), limit)
        else:
            tokens, finish = write_answer(seen.text, mode.num_answer_tokens, limit)
        for chunk in split_chunks(tokens, mode.tokens_per_chunk):
            await asyncio.sleep(
                max(0.0, first + mode.itl_s * (seen.num_output_tokens + len(chunk) - 1) - time.perf_counter())
            )
            if (broken := await self._break(request, response, seen)) is not None:
                return broken
            self._count_chunk(seen, len(chunk))
            is_last = seen.num_output_tokens == len(tokens)
            await self._send_tokens(response, seen, chunk, finish if is_last else None)
        self._count_end(seen, taken_up, finish)
        if mode.with_usage:
            await _send(response, {"id": "c", "model": MODEL, "choices": [], "usage": self._usage(seen)})
        await response.write(b"data: [DONE]\n\n")
        seen.outcome = "answered"
        return response

    async def _break(
        self, request: web.Request, response: web.StreamResponse, seen: SeenRequest
    ) -> web.StreamResponse | None:
        """What goes wrong before the next chunk, if it is due."""
        mode, done = self.mode, seen.num_output_tokens
        if mode.error_after_tokens is not None and done >= mode.error_after_tokens:
            seen.outcome = "error_event"
            self.counters.add('request_success_total,finished_reason="error"')
            error = {"message": "Internal server error", "type": "InternalServerError", "param": None, "code": 500}
            await _send(response, {"error": error})
            await response.write(b"data: [DONE]\n\n")
            return response
        if mode.die_after_tokens is not None and done >= mode.die_after_tokens:
            seen.outcome = "died"
            assert request.transport is not None
            request.transport.abort()
            return response
        if mode.stall_after_tokens is not None and done >= mode.stall_after_tokens:
            seen.outcome = "stalled"
            await asyncio.Event().wait()
        return None

    async def _send_tokens(
        self, response: web.StreamResponse, seen: SeenRequest, tokens: Sequence[str], finish: str | None
    ) -> None:
        is_first = seen.num_output_tokens == len(tokens)
        is_reasoning = seen.num_output_tokens <= self.mode.num_reasoning_tokens
        said = {"reasoning" if is_reasoning else "content": "".join(tokens)}
        if is_first and not self.mode.early_role_chunk:
            said = {"role": "assistant", **said}
        await _send(response, render_chunk(seen.path, said, finish))

    def _count_chunk(self, seen: SeenRequest, num_tokens: int) -> None:
        now, counters = time.perf_counter(), self.counters
        counters.add("generation_tokens_total", num_tokens)
        if seen.first_token is None:
            seen.first_token = seen.ended = now
            counters.observe("time_to_first_token", now - seen.arrived)
        else:
            assert seen.ended is not None
            counters.observe("inter_token_latency", now - seen.ended)
            seen.ended = now
            if self.mode.tokens_per_chunk > 1:  # of each draft one token more than was accepted
                counters.add("spec_decode_num_drafts_total")
                counters.add("spec_decode_num_draft_tokens_total", num_tokens)
                counters.add("spec_decode_num_accepted_tokens_total", num_tokens - 1)
        seen.num_output_tokens += num_tokens

    def _count_end(self, seen: SeenRequest, taken_up: float, finish: str) -> None:
        counters = self.counters
        counters.add(f'request_success_total,finished_reason="{finish}"', 1 + self.mode.other_requests)
        counters.add("num_preemptions_total", self.mode.num_preemptions)
        counters.observe("request_queue_time", taken_up - seen.arrived)
        counters.observe("e2e_request_latency", time.perf_counter() - seen.arrived)

    def _usage(self, seen: SeenRequest) -> dict[str, object]:
        prompt, completion = seen.num_prompt_tokens, seen.num_output_tokens
        usage: dict[str, object] = {"prompt_tokens": prompt, "completion_tokens": completion}
        usage["total_tokens"] = prompt + completion
        usage["prompt_tokens_details"] = (
            {"cached_tokens": sum(seen.hits.values())} if self.mode.with_cached_tokens else None
        )
        return usage

    def _render_metrics(self) -> str:
        counters = self.counters
        if len(self.cache.tiers) > 1:
            loaded = counters.counts["external_prefix_cache_hits_total"] * BYTES_PER_TOKEN
            counters.counts["kv_offload_load_bytes_total"] = loaded
            counters.counts["kv_offload_store_bytes_total"] = (
                self.cache.num_stored_blocks * BLOCK_SIZE * BYTES_PER_TOKEN
            )
        page = counters.render(self.mode.cache_blocks, self.mode.max_model_len)
        return page if self.mode.with_sources else re.sub(r"(?m)^vllm:prompt_tokens_cached_by_source.*\n", "", page)


async def _send(response: web.StreamResponse, body: dict[str, Any]) -> None:
    await response.write(b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n")


@asynccontextmanager
async def known_truth(mode: TruthMode | None = None) -> AsyncIterator[KnownTruth]:
    """Serve on a free port; the server is gone, with what it had open, when the block ends."""
    tasks: set[asyncio.Task[None]] = set()

    def kill() -> None:
        for connection in runner.server.connections if runner.server else ():
            if connection.transport is not None:
                connection.transport.abort()
        tasks.add(asyncio.create_task(site.stop()))

    server = KnownTruth(mode or TruthMode(), kill)

    async def answer(request: web.Request) -> web.StreamResponse:
        return await server.answer(request)

    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    server.url = f"http://{host}:{port}"
    try:
        yield server
    finally:
        await asyncio.gather(*tasks)
        await runner.cleanup()
