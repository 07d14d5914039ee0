"""What is longer than the server takes is refused with what fits, or left out, before any text is built."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.measure.known_truth import MODEL, KnownTruth, TruthMode, known_truth

from longreach.errors import UsageError
from longreach.measure.bench.fitting import fit_wish
from longreach.measure.bench.prepare import prepare_workload
from longreach.measure.bench.run import run_bench
from longreach.measure.bench.settings import BenchSettings, BenchTarget
from longreach.measure.target import ExpectedServer
from longreach.measure.workload.wishes import ConversationSource, SyntheticSource, TextSource, TraceSource, WorkloadWish

LONGEST = 8_000
TEXT = TextSource(Path("book.txt"), 100, input_tokens=7_950)


@pytest.mark.parametrize(
    ("source", "fix"),
    [
        (SyntheticSource(2, 9_000, 100), "--input-tokens 7900"),
        (SyntheticSource(2, 7_901, 100), "--input-tokens 7900"),
        (SyntheticSource(99, 7_000, 100, input_spread=0.5), "--input-tokens 5266"),
        (SyntheticSource(2, 100, 9_000), "--output-tokens 2000"),
        (ConversationSource(2, 20, 1_000, 500, 100), "--turns 14"),
        (ConversationSource(2, 2, 8_000, 500, 100), "--input-tokens 7400"),
        (TEXT, "--input-tokens 7900"),
    ],
    ids=["prompt", "one too many", "spread", "answer", "turns", "first turn", "text"],
)
def test_what_does_not_fit_is_refused_with_what_does(
    source: SyntheticSource | ConversationSource | TextSource, fix: str
) -> None:
    with pytest.raises(UsageError, match="do not fit the server") as caught:
        fit_wish(WorkloadWish(source), LONGEST)
    assert caught.value.fix == fix
    assert "8,000" in caught.value.why
    option, number = re.fullmatch(r"--(\S+) (\d+)", fix).groups()  # type: ignore[union-attr]
    names = {"input-tokens": "input_tokens", "output-tokens": "output_tokens", "turns": "turns"}
    name = "first_tokens" if isinstance(source, ConversationSource) and option == "input-tokens" else names[option]
    fit_wish(WorkloadWish(replace(source, **{name: int(number)})), LONGEST)  # type: ignore[arg-type]


def test_lengths_that_are_given_are_left_out_and_a_silent_server_refuses_nothing() -> None:
    trace, files = WorkloadWish(TraceSource(Path("t"))), WorkloadWish(replace(TEXT, input_tokens=None))
    for wish in (trace, files):
        assert fit_wish(wish, LONGEST).source.max_request_tokens == LONGEST  # type: ignore[union-attr]
    too_long = WorkloadWish(SyntheticSource(1, 9_000, 100))
    assert fit_wish(too_long, None) is too_long


def _target(server: KnownTruth) -> BenchTarget:
    return BenchTarget(server.url, MODEL, tokenizer=str(server.tokenizer_folder))


def _planned(server: KnownTruth) -> BenchTarget:
    return replace(_target(server), expected=ExpectedServer(max_model_len=500))


async def test_what_a_plan_rules_out_is_refused_before_anything_is_built_or_sent() -> None:
    wish = WorkloadWish(SyntheticSource(2, 490, 20))
    async with known_truth(TruthMode(max_model_len=500)) as server:
        with pytest.raises(UsageError, match="490 tokens and an answer of 20"):
            await prepare_workload(_planned(server), BenchSettings(), wish, lambda _: None)
        assert server.requests == []
    async with known_truth(TruthMode(max_model_len=500)) as smaller:
        workload = await prepare_workload(_target(smaller), BenchSettings(), wish, lambda _: None)
        with pytest.raises(UsageError, match="do not fit") as caught:
            await run_bench(_planned(smaller), BenchSettings(), workload)
    assert "a workload of shorter prompts" in caught.value.fix


async def test_what_a_bare_server_tells_is_noted_and_its_refusal_shown() -> None:
    wish = WorkloadWish(SyntheticSource(2, 501, 20))
    async with known_truth(TruthMode(max_model_len=500)) as server:
        workload = await prepare_workload(_target(server), BenchSettings(), wish, lambda _: None)
        result = await run_bench(_target(server), BenchSettings(), workload)
    assert "the longest request has 521 tokens, and the server names 500 as the most it takes" in workload.notes
    assert [(record.error_kind, record.error_status) for record in result.records] == [("refused", 400)] * 2
    assert "500" in (result.records[0].error or "")


async def test_files_that_are_too_long_are_left_out_and_counted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A short one.", encoding="utf-8")
    (tmp_path / "b.txt").write_text("word " * 2_000, encoding="utf-8")
    wish = WorkloadWish(TextSource(tmp_path, 8))
    async with known_truth(TruthMode(max_model_len=500)) as server:
        workload = await prepare_workload(_target(server), BenchSettings(), wish, lambda _: None)
        (tmp_path / "a.txt").unlink()
        with pytest.raises(UsageError, match="no file of") as caught:
            await prepare_workload(_target(server), BenchSettings(), wish, lambda _: None)
    assert [request.tail for request in workload.requests] == ["A short one."]
    assert "left out: 1 file longer than 500 tokens with the answer" in workload.notes
    assert caught.value.fix.startswith("--input-tokens 492")
