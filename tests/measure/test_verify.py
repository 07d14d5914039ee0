"""Verification against a server whose truth is known, one thing broken at a time."""

import asyncio
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from tests.measure.known_truth import MODEL, TEMPLATE_TOKENS, TruthMode, known_truth

from longreach.errors import InputFileError, LongreachError, UsageError
from longreach.forecast.values import Span
from longreach.measure.progress import VerifyEvent
from longreach.measure.target import ExpectedServer, ExpectedSpeed, VerifySettings, VerifyTarget
from longreach.measure.verify import verify
from longreach.measure.verify_report import VerifyReport

TRUTH = TruthMode(max_model_len=4096, cache_blocks=512)
PLANNED = ExpectedServer(
    release="0.32.0",
    max_model_len=4096,
    kv_capacity_tokens=8192,
    max_concurrency=2.0,
    block_size=16,
    num_blocks=512,
    kv_cache_dtype="auto",
    is_hybrid=False,
)
SETTINGS = VerifySettings(prompt_tokens=2000, output_tokens=16)


def truth(**changed: Any) -> TruthMode:
    return dataclasses.replace(TRUTH, **changed)


async def run_seen(
    mode: TruthMode, settings: VerifySettings, expected: ExpectedServer = PLANNED
) -> tuple[VerifyReport, list[dict[str, Any]]]:
    """The report, and the bodies of all completions that were asked for."""
    async with known_truth(mode) as server:
        report = await verify(VerifyTarget(server.url, expected=expected), settings)
    return report, [seen.body for seen in server.requests]


async def run(
    mode: TruthMode = TRUTH, settings: VerifySettings = SETTINGS, expected: ExpectedServer = PLANNED
) -> VerifyReport:
    return (await run_seen(mode, settings, expected))[0]


def verdicts(report: VerifyReport) -> dict[str, str]:
    return {item.name: item.verdict for item in report.items}


def evidence(report: VerifyReport, name: str) -> str:
    return next(item.evidence for item in report.items if item.name == name)


async def test_an_honest_server_passes_everything() -> None:
    report = await run(truth(prefill_s_per_token=2e-4))
    assert set(verdicts(report).values()) == {"pass"}, report.items
    assert len(report.items) == 16
    assert report.num_failed == 0
    cold, warm = report.sends
    assert cold.usage is not None
    assert (cold.usage.prompt_tokens, cold.cached_tokens, warm.cached_tokens) == (2000, 0, 1984)
    assert warm.counters is not None
    assert warm.counters.attributed
    assert warm.counters.hits_by_source == (("device", 1984),)
    assert report.prompt is not None
    assert report.prompt.template_tokens == TEMPLATE_TOKENS
    assert "hits_by_source" in json.dumps(dataclasses.asdict(report))


FAULTS = {
    "no_caching": (truth(caches=False), "warm_is_warm", "fail", "0 of 2,000 cached: prefix caching is off"),
    "other_answer_names_other_needles": (truth(warm_answer="12345"), "same_answer", "fail", "different needles"),
    "needles_lost": (truth(warm_answer="none"), "needles_found", "fail", "warm 1: not Kestrel"),
    "preempted": (truth(num_preemptions=1), "no_preemptions", "fail", "2 preemptions"),
    "unplanned_drafts": (truth(tokens_per_chunk=2), "speculation", "pass", "2 of 4 draft tokens accepted (50%), 2.00"),
    "no_metrics": (truth(with_metrics=False), "kv_capacity", "cannot_tell", "no cache_config_info"),
    "no_metrics_no_preemptions": (truth(with_metrics=False), "no_preemptions", "cannot_tell", "do not say"),
    "no_metrics_but_usage": (truth(with_metrics=False), "warm_is_warm", "pass", "1,984 of 2,000"),
    "metrics_tell_hits": (truth(with_cached_tokens=False), "warm_is_warm", "pass", "1,984 of 2,000"),
    "metrics_tell_cold": (truth(with_cached_tokens=False), "cold_is_cold", "pass", "by metrics"),
    "unattributed": (
        truth(with_cached_tokens=False, other_requests=1),
        "cold_is_cold",
        "cannot_tell",
        "unattributed",
    ),
    "old_release": (truth(with_sources=False), "warm_is_warm", "pass", "1,984 of 2,000 cached"),
    "shorter_than_planned": (truth(max_model_len=3000), "max_model_len", "fail", "3,000 by /v1/models, 4,096"),
}


@pytest.mark.parametrize(("mode", "name", "verdict", "words"), FAULTS.values(), ids=FAULTS.keys())
async def test_each_fault_is_found_with_its_evidence(mode: TruthMode, name: str, verdict: str, words: str) -> None:
    report = await run(mode)
    assert verdicts(report)[name] == verdict
    assert words in evidence(report, name)


async def test_hybrid_gets_a_third_send_and_the_report_says_which_hit() -> None:
    expected = dataclasses.replace(PLANNED, is_hybrid=True)
    report = await run(truth(is_hybrid=True), expected=expected)
    assert [send.cached_tokens for send in report.sends] == [0, 0, 1984]
    assert verdicts(report)["warm_is_warm"] == "pass"
    assert evidence(report, "warm_is_warm").startswith("warm 1: 0 of 2,000 cached; warm 2: 1,984")


async def test_dense_model_whose_repeat_misses_fails_without_a_third_prefill() -> None:
    report = await run(truth(is_hybrid=True))
    assert [send.label for send in report.sends] == ["cold", "warm 1"]
    assert verdicts(report)["warm_is_warm"] == "fail"


async def test_prompt_beyond_the_limit_shows_the_servers_text() -> None:
    settings = VerifySettings(prompt_tokens=5000, output_tokens=16)
    report = await run(TRUTH, settings)
    assert "maximum context length is 4096 tokens" in evidence(report, "requests_complete")
    assert verdicts(report)["warm_is_warm"] == "cannot_tell"
    assert report.num_failed == 1


async def test_default_length_leaves_room_for_the_answer() -> None:
    report = await run(TRUTH, VerifySettings(output_tokens=96))
    assert evidence(report, "prompt_exact").startswith("4,000 counted, 4,000 wanted")


async def test_completions_are_exact_by_token_ids() -> None:
    settings = VerifySettings(prompt_tokens=1500, output_tokens=16, api="completions", needles_off_reason="ids only")
    report, bodies = await run_seen(TRUTH, settings)
    assert evidence(report, "prompt_exact").startswith("1,500 counted, 1,500 wanted")
    assert isinstance(bodies[0]["prompt"], list)
    assert evidence(report, "needles_found") == "not asked: ids only"


async def test_users_own_text_is_sent_as_it_is(tmp_path: Path) -> None:
    text = "My own words. " * 50
    path = tmp_path / "prompt.txt"
    path.write_text(text)
    settings = VerifySettings(prompt_file=path, output_tokens=8, extra_body={"top_p": 0.9}, salt="s1")
    report, bodies = await run_seen(TRUTH, settings)
    assert [body["messages"] for body in bodies] == [[{"role": "user", "content": text}]] * 2
    assert {body["cache_salt"] for body in bodies} == {"s1"}
    assert {body["top_p"] for body in bodies} == {0.9}
    assert "prompt_exact" not in verdicts(report)
    assert verdicts(report)["cold_is_cold"] == "pass"


async def test_sampling_makes_answers_incomparable() -> None:
    settings = dataclasses.replace(SETTINGS, extra_body={"temperature": 0.7})
    report = await run(TRUTH, settings)
    assert verdicts(report)["same_answer"] == "cannot_tell"


async def test_wrong_tokenizer_is_noticed_before_the_long_prompt(wrong_tokenizer: Path) -> None:
    async with known_truth(TRUTH) as server:
        target = VerifyTarget(server.url, tokenizer=str(wrong_tokenizer), expected=PLANNED)
        report = await verify(target, SETTINGS)
    assert report.prompt is not None
    source = f"the server's own /tokenize, since the tokenizer of {wrong_tokenizer} is not the served one"
    assert report.prompt.tokenizer == source
    assert verdicts(report)["prompt_exact"] == "pass"


async def test_no_tokenizer_at_all_is_an_error_with_advice() -> None:
    with pytest.raises(InputFileError, match="nothing can count") as caught:
        await run(truth(with_tokenize=False, with_root=False))
    assert "--tokenizer" in caught.value.fix


async def test_a_template_that_no_count_explains_is_an_error() -> None:
    with pytest.raises(InputFileError, match="cannot be made exact"):
        await run(truth(template_grows=True))


async def test_no_server_is_a_failed_item(unused_tcp_port: int) -> None:
    report = await verify(VerifyTarget(f"http://127.0.0.1:{unused_tcp_port}"), SETTINGS)
    assert [(item.name, item.verdict) for item in report.items] == [("server_answers", "fail")]


async def test_model_that_is_not_served_is_a_failed_item_with_a_near_miss() -> None:
    async with known_truth(TRUTH) as server:
        report = await verify(VerifyTarget(server.url, model=f"{MODEL}e"), SETTINGS)
    assert verdicts(report) == {"server_answers": "pass", "model_served": "fail"}
    assert f"it serves: {MODEL}" in evidence(report, "model_served")


async def test_fields_that_verify_sets_are_refused_before_anything_is_sent() -> None:
    settings = dataclasses.replace(SETTINGS, extra_body={"stream": False})
    with pytest.raises(UsageError, match="'stream' cannot be passed"):
        await verify(VerifyTarget("http://127.0.0.1:1"), settings)


async def test_cancelling_stops_the_server_and_keeps_what_is_known() -> None:
    cold_is_done = asyncio.Event()

    def watch(event: VerifyEvent) -> None:
        if (event.phase, event.detail, event.state) == ("send", "warm 1", "started"):
            server.mode = truth(ttft_s=30.0)
            cold_is_done.set()

    async with known_truth(TRUTH) as server:
        task = asyncio.create_task(verify(VerifyTarget(server.url, expected=PLANNED), SETTINGS, watch))
        await asyncio.wait_for(cold_is_done.wait(), 10)
        await asyncio.sleep(0.2)
        task.cancel()
        report = await task
        await asyncio.sleep(0.1)
    assert report.interrupted
    assert [send.label for send in report.sends] == ["cold"]
    assert evidence(report, "requests_complete").startswith("warm 1: you stopped it after")
    assert verdicts(report)["cold_is_cold"] == "pass"
    assert verdicts(report)["warm_is_warm"] == "cannot_tell"
    assert [seen.outcome for seen in server.requests[-2:]] == ["answered", "cancelled"]


async def test_events_tell_each_step_with_its_forecast() -> None:
    events: list[VerifyEvent] = []
    speed = ExpectedSpeed(2000, Span(1.0, 9.0), Span(0.1, 0.3), Span(10.0, 20.0))
    expected = dataclasses.replace(PLANNED, speed=speed)
    async with known_truth(truth(prefill_s_per_token=6e-4)) as server:
        await verify(VerifyTarget(server.url, expected=expected), SETTINGS, events.append)
    steps = [(event.phase, event.detail, event.estimate_s) for event in events if event.state == "finished"]
    assert steps == [("reach", "", None), ("prompt", "", None), ("send", "cold", 9.0), ("send", "warm 1", 0.3)]
    assert ("cold", "running") in {(event.detail, event.state) for event in events}


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (truth(with_chat_template=False), "no chat template"),
        (truth(with_usage=False), "without a usage object"),
    ],
    ids=["no_template", "no_usage"],
)
async def test_a_server_that_fails_the_small_request_is_quoted(mode: TruthMode, words: str) -> None:
    report = await run(mode)
    assert report.sends == ()
    assert report.items[-1].name == "requests_complete"
    assert words in evidence(report, "requests_complete")


async def test_length_must_be_known_or_named() -> None:
    settings = VerifySettings(output_tokens=16)
    with pytest.raises(UsageError, match="how long a prompt"):
        await run(truth(max_model_len=None), settings, ExpectedServer())


@pytest.mark.parametrize(
    ("content", "error"), [(None, InputFileError), (b"\xff\xfe", InputFileError), (b" \n", UsageError)], ids=repr
)
async def test_unusable_prompt_files_are_named(
    tmp_path: Path, content: bytes | None, error: type[LongreachError]
) -> None:
    path = tmp_path / "prompt.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error, match=str(path)):
        await run(TRUTH, VerifySettings(prompt_file=path))
