"""Verification of the real engine: exact, cold, warm, equal, refused in its own words, and stopped when nobody waits."""

import asyncio
import time
from pathlib import Path

import pytest
from tests.engine.conftest import TinyServer

from longreach.engine.metrics import EngineMetrics, delta
from longreach.launch.tiny_model import DEFAULT_SHAPE
from longreach.measure.client import open_client
from longreach.measure.endpoint import read_endpoint
from longreach.measure.metrics import fetch_metrics
from longreach.measure.progress import VerifyEvent
from longreach.measure.target import ExpectedServer, VerifySettings, VerifyTarget
from longreach.measure.verify import verify
from longreach.measure.verify_report import VerifyReport

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]

BLOCK_SIZE = 128  # what the CPU platform takes
BYTES_PER_TOKEN = DEFAULT_SHAPE.num_layers * 2 * DEFAULT_SHAPE.num_kv_heads * DEFAULT_SHAPE.head_dim * 2
NO_NEEDLES = "random weights answer nonsense"


@pytest.fixture
def target(tiny_server: TinyServer) -> VerifyTarget:
    """The shared engine, and what is known of it beforehand."""
    num_blocks = tiny_server.kv_cache_memory_bytes // (BLOCK_SIZE * BYTES_PER_TOKEN)
    expected = ExpectedServer(
        release="0.32.0",
        max_model_len=tiny_server.max_model_len,
        kv_capacity_tokens=num_blocks * BLOCK_SIZE,
        max_concurrency=num_blocks * BLOCK_SIZE / tiny_server.max_model_len,
        block_size=BLOCK_SIZE,
        num_blocks=num_blocks,
        kv_cache_dtype="auto",
        speculation=False,
        is_hybrid=False,
        is_deterministic=True,
    )
    return VerifyTarget(tiny_server.base_url, tiny_server.model, tokenizer=str(tiny_server.folder), expected=expected)


def evidence(report: VerifyReport, name: str) -> str:
    return next(item.evidence for item in report.items if item.name == name)


async def read_metrics(target: VerifyTarget) -> EngineMetrics:
    async with open_client(read_endpoint(target.base_url)) as client:
        metrics = await fetch_metrics(client)
    assert metrics is not None
    return metrics


async def test_a_long_prompt_is_exact_cold_and_then_warm_with_the_same_answer(target: VerifyTarget) -> None:
    settings = VerifySettings(prompt_tokens=32_768, output_tokens=16, needles_off_reason=NO_NEEDLES)
    report = await verify(target, settings)
    undecided = {item.name for item in report.items if item.verdict != "pass"}
    assert undecided == {"needles_found"}, report.items
    cold, warm = report.sends
    assert cold.usage is not None
    assert (cold.usage.prompt_tokens, cold.usage.completion_tokens) == (32_768, 16)
    assert (cold.cached_tokens, warm.cached_tokens) == (0, 32_768 - BLOCK_SIZE)
    assert warm.counters is not None
    assert warm.counters.hits_by_source == (("device", 32_768 - BLOCK_SIZE),)
    assert cold.content == warm.content != ""
    assert (
        cold.itl_s is None or cold.itl_s > 0
    )  # a starved client may get all 16 tokens in one chunk: then there is no gap


@pytest.mark.parametrize("num_tokens", [1_000, 1_001, 4_099])
async def test_without_a_tokenizer_here_the_engine_counts_and_it_is_as_exact(
    target: VerifyTarget, num_tokens: int
) -> None:
    settings = VerifySettings(prompt_tokens=num_tokens, output_tokens=4)
    report = await verify(VerifyTarget(target.base_url, expected=target.expected), settings)
    assert evidence(report, "prompt_exact").startswith(f"{num_tokens:,} counted, {num_tokens:,} wanted")
    assert report.prompt is not None
    assert report.prompt.tokenizer == "the server's own /tokenize"


async def test_token_ids_are_exact_and_our_first_token_is_the_engine_s_own(target: VerifyTarget) -> None:
    settings = VerifySettings(prompt_tokens=8_192, output_tokens=4, api="completions", needles_off_reason=NO_NEEDLES)
    before = await read_metrics(target)
    report = await verify(target, settings)
    change = delta(before, await read_metrics(target))
    assert report.num_failed == 0, report.items
    assert change.prompt_tokens == 2 * 8_192
    assert change.ttft_sum_s is not None
    ours = sum(send.ttft_s or 0.0 for send in report.sends)
    assert change.ttft_sum_s <= ours <= sum(send.e2e_latency_s for send in report.sends)  # HTTP comes on top


async def test_a_prompt_beyond_the_limit_shows_the_engine_s_own_words(
    target: VerifyTarget, tiny_server: TinyServer
) -> None:
    limit = tiny_server.max_model_len
    report = await verify(target, VerifySettings(prompt_tokens=limit + 1, output_tokens=4))
    assert f"maximum context length is {limit} tokens" in evidence(report, "requests_complete")
    assert report.sends[0].failure is not None
    assert report.sends[0].failure.status == 400
    assert [send.label for send in report.sends] == ["cold"]


async def test_the_users_own_text_is_cold_and_then_warm(target: VerifyTarget, tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_text("The same words again and again. " * 200, encoding="utf-8")
    for _ in range(2):  # the second verification is cold as well, although the engine knows the text
        report = await verify(target, VerifySettings(prompt_file=path, output_tokens=4))
        assert report.num_failed == 0, report.items
        assert report.sends[0].cached_tokens == 0


async def test_cancelling_stops_the_engine_s_work(target: VerifyTarget) -> None:
    sending = asyncio.Event()

    def watch(event: VerifyEvent) -> None:
        if event.phase == "send":
            sending.set()

    settings = VerifySettings(prompt_tokens=32_768, output_tokens=512, extra_body={"ignore_eos": True})
    task = asyncio.create_task(verify(target, settings, watch))
    await asyncio.wait_for(sending.wait(), 60)
    await asyncio.sleep(0.5)
    task.cancel()
    report = await task
    assert report.interrupted
    assert report.sends == ()
    deadline = time.monotonic() + 60
    while (await read_metrics(target)).num_running:
        assert time.monotonic() < deadline, "the engine still works on a request that nobody waits for"
        await asyncio.sleep(0.2)
