"""Runs against a server of known truth: what the records say is what it did."""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.measure.known_truth import MODEL, KnownTruth, TruthMode, known_truth

from longreach.errors import ServerError, UsageError
from longreach.measure.bench.events import BenchEvent
from longreach.measure.bench.journal import read_journal
from longreach.measure.bench.prepare import choose_salt, prepare_workload
from longreach.measure.bench.run import run_bench
from longreach.measure.bench.settings import BenchSettings, BenchTarget
from longreach.measure.bench.values import BenchResult, Load, RequestRecord
from longreach.measure.target import ExpectedServer
from longreach.measure.workload.values import Workload
from longreach.measure.workload.wishes import ConversationSource, SyntheticSource, TextSource, WorkloadWish

FOUR = SyntheticSource(num_requests=4, input_tokens=300, output_tokens=8)


def target_of(server: KnownTruth, **changes: Any) -> BenchTarget:
    return replace(BenchTarget(server.url, MODEL, tokenizer=str(server.tokenizer_folder)), **changes)


async def build(server: KnownTruth, source: SyntheticSource | ConversationSource = FOUR) -> Workload:
    return await prepare_workload(target_of(server), BenchSettings(), WorkloadWish(source), lambda _: None)


async def run(server: KnownTruth, source: SyntheticSource | ConversationSource = FOUR, **settings: Any) -> BenchResult:
    return await run_bench(target_of(server), BenchSettings(**settings), await build(server, source))


def of_state(result: BenchResult, state: str) -> list[RequestRecord]:
    return [record for record in result.counted if record.state == state]


def check_against(server: KnownTruth, records: Sequence[RequestRecord]) -> None:
    """Counts as the server had them, times no shorter than its own."""
    for record, seen in zip(records, server.requests[-len(records) :], strict=True):
        assert seen.first_token is not None
        assert (record.prompt_tokens, record.output_tokens) == (seen.num_prompt_tokens, seen.num_output_tokens)
        assert record.cached_tokens == sum(seen.hits.values())
        assert record.ttft_s is not None
        assert record.ttft_s >= seen.first_token - seen.arrived


async def test_a_cold_run_is_exact_and_proven_cold() -> None:
    async with known_truth() as server:
        result = await run(server)
        assert len(result.records) == result.num_wanted == 4
        check_against(server, result.records)
    assert {record.prompt_tokens for record in result.records} == {300}
    assert {record.output_tokens for record in result.records} == {8}
    assert {record.proof for record in result.records} == {"proven"}
    assert not result.interrupted
    (phase,) = result.phases
    assert phase.attributed
    assert (phase.num_sent, phase.prompt_tokens, phase.generation_tokens) == (4, 1_200, 32)


async def test_vllm_is_told_the_length_of_the_answer_and_others_are_not() -> None:
    async with known_truth() as server, known_truth(TruthMode(with_version=False)) as other:
        await run(server)
        await run(other)
        await run(server, exact_output=False)
    told, untold, free = server.requests[0].body, other.requests[-1].body, server.requests[-1].body
    assert (told["ignore_eos"], told["min_tokens"], told["max_tokens"], told["temperature"]) == (True, 8, 8, 0)
    assert not {"ignore_eos", "min_tokens", "cache_salt"} & set(untold)
    assert not {"ignore_eos", "min_tokens"} & set(free)
    assert free["cache_salt"]


async def test_every_run_is_cold_although_the_text_is_the_same() -> None:
    async with known_truth() as server:
        first, second = await run(server), await run(server)
        texts = [seen.text for seen in server.requests]
    assert texts[:4] == texts[4:]
    assert first.header.cache_salt != second.header.cache_salt
    assert first.header.workload_digest == second.header.workload_digest
    assert {record.proof for record in second.records} == {"proven"}
    assert [record.answer_digest for record in first.records] == [record.answer_digest for record in second.records]


@pytest.mark.parametrize("with_version", [True, False], ids=["vllm", "another server"])
async def test_a_warm_up_comes_first_leaves_nothing_behind_and_is_in_no_figure(
    with_version: bool, tmp_path: Path
) -> None:
    journal = tmp_path / "run.jsonl"
    async with known_truth(TruthMode(with_version=with_version)) as server:
        workload = await build(server)
        settings = BenchSettings(Load(), ("cold", "warm"), num_warm_up=6, journal=journal)
        result = await run_bench(target_of(server), settings, workload)
        assert len(server.requests) == 6 + 4 + 4
        again = await run_bench(target_of(server), replace(settings, resume=True), workload)
        assert len(server.requests) == 6 + 4 + 4
    assert [phase.name for phase in result.header.phases] == ["warm-up", "cold", "warm 1"]
    assert [record.phase for record in result.records[:6]] == ["warm-up"] * 6
    assert {record.output_tokens for record in result.records} == {8}
    assert {record.proof for record in result.counted} == {"proven"}
    assert len(result.counted) == result.num_wanted == 8
    assert again.records == result.records


async def test_elsewhere_the_salt_is_in_the_text_and_a_resumed_run_keeps_it(tmp_path: Path) -> None:
    settings = BenchSettings(journal=tmp_path / "run.jsonl", resume=True)
    async with known_truth(TruthMode(with_version=False)) as server:

        async def measure(settings: BenchSettings) -> BenchResult:
            salted = choose_salt(settings)
            workload = await prepare_workload(target_of(server), salted, WorkloadWish(FOUR), lambda _: None)
            return await run_bench(target_of(server), salted, workload)

        first, resumed, other = [await measure(each) for each in (settings, settings, BenchSettings())]
    assert resumed.records == first.records
    assert other.header.workload_digest != first.header.workload_digest
    assert {record.proof for record in (*first.records, *other.records)} == {"proven"}


async def test_the_same_salt_meets_what_the_first_run_left_and_cold_is_disproven() -> None:
    async with known_truth() as server:
        await run(server, cache_salt="mine")
        result = await run(server, cache_salt="mine")
    assert {record.proof for record in result.records} == {"disproven"}


async def test_a_repeat_is_proven_warm_with_its_hits_by_source() -> None:
    async with known_truth() as server:
        result = await run(server, states=("cold", "warm"))
    assert [phase.name for phase in result.header.phases] == ["cold", "warm 1"]
    warm = of_state(result, "warm")
    assert {(record.cached_tokens, record.proof) for record in warm} == {(288, "proven")}
    assert {record.hits_by_source for record in warm} == {(("device", 288),)}
    assert [r.answer_digest for r in warm] == [r.answer_digest for r in of_state(result, "cold")]


async def test_a_hybrid_that_nobody_knows_gets_a_second_repeat_and_only_that_counts() -> None:
    events: list[BenchEvent] = []
    async with known_truth(TruthMode(is_hybrid=True)) as server:
        workload = await build(server)
        settings = BenchSettings(states=("cold", "warm"))
        result = await run_bench(target_of(server), settings, workload, events.append)
    assert [phase.name for phase in result.header.phases] == ["cold", "warm 1", "warm 2"]
    assert {record.phase for record in of_state(result, "warm")} == {"warm 2"}
    assert {record.proof for record in of_state(result, "warm")} == {"proven"}
    assert result.num_wanted == len(result.counted) == 8
    assert any("second one" in event.say for event in events)
    assert events[-1].step == "finished"


async def test_a_model_known_to_be_dense_gets_no_second_repeat() -> None:
    async with known_truth(TruthMode(caches=False)) as server:
        target = target_of(server, expected=ExpectedServer(is_hybrid=False))
        result = await run_bench(target, BenchSettings(states=("cold", "warm")), await build(server))
    assert [phase.name for phase in result.header.phases] == ["cold", "warm 1"]
    assert {record.proof for record in of_state(result, "warm")} == {"disproven"}


@pytest.mark.parametrize(
    ("mode", "cached", "sources"),
    [
        (TruthMode(cache_blocks=100, host_blocks=400), 288, (("host", 288),)),
        (TruthMode(cache_blocks=100, host_blocks=60, disk_blocks=400), 288, (("disk", 288),)),
        (TruthMode(cache_blocks=100), 0, ()),
    ],
    ids=["from host", "from disk", "from nowhere"],
)
async def test_after_a_flood_prompts_come_back_from_outside_the_gpu(
    mode: TruthMode, cached: int, sources: tuple[tuple[str, int], ...]
) -> None:
    async with known_truth(mode) as server:
        result = await run(server, states=("cold", "evicted"))
    evicted = of_state(result, "evicted")
    assert len(evicted) == 4
    assert {record.proof for record in evicted} == {"proven"}
    assert {(record.cached_tokens, record.hits_by_source) for record in evicted} == {(cached, sources)}
    flood = [record for record in result.records if record.state == "flood"]
    assert sum(record.prompt_tokens or 0 for record in flood) >= 100 * 16
    assert {record.output_tokens for record in flood} == {1}


async def test_a_run_that_is_cut_off_while_it_evicts_floods_again(tmp_path: Path) -> None:
    settings = BenchSettings(states=("cold", "evicted"), journal=tmp_path / "run.jsonl")
    async with known_truth(TruthMode(cache_blocks=100, host_blocks=400, ttft_s=0.02)) as server:
        workload = await build(server)
        num_before = len(server.requests) + 4 + 6
        task = asyncio.create_task(run_bench(target_of(server), settings, workload))
        while len(server.requests) < num_before + 2:  # noqa: ASYNC110 - a server has no event to wait for
            await asyncio.sleep(0.002)
        task.cancel()
        assert (await task).interrupted
        result = await run_bench(target_of(server), replace(settings, resume=True), workload)
    assert {record.proof for record in of_state(result, "evicted")} == {"proven"}
    assert len(of_state(result, "evicted")) == 4
    assert [phase.num_sent for phase in result.phases if phase.state == "flood"] == [6, 6]


async def test_a_flood_that_is_too_small_is_found_out() -> None:
    async with known_truth(TruthMode(cache_blocks=400)) as server:
        result = await run(server, states=("cold", "evicted"), flood_tokens=300)
    assert {record.proof for record in of_state(result, "evicted")} == {"disproven"}


async def test_without_cached_tokens_in_usage_the_metrics_stand_in_while_nothing_else_runs() -> None:
    async with known_truth(TruthMode(with_cached_tokens=False)) as server:
        alone = await run(server, states=("cold", "warm"))
        together = await run(server, states=("cold", "warm"), load=Load(concurrency=2))
    assert {record.cached_tokens_source for record in alone.records} == {"metrics"}
    assert {record.proof for record in of_state(alone, "warm")} == {"proven"}
    assert {record.proof for record in of_state(together, "warm")} == {"unattributed"}


async def test_a_server_that_others_use_too_is_not_attributed() -> None:
    async with known_truth(TruthMode(with_cached_tokens=False, other_requests=1)) as server:
        result = await run(server)
    assert {record.proof for record in result.records} == {"unattributed"}
    assert not result.phases[0].attributed


async def test_a_closed_loop_fills_its_seats_and_an_open_one_knows_what_was_due() -> None:
    source = replace(FOUR, num_requests=8)
    async with known_truth(TruthMode(ttft_s=0.05)) as server:
        closed = await run(server, source, load=Load(concurrency=4))
        opened = await run(server, source, load=Load("constant", None, 400.0))
    assert {record.due_s for record in closed.records} == {None}
    by_time = sorted(closed.records, key=lambda record: record.sent_s)
    fourth = by_time[3]
    assert all(fourth.sent_s < record.sent_s + record.e2e_latency_s for record in by_time[:3])
    due = sorted(record.due_s for record in opened.records if record.due_s is not None)
    assert [later - earlier for earlier, later in itertools.pairwise(due)] == pytest.approx([1 / 400] * 7)
    assert all(record.due_s is not None and record.sent_s >= record.due_s for record in opened.records)


async def test_turns_of_a_conversation_follow_each_other_and_use_what_was_cached() -> None:
    source = ConversationSource(num_sessions=2, turns=3, first_tokens=300, turn_tokens=100, output_tokens=4)
    async with known_truth() as server:
        result = await run(server, source, states=("as_it_comes",), load=Load(concurrency=4))
    for session in (0, 1):
        turns = sorted((r for r in result.records if r.session == session), key=lambda record: record.index)
        assert [record.prompt_tokens for record in turns] == [300, 400, 500]
        assert all(a.sent_s + a.e2e_latency_s <= b.sent_s for a, b in itertools.pairwise(turns))
        assert all((b.cached_tokens or 0) > 200 for b in turns[1:])
        assert {record.proof for record in turns} == {None}


@pytest.mark.parametrize(
    ("mode", "kind", "status", "words"),
    [
        (TruthMode(error_after_tokens=5), "error_event", 200, "Internal server error"),
        (TruthMode(die_after_tokens=5), "disconnected", None, "closed the connection"),
        (TruthMode(refuse_with=(400, "too long, says the server")), "refused", 400, "too long, says the server"),
    ],
    ids=["error event", "death", "refusal"],
)
async def test_a_failure_is_a_failure_with_the_servers_words(
    mode: TruthMode, kind: str, status: int | None, words: str
) -> None:
    async with known_truth(mode) as server:
        result = await run(server)
    assert [record.ok for record in result.records] == [False] * 4
    for record in result.records:
        assert (record.error_kind, record.error_status, record.answer_digest) == (kind, status, None)
        assert words in (record.error or "")


async def test_a_stalled_answer_fails_by_its_own_limit() -> None:
    async with known_truth(TruthMode(stall_after_tokens=3)) as server:
        settings = BenchSettings()
        settings = replace(settings, timeouts=replace(settings.timeouts, stall_s=0.1))
        result = await run_bench(target_of(server), settings, await build(server, replace(FOUR, num_requests=1)))
    assert [record.error_kind for record in result.records] == ["stall_timeout"]


async def test_a_server_that_dies_fails_the_rest_fast_and_all_of_it_is_recorded() -> None:
    source = replace(FOUR, num_requests=12)
    async with known_truth(TruthMode(dead_from_request=2)) as server:
        workload = await build(server, source)
        settings = BenchSettings(load=Load("constant", None, 0.2))  # 55 s, if the rest were waited for
        result = await asyncio.wait_for(run_bench(target_of(server), replace(settings, load=Load()), workload), 20)
        assert len(server.requests) == 3
    assert [record.ok for record in result.records] == [True, True, *[False] * 10]
    assert {record.error_kind for record in result.records[3:]} == {"unreachable"}
    assert "not sent" in (result.records[-1].error or "")


async def test_a_server_that_was_never_there_fails_everything(unused_tcp_port_url: str) -> None:
    target = BenchTarget(unused_tcp_port_url)
    wish = WorkloadWish(replace(FOUR, num_requests=3))
    workload = await prepare_workload(target, BenchSettings(), wish, lambda _: None)
    settings = BenchSettings(states=("cold", "warm"), load=Load("constant", None, 0.01))
    result = await asyncio.wait_for(run_bench(target, settings, workload), 20)
    assert [record.error_kind for record in result.records] == ["unreachable"] * 6
    assert {record.wanted_prompt_tokens for record in result.records} == {300}
    assert len(result.counted) == result.num_wanted == 6


async def test_text_for_nobody_names_the_server_not_the_tokenizer(unused_tcp_port_url: str, tmp_path: Path) -> None:
    target, wish = BenchTarget(unused_tcp_port_url), WorkloadWish(TextSource(tmp_path, 8))
    with pytest.raises(ServerError, match="the server does not answer"):
        await prepare_workload(target, BenchSettings(), wish, lambda _: None)


async def test_a_server_that_hangs_up_on_every_other_question_is_measured_all_the_same() -> None:
    async with known_truth(TruthMode(hangs_up=True)) as server:
        result = await run(server)
        check_against(server, result.records)
    assert {(record.ok, record.prompt_tokens) for record in result.records} == {(True, 300)}


async def test_a_server_that_comes_up_after_the_prompts_were_due_is_sent_nothing(unused_tcp_port_url: str) -> None:
    workload = await prepare_workload(
        BenchTarget(unused_tcp_port_url), BenchSettings(), WorkloadWish(FOUR), lambda _: None
    )
    async with known_truth() as server:
        result = await run_bench(target_of(server), BenchSettings(), workload)
        assert server.requests == []
    assert {record.error for record in result.records} == {"not sent: Connection refused"}


async def test_what_cannot_be_flooded_is_refused_before_the_prompts_are_made() -> None:
    async with known_truth(TruthMode(with_metrics=False)) as server:
        settings = BenchSettings(states=("cold", "evicted"))
        with pytest.raises(UsageError, match="how much it takes to evict"):
            await prepare_workload(target_of(server), settings, WorkloadWish(FOUR), lambda _: None)
        assert server.requests == []


async def test_a_model_that_is_not_served_is_said_before_anything_is_sent() -> None:
    async with known_truth() as server:
        workload = await build(server)
        num_requests = len(server.requests)
        with pytest.raises(ServerError, match="does not serve 'other'"):
            await run_bench(target_of(server, model="other"), BenchSettings(), workload)
        assert len(server.requests) == num_requests


async def test_a_server_without_a_list_of_models_metrics_and_usage_is_measured_all_the_same() -> None:
    mode = TruthMode(with_models=False, with_metrics=False, with_version=False, with_tokenize=False, with_usage=False)
    async with known_truth(mode) as server:
        result = await run(server)
        with pytest.raises(ServerError) as error:
            await run_bench(target_of(server, model=None), BenchSettings(), await build(server))
    assert "--model NAME" in error.value.fix
    assert [record.ok for record in result.records] == [True] * 4
    assert {(record.prompt_tokens, record.output_tokens, record.itl_s) for record in result.records} == {
        (None, None, None)
    }
    assert all(record.ttft_s is not None for record in result.records)
    assert any("not known" in note for note in result.header.notes)


async def test_cancelling_keeps_what_is_known_and_a_resumed_run_sends_only_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    async with known_truth(TruthMode(ttft_s=0.05)) as server:
        workload = await build(server)
        settings = BenchSettings(states=("cold", "warm"), journal=path)
        task = asyncio.create_task(run_bench(target_of(server), settings, workload))
        while len(server.requests) < 3:  # noqa: ASYNC110 - a server has no event to wait for
            await asyncio.sleep(0.01)
        task.cancel()
        partial = await task
        assert partial.interrupted
        assert partial == read_journal(path)
        num_done, num_seen = len(partial.records), len(server.requests)
        assert num_done == num_seen - 1
        resumed = replace(settings, resume=True)
        result = await run_bench(target_of(server), resumed, workload)
        assert len(server.requests) == num_seen + 8 - num_done
    assert result == read_journal(path)
    assert not result.interrupted
    assert len(result.records) == result.num_wanted == 8
    assert {record.proof for record in result.records} == {"proven"}  # of the one that was cut off too


async def test_ctrl_c_does_not_wait_for_a_server_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("longreach.measure.bench.running.fetch_settled_metrics", hang)
    monkeypatch.setattr("longreach.measure.bench.run._PATIENCE_S", 0.1)
    async with known_truth(TruthMode(ttft_s=60.0)) as server:
        workload = await build(server)
        task = asyncio.create_task(run_bench(target_of(server), BenchSettings(), workload))
        while not server.requests:  # noqa: ASYNC110 - a server has no event to wait for
            await asyncio.sleep(0.01)
        task.cancel()
        result = await asyncio.wait_for(task, 10)
    assert result.interrupted
    assert [(phase.num_sent, phase.prompt_tokens) for phase in result.phases] == [(1, None)]


async def test_a_finished_run_is_not_sent_again(tmp_path: Path) -> None:
    settings = BenchSettings(journal=tmp_path / "run.jsonl", resume=True)
    async with known_truth() as server:
        workload = await build(server)
        first = await run_bench(target_of(server), settings, workload)
        num_seen = len(server.requests)
        again = await run_bench(target_of(server), settings, workload)
        assert len(server.requests) == num_seen
    assert again.records == first.records


async def test_another_workload_does_not_continue_a_file(tmp_path: Path) -> None:
    settings = BenchSettings(journal=tmp_path / "run.jsonl", resume=True)
    async with known_truth() as server:
        await run_bench(target_of(server), settings, await build(server))
        other = await build(server, replace(FOUR, input_tokens=301))
        with pytest.raises(UsageError, match="workload digest changed"):
            await run_bench(target_of(server), settings, other)


async def test_answers_are_kept_only_where_they_are_wanted(tmp_path: Path) -> None:
    async with known_truth(TruthMode(num_reasoning_tokens=3)) as server:
        result = await run(server, answers=tmp_path / "answers.jsonl", journal=tmp_path / "run.jsonl")
    lines = (tmp_path / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(result.records) == 4
    assert '"reasoning":"' in lines[0]
    assert "reasoning" not in (tmp_path / "run.jsonl").read_text(encoding="utf-8")


async def test_the_servers_gauges_are_sampled() -> None:
    async with known_truth(TruthMode(ttft_s=0.05)) as server:
        result = await run(server)
    assert result.samples
    assert result.samples[0].num_running is not None


async def test_an_open_loop_without_times_is_refused_before_anything_is_sent() -> None:
    async with known_truth() as server:
        workload = await build(server)
        with pytest.raises(UsageError, match="no arrival times"):
            await run_bench(target_of(server), BenchSettings(load=Load("trace", None)), workload)
        assert server.requests == []
