"""Benchmarks of the real engine: prompts exact by its count, times and totals as its own metrics have them."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.engine.conftest import TinyServer

from longreach.errors import UsageError
from longreach.measure.bench.prepare import prepare_workload
from longreach.measure.bench.run import run_bench
from longreach.measure.bench.settings import BenchSettings, BenchTarget
from longreach.measure.bench.values import BenchResult, Load, PhaseReport
from longreach.measure.target import ExpectedServer
from longreach.measure.workload.wishes import ConversationSource, SyntheticSource, WorkloadWish

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]

BLOCK_SIZE = 128  # what the CPU platform takes


@pytest.fixture
def target(tiny_server: TinyServer) -> BenchTarget:
    """The shared engine with its own tokenizer."""
    expected = ExpectedServer(is_hybrid=False, is_deterministic=True)
    return BenchTarget(tiny_server.base_url, tiny_server.model, tokenizer=str(tiny_server.folder), expected=expected)


async def run(
    target: BenchTarget, source: SyntheticSource | ConversationSource, settings: BenchSettings
) -> BenchResult:
    workload = await prepare_workload(target, settings, WorkloadWish(source), lambda _: None)
    return await run_bench(target, settings, workload)


def check_counts(result: BenchResult, phase: PhaseReport) -> None:
    """The records of a phase add up to what the engine counted."""
    records = [record for record in result.records if record.phase == phase.name]
    assert phase.attributed
    assert phase.num_sent == phase.ttft_count == len(records)
    assert phase.prompt_tokens == sum(record.prompt_tokens or 0 for record in records)
    assert phase.generation_tokens == sum(record.output_tokens or 0 for record in records)
    assert phase.prefix_hit_tokens == sum(record.cached_tokens or 0 for record in records)


def beyond_agreement_s(result: BenchResult, phase: PhaseReport) -> float:
    """By how much the sum of first-token times exceeds 1 % + 50 ms over the engine's own; it cannot be below that."""
    ours = sum(record.ttft_s or 0.0 for record in result.records if record.phase == phase.name)
    assert phase.ttft_sum_s is not None
    assert phase.ttft_sum_s <= ours
    return ours - (phase.ttft_sum_s * 1.01 + 0.05)


@pytest.mark.parametrize(("length", "num_requests"), [(1_000, 2), (32_000, 2), (100_000, 1)])
async def test_prompts_are_as_long_as_asked_and_times_agree_with_the_engines_own(
    target: BenchTarget, length: int, num_requests: int
) -> None:
    beyond_s: list[float] = []
    while not beyond_s or (beyond_s[-1] > 0 and len(beyond_s) < 8):  # a busy machine may keep a client waiting
        result = await run(target, SyntheticSource(num_requests, length, 16), BenchSettings())
        assert [record.error for record in result.records] == [None] * num_requests
        assert {record.prompt_tokens for record in result.records} == {length}
        assert {record.output_tokens for record in result.records} == {16}
        assert {record.proof for record in result.records} == {"proven"}
        (phase,) = result.phases
        check_counts(result, phase)
        beyond_s.append(beyond_agreement_s(result, phase))
    assert beyond_s[-1] <= 0, beyond_s


async def test_cold_warm_and_evicted_are_proven_with_equal_answers(target: BenchTarget, tmp_path: Path) -> None:
    settings = BenchSettings(states=("cold", "warm", "evicted"), journal=tmp_path / "run.jsonl")
    result = await run(target, SyntheticSource(3, 4_000, 8), settings)
    by_state = {state: [r for r in result.counted if r.state == state] for state in ("cold", "warm", "evicted")}
    assert [len(records) for records in by_state.values()] == [3, 3, 3]
    assert {record.proof for record in result.counted} == {"proven"}
    assert {record.cached_tokens for record in by_state["warm"]} == {3_968}
    assert {record.hits_by_source for record in by_state["warm"]} == {(("device", 3_968),)}
    assert {record.cached_tokens for record in by_state["evicted"]} == {0}
    answers = [[record.answer_digest for record in records] for records in by_state.values()]
    assert answers[0] == answers[1] == answers[2]
    for phase in result.phases:
        check_counts(result, phase)


async def test_together_the_totals_are_the_engines_too(target: BenchTarget) -> None:
    settings = BenchSettings(load=Load("poisson", None, 20.0))
    result = await run(target, SyntheticSource(12, 1_500, 24, shared_prefix_tokens=1_000), settings)
    assert all(record.ok for record in result.records)
    assert sum(record.cached_tokens or 0 for record in result.records) >= 5 * 896  # all but those that came at once
    assert {record.proof for record in result.records} == {"proven"}  # no more than earlier requests brought
    check_counts(result, result.phases[0])


async def test_a_conversation_hits_what_its_last_turn_left(target: BenchTarget) -> None:
    source = ConversationSource(num_sessions=2, turns=3, first_tokens=2_000, turn_tokens=500, output_tokens=8)
    result = await run(target, source, BenchSettings(states=("as_it_comes",), load=Load(concurrency=2)))
    for session in (0, 1):
        turns = sorted((r for r in result.records if r.session == session), key=lambda record: record.index)
        assert [record.prompt_tokens for record in turns] == [2_000, 2_500, 3_000]
        for record in turns[1:]:
            assert record.cached_tokens is not None
            assert record.reusable_tokens is not None
            assert 0 <= record.reusable_tokens + result.header.template_tokens - record.cached_tokens < BLOCK_SIZE + 16
    check_counts(result, result.phases[0])


async def test_a_refusal_is_shown_in_the_engines_own_words(target: BenchTarget) -> None:
    settings = BenchSettings(extra_body={"temperature": -1})
    result = await run(target, SyntheticSource(1, 300, 4), settings)
    (record,) = result.records
    assert (record.ok, record.error_kind, record.error_status) == (False, "refused", 400)
    assert "temperature must be non-negative" in (record.error or "")


async def test_a_prompt_beyond_the_limit_is_refused_in_the_engines_own_words(
    target: BenchTarget, tiny_server: TinyServer
) -> None:
    result = await run(target, SyntheticSource(1, tiny_server.max_model_len + 1, 4), BenchSettings())
    (record,) = result.records
    assert (record.ok, record.error_kind, record.error_status) == (False, "refused", 400)
    assert f"{tiny_server.max_model_len}" in (record.error or "")


async def test_what_a_plan_rules_out_is_not_sent(target: BenchTarget, tiny_server: TinyServer) -> None:
    planned = replace(target.expected, max_model_len=tiny_server.max_model_len)
    source = SyntheticSource(1, 1_000, tiny_server.max_model_len - 999)
    with pytest.raises(UsageError, match="do not fit the server") as caught:
        await run(replace(target, expected=planned), source, BenchSettings())
    assert caught.value.fix == "--input-tokens 999"
