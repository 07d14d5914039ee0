"""The tiny checkpoint on the real engine: it is loaded, it answers, and long prompts are counted and found again."""

import json
import random
import urllib.error
import urllib.request
from typing import Any

import pytest
from tests.engine.conftest import TinyServer
from tokenizers import Tokenizer

from longreach.engine.metrics import parse_metrics
from longreach.launch.tiny_model import DEFAULT_SHAPE

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(600)]

BLOCK_SIZE = 128  # tokens; what the CPU platform takes
KV_BYTES_PER_TOKEN = DEFAULT_SHAPE.num_layers * 2 * DEFAULT_SHAPE.num_kv_heads * DEFAULT_SHAPE.head_dim * 2
LONG_PROMPT_TOKENS = 32_768


def post(server: TinyServer, path: str, body: dict[str, object]) -> dict[str, Any]:
    request = urllib.request.Request(
        server.base_url + path,
        json.dumps({"model": server.model, "temperature": 0} | body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=240) as response:
        answer: dict[str, Any] = json.load(response)
    return answer


def draw_prompt(num_tokens: int, seed: int) -> list[int]:
    """Token ids of ordinary characters: half a character at the end of a prompt would colour the answer's text."""
    return random.Random(seed).choices(range(300, DEFAULT_SHAPE.vocab_size), k=num_tokens)


def test_chat_is_answered_through_the_template(tiny_server: TinyServer) -> None:
    answer = post(
        tiny_server,
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": "What is left of 1204 names?"}], "max_tokens": 24},
    )
    (choice,) = answer["choices"]
    tokenizer = Tokenizer.from_file(str(tiny_server.folder / "tokenizer.json"))
    prompt = "<|im_start|>user\nWhat is left of 1204 names?<|im_end|>\n<|im_start|>assistant\n"
    assert answer["usage"]["prompt_tokens"] == len(tokenizer.encode(prompt).ids)
    assert answer["usage"]["completion_tokens"] == 24
    assert choice["finish_reason"] == "length"
    assert choice["message"]["content"].isascii()


def test_token_ids_are_counted_one_for_one(tiny_server: TinyServer) -> None:
    answer = post(tiny_server, "/v1/completions", {"prompt": draw_prompt(1000, seed=1), "max_tokens": 8})
    assert answer["usage"]["prompt_tokens"] == 1000
    assert answer["usage"]["completion_tokens"] == 8


def test_long_prompt_is_computed_once_and_found_again(tiny_server: TinyServer) -> None:
    body = {"prompt": draw_prompt(LONG_PROMPT_TOKENS, seed=2), "max_tokens": 8}
    cold, warm = (post(tiny_server, "/v1/completions", body) for _ in range(2))
    assert cold["usage"]["prompt_tokens"] == warm["usage"]["prompt_tokens"] == LONG_PROMPT_TOKENS
    assert cold["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    # the last token is always computed, and with it its block
    assert warm["usage"]["prompt_tokens_details"]["cached_tokens"] == LONG_PROMPT_TOKENS - BLOCK_SIZE
    assert warm["choices"][0]["text"] == cold["choices"][0]["text"]


def test_prompt_above_the_limit_is_refused_at_once(tiny_server: TinyServer) -> None:
    prompt = draw_prompt(tiny_server.max_model_len + 1, seed=3)
    with pytest.raises(urllib.error.HTTPError, match="400") as refusal:
        post(tiny_server, "/v1/completions", {"prompt": prompt, "max_tokens": 1})
    with refusal.value as response:
        error = json.load(response)["error"]
    assert error["param"] == "input_tokens"
    assert f"maximum context length is {tiny_server.max_model_len} tokens" in error["message"]


def test_metrics_page_tells_the_capacity_of_this_shape(tiny_server: TinyServer) -> None:
    with urllib.request.urlopen(f"{tiny_server.base_url}/metrics", timeout=60) as response:
        metrics = parse_metrics(response.read().decode())
    (cache,) = metrics.cache
    tokens = tiny_server.kv_cache_memory_bytes // KV_BYTES_PER_TOKEN
    assert (cache.block_size, cache.num_gpu_blocks) == (BLOCK_SIZE, tokens // BLOCK_SIZE)
    assert cache.kv_cache_size_tokens == tokens
