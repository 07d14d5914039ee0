"""The truth that others are held to, held to itself."""

import asyncio
from pathlib import Path

import pytest
from tests.measure.known_truth import MODEL, TEMPLATE_TOKENS, KnownTruth, TruthMode, known_truth
from tokenizers import Tokenizer

from longreach.engine.metrics import EngineMetrics, parse_metrics
from longreach.engine.prometheus import parse_samples
from longreach.measure.client import Client, open_client
from longreach.measure.endpoint import Endpoint
from longreach.measure.stream import StreamResult
from longreach.wire.bodies import parse_token_ids, render_chat_body

CORPUS = Path(__file__).parents[1] / "corpus" / "metrics"
TEXT = "The lamp reads the river, slowly. " * 20


async def ask(client: Client, text: str = TEXT, max_tokens: int = 10, **extra: object) -> StreamResult:
    return await client.stream("/v1/chat/completions", render_chat_body(MODEL, text, max_tokens, extra))


async def read_metrics(client: Client) -> EngineMetrics:
    return parse_metrics((await client.fetch("/metrics")).require_ok().decode())


def hits(server: KnownTruth) -> list[dict[str, int]]:
    return [{source: tokens for source, tokens in seen.hits.items() if tokens} for seen in server.requests]


async def test_prompts_are_counted_by_the_tokenizer_and_a_template() -> None:
    async with known_truth() as server, open_client(Endpoint(server.url)) as client:
        result = await ask(client)
        body = b'{"messages": [{"role": "user", "content": "The lamp"}]}'
        listed = parse_token_ids((await client.fetch("/tokenize", body)).require_ok())
    tokenizer = Tokenizer.from_file(str(server.tokenizer_folder / "tokenizer.json"))
    assert result.usage is not None
    assert result.usage.prompt_tokens == len(tokenizer.encode(TEXT).ids) + TEMPLATE_TOKENS
    assert result.usage.completion_tokens == 10
    assert result.finish_reason == "length"
    assert len(listed) == len(tokenizer.encode("The lamp").ids) + TEMPLATE_TOKENS


async def test_blocks_are_hit_again_and_a_salt_keeps_them_apart() -> None:
    async with known_truth() as server, open_client(Endpoint(server.url)) as client:
        results = [await ask(client, cache_salt=salt) for salt in ("", "", "a", "a")]
    whole = (server.requests[0].num_prompt_tokens - 1) // 16 * 16
    assert hits(server) == [{}, {"device": whole}, {}, {"device": whole}]
    assert [result.usage.cached_tokens for result in results if result.usage] == [0, whole, 0, whole]


async def test_what_the_device_loses_comes_back_from_host_then_disk() -> None:
    texts = [TEXT, *(f"{number} {TEXT}" for number in range(1, 6))]
    blocks = 24  # more than one of the texts, less than two
    mode = TruthMode(cache_blocks=blocks, host_blocks=2 * blocks, disk_blocks=20 * blocks)
    async with known_truth(mode) as server, open_client(Endpoint(server.url)) as client:
        for text in (*texts[:2], texts[0], *texts[1:], texts[0]):
            await ask(client, text)
        metrics = await read_metrics(client)
    assert set(hits(server)[2]) in ({"host"}, {"device", "host"})
    assert "disk" in hits(server)[-1]
    totals = {source: sum(seen.hits[source] for seen in server.requests) for source in ("device", "host", "disk")}
    assert dict(metrics.cached_tokens_by_source or ()) == totals
    assert metrics.external_hit_tokens == totals["host"] + totals["disk"]
    assert metrics.offload_load_bytes == (totals["host"] + totals["disk"]) * 512


async def test_hybrids_hit_on_the_third_sending() -> None:
    async with known_truth(TruthMode(is_hybrid=True)) as server, open_client(Endpoint(server.url)) as client:
        for _ in range(3):
            await ask(client)
    assert [bool(found) for found in hits(server)] == [False, False, True]


async def test_counters_are_those_of_the_requests() -> None:
    mode = TruthMode(ttft_s=0.02, itl_s=0.001, tokens_per_chunk=3)
    async with known_truth(mode) as server, open_client(Endpoint(server.url)) as client:
        for _ in range(2):
            await ask(client)
        metrics = await read_metrics(client)
    assert metrics.num_finished == 2
    assert metrics.generation_tokens == 20
    assert metrics.prompt_tokens == sum(seen.num_prompt_tokens for seen in server.requests)
    assert metrics.ttft_sum_s == pytest.approx(sum((seen.first_token or 0) - seen.arrived for seen in server.requests))
    assert metrics.acceptance_rate == pytest.approx(2 / 3)


async def test_the_page_has_the_names_of_a_real_one() -> None:
    async with known_truth() as server, open_client(Endpoint(server.url)) as client:
        await ask(client)
        page = (await client.fetch("/metrics")).body.decode()
    real = (CORPUS / "0.32.0-cpu-dense.txt").read_text(encoding="utf-8")
    assert {sample.name for sample in parse_samples(page)} <= {sample.name for sample in parse_samples(real)}


async def test_more_than_the_seats_wait() -> None:
    mode = TruthMode(ttft_s=0.05, max_num_seqs=1)
    async with known_truth(mode) as server, open_client(Endpoint(server.url)) as client:
        await asyncio.gather(ask(client), ask(client, "other"))
        metrics = await read_metrics(client)
    first, second = server.requests
    assert (second.first_token or 0) - (first.first_token or 0) >= 0.05
    assert (metrics.queue_sum_s or 0) >= 0.05


async def test_a_dead_server_answers_nothing_more() -> None:
    async with known_truth(TruthMode(dead_from_request=1)) as server, open_client(Endpoint(server.url)) as client:
        results = [await ask(client) for _ in range(3)]
    kinds = [result.failure.kind if result.failure else None for result in results]
    assert kinds == [None, "disconnected", "unreachable"]


async def test_prompts_beyond_the_limit_are_refused_in_vllms_words() -> None:
    async with known_truth(TruthMode(max_model_len=64)) as server, open_client(Endpoint(server.url)) as client:
        failure = (await ask(client)).failure
    assert failure is not None
    assert failure.status == 400
    assert "maximum context length is 64 tokens" in failure.error.message
    assert server.requests[0].outcome == "refused"
