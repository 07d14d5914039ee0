"""A small server that behaves as vLLM does in what `verify` looks at: counts, prefix cache by blocks, metrics, refusals.

Tokens are words, signs and line ends. Every option breaks or withholds one thing; all else stays true.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from aiohttp import web

BLOCK_SIZE = 16
TEMPLATE_TOKENS = 7
CACHE_CONFIG = (
    'engine="0",block_size="16",num_gpu_blocks="512",cache_dtype="auto",'
    'kv_cache_size_tokens="8192",kv_cache_max_concurrency="2.0"'
)


@dataclass
class FakeVllm:
    """The options are fixed at the start; the counters move."""

    max_model_len: int | None = 4096
    reports_cached_tokens: bool = True
    reports_usage: bool = True
    has_chat_template: bool = True
    has_metrics: bool = True
    has_tokenize: bool = True
    first_repeat_misses: bool = False  # as hybrids do
    caches: bool = True
    counts_by_source: bool = True
    warm_answer: str | None = None
    template_grows: bool = False  # a count that no tokenizer can explain
    other_requests: int = 0  # finished by somebody else during each of ours
    draft_tokens: int | None = None  # proposed in each request; every second one is accepted
    preemptions: int = 0
    pause_s: float = 0.0  # before everything
    prefill_s_per_token: float = 0.0  # for each token that is not cached
    seen: set[tuple[str, ...]] = field(default_factory=set)
    bodies: list[dict[str, object]] = field(default_factory=list)
    cancelled: int = 0
    finished: int = 0
    queries: int = 0
    hits: int = 0

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Every path."""
        body = json.loads(await request.read() or b"{}")
        match request.path:
            case "/v1/models":
                return web.json_response({"data": [{"id": "fake", "max_model_len": self.max_model_len}]})
            case "/version":
                return web.json_response({"version": "0.32.0+fake"})
            case "/metrics" if self.has_metrics:
                return web.Response(text=self._metrics())
            case "/tokenize" if self.has_tokenize:
                return web.json_response({"tokens": list(range(len(tokenize(body["prompt"]))))})
            case "/v1/chat/completions" | "/v1/completions":
                return await self._complete(request, body)
        return web.json_response({"detail": "Not Found"}, status=404)

    async def _complete(self, request: web.Request, body: dict[str, object]) -> web.StreamResponse:
        self.bodies.append(body)
        if not self.has_chat_template and "messages" in body:
            return web.json_response({"error": {"message": "no chat template"}}, status=400)
        text, tokens = self._read_prompt(body)
        if self.max_model_len is not None and len(tokens) + 1 > self.max_model_len:
            message = f"This model's maximum context length is {self.max_model_len} tokens."
            error = {"message": message, "type": "BadRequestError", "param": "input_tokens", "code": 400}
            return web.json_response({"error": error}, status=400)
        try:
            await asyncio.sleep(self.pause_s)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        cached = self._count_hits(str(body.get("cache_salt", "")), tokens)
        await asyncio.sleep(self.prefill_s_per_token * (len(tokens) - cached))
        answer = " ".join(re.findall(r"access code of station \w+ is (\d+)", text)) or "It is about a notebook."
        if cached and self.warm_answer is not None:
            answer = self.warm_answer
        self.finished += 1 + self.other_requests
        return await self._stream(request, answer.split(" "), len(tokens), cached)

    def _read_prompt(self, body: dict[str, object]) -> tuple[str, Sequence[str]]:
        if isinstance(body.get("prompt"), list):
            return "", [str(token) for token in body["prompt"]]  # type: ignore[attr-defined] # checked just above
        messages = body.get("messages")
        text = str(messages[0]["content"] if isinstance(messages, list) else body["prompt"])
        extra = len(text) if self.template_grows else TEMPLATE_TOKENS
        return text, ["<user>"] * extra + tokenize(text)

    def _count_hits(self, salt: str, tokens: Sequence[str]) -> int:
        """Whole blocks seen before, as a chain from the start; the last token is always computed."""
        chain = [(salt, *tokens[:end]) for end in range(BLOCK_SIZE, len(tokens), BLOCK_SIZE)]
        keys = [(str(len(blocks)), str(hash(blocks))) for blocks in chain]
        hits = next((place for place, key in enumerate(keys) if key not in self.seen), len(keys)) * BLOCK_SIZE
        if self.first_repeat_misses and hits > BLOCK_SIZE and ("twice", *keys[-1]) not in self.seen:
            self.seen.add(("twice", *keys[-1]))
            hits = 0
        if self.caches:
            self.seen.update(keys)
        self.queries += len(tokens)
        self.hits += hits
        return hits

    async def _stream(
        self, request: web.Request, words: Sequence[str], num_prompt: int, cached: int
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        is_chat = request.path.endswith("/chat/completions")
        for place, word in enumerate(words):
            piece = word if place == 0 else f" {word}"
            finish = "stop" if place == len(words) - 1 else None
            said: dict[str, object] = {"delta": {"content": piece}} if is_chat else {"text": piece}
            await self._event(response, {"choices": [{"index": 0, "finish_reason": finish, **said}]})
            await asyncio.sleep(0.002)
        usage: dict[str, object] = {"prompt_tokens": num_prompt, "completion_tokens": len(words)}
        if self.reports_cached_tokens:
            usage["prompt_tokens_details"] = {"cached_tokens": cached}
        if self.reports_usage:
            await self._event(response, {"choices": [], "usage": usage})
        await response.write(b"data: [DONE]\n\n")
        return response

    @staticmethod
    async def _event(response: web.StreamResponse, body: dict[str, object]) -> None:
        await response.write(b"data: " + json.dumps(body).encode() + b"\n\n")

    def _metrics(self) -> str:
        lines = [
            f'vllm:request_success_total{{engine="0",finished_reason="stop"}} {self.finished}.0',
            'vllm:num_requests_running{engine="0"} 0.0',
            'vllm:num_requests_waiting{engine="0"} 0.0',
            f'vllm:prefix_cache_queries_total{{engine="0"}} {self.queries}.0',
            f'vllm:prefix_cache_hits_total{{engine="0"}} {self.hits}.0',
            f'vllm:num_preemptions_total{{engine="0"}} {self.preemptions * self.finished}.0',
            f"vllm:cache_config_info{{{CACHE_CONFIG}}} 1.0",
        ]
        if self.counts_by_source:
            lines.append(f'vllm:prompt_tokens_cached_by_source_total{{engine="0",source="device"}} {self.hits}.0')
        if self.draft_tokens is not None:
            drafted = self.draft_tokens * self.finished
            lines += [
                f'vllm:spec_decode_num_drafts_total{{engine="0"}} {drafted // 2}.0',
                f'vllm:spec_decode_num_draft_tokens_total{{engine="0"}} {drafted}.0',
                f'vllm:spec_decode_num_accepted_tokens_total{{engine="0"}} {drafted // 2}.0',
            ]
        return "\n".join(lines) + "\n"


def tokenize(text: str) -> list[str]:
    """Words, signs and line ends."""
    return re.findall(r"\w+|[^\w\s]|\n", text)
