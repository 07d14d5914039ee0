"""How a server of known truth words what it sends: answers, chunks as vLLM fills them in, refusals."""

import re
from collections.abc import Sequence
from random import Random

from aiohttp import web

MODEL = "known"
_WORDS = ("the", "lamp", "river", "reads", "slowly", "nine", "of", "harbour", "and", "glass", "turned", "away")


def write_answer(prompt: str, num_tokens: int | None, limit: int) -> tuple[list[str], str]:
    """An answer's tokens, no more than `limit`, and why it ends: the codes that the prompt hides, else words drawn from it,
    `num_tokens` or without an end.
    """
    codes = re.findall(r"access code of station \w+ is (\d+)", prompt)
    rng = Random(prompt)
    words = codes or [rng.choice(_WORDS) for _ in range(min(limit + 1, num_tokens or limit + 1))]
    return cut_answer(words, limit)


def cut_answer(words: Sequence[str], limit: int) -> tuple[list[str], str]:
    """One token a word, and the finish reason."""
    tokens = [word if place == 0 else f" {word}" for place, word in enumerate(words[:limit])]
    return tokens, "stop" if len(words) <= limit else "length"


def split_chunks(tokens: Sequence[str], tokens_per_chunk: int) -> list[Sequence[str]]:
    """The first token alone, the others by so many."""
    starts = range(1, len(tokens), tokens_per_chunk)
    return [tokens[:1], *(tokens[start : start + tokens_per_chunk] for start in starts)]


def render_chunk(path: str, said: dict[str, str], finish: str | None = None) -> dict[str, object]:
    """A chunk as vLLM fills it in."""
    is_chat = path == "/v1/chat/completions"
    content: dict[str, object] = {"delta": said} if is_chat else {"text": said.get("content", said.get("reasoning"))}
    choice = {"index": 0, **content, "logprobs": None, "finish_reason": finish, "token_ids": None}
    kind = "chat.completion.chunk" if is_chat else "text_completion"
    return {"id": "chatcmpl-8f2c", "object": kind, "created": 1_760_000_000, "model": MODEL, "choices": [choice]}


def refuse(status: int, message: str, param: str | None = None) -> web.Response:
    kind = {400: "BadRequestError", 404: "NotFoundError"}.get(status, "InternalServerError")
    error = {"message": message, "type": kind, "param": param, "code": status}
    return web.json_response({"error": error}, status=status)


def say_too_long(max_model_len: int, num_tokens: int) -> str:
    """In the words of vLLM 0.32."""
    return (
        f"This model's maximum context length is {max_model_len} tokens. However, your prompt contains {num_tokens} "
        "input tokens, which exceeds this limit even without any output tokens. "
        "Please reduce the length of the input prompt."
    )
