"""Every prompt is exactly as long as it says, whatever the tokenizer, and shares what it should and no more."""

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longreach.errors import UsageError
from longreach.measure.tokenizer import LocalTokenizer
from longreach.measure.workload.building import build_workload
from longreach.measure.workload.counting import Counting
from longreach.measure.workload.values import Workload
from longreach.measure.workload.wishes import ConversationSource, SyntheticSource, WorkloadWish

TEMPLATE_TOKENS = 7


async def build(
    source: SyntheticSource | ConversationSource, tokenizer: LocalTokenizer, seed: str = "longreach", nonce: str = ""
) -> Workload:
    return await build_workload(WorkloadWish(source, seed, nonce), Counting(tokenizer, TEMPLATE_TOKENS))


async def require_exact(workload: Workload, tokenizer: LocalTokenizer) -> None:
    counts = await tokenizer.count_many([workload.render_text(request) for request in workload.requests])
    assert [count + TEMPLATE_TOKENS for count in counts] == [request.prompt_tokens for request in workload.requests]


synthetic_sources = st.builds(
    SyntheticSource,
    num_requests=st.integers(1, 5),
    input_tokens=st.integers(900, 2_500),
    output_tokens=st.just(8),
    shared_prefix_tokens=st.sampled_from([0, 200, 333]),
    num_prefixes=st.integers(1, 3),
    input_spread=st.sampled_from([0.0, 0.3]),
    rounds=st.integers(1, 3),
)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(source=synthetic_sources, seed=st.text(max_size=4))
async def test_generated_prompts_are_exact(any_tokenizer: LocalTokenizer, source: SyntheticSource, seed: str) -> None:
    workload = await build(source, any_tokenizer, seed=seed)
    await require_exact(workload, any_tokenizer)
    assert len(workload.requests) == source.num_requests * source.rounds
    if not source.input_spread:
        assert {request.prompt_tokens for request in workload.requests} == {source.input_tokens}


async def test_conversations_are_exact_and_grow(any_tokenizer: LocalTokenizer) -> None:
    workload = await build(ConversationSource(2, 3, 800, 250, 8), any_tokenizer)
    await require_exact(workload, any_tokenizer)
    first, second = (workload.requests[index] for index in (0, 2))
    assert first.session == second.session == 0
    shared = workload.render_text(first).removesuffix(first.tail)
    assert workload.render_text(second).startswith(shared)
    assert [request.prompt_tokens for request in workload.requests] == [800, 800, 1_050, 1_050, 1_300, 1_300]


async def test_segments_have_their_tokens_wherever_they_stand(tokenizer: LocalTokenizer) -> None:
    workload = await build(ConversationSource(1, 4, 700, 333, 8), tokenizer)
    grown = ["".join(workload.segments[name] for name in request.segments) for request in workload.requests]
    counts = await tokenizer.count_many(grown)
    assert [after - before for before, after in pairwise(counts)] == [333, 333, 333]


async def test_prompts_have_first_words_of_their_own(tokenizer: LocalTokenizer) -> None:
    workload = await build(SyntheticSource(40, 200, 8), tokenizer)
    firsts = [workload.render_text(request).split()[0] for request in workload.requests]
    assert len(set(firsts)) == len(firsts)


async def test_shared_prefix_is_shared_to_the_token_and_the_next_word_is_not(tokenizer: LocalTokenizer) -> None:
    workload = await build(SyntheticSource(4, 800, 8, shared_prefix_tokens=500, num_prefixes=2), tokenizer)
    texts = [workload.render_text(request) for request in workload.requests]
    prefix = workload.segments["prefix 0"]
    assert await tokenizer.count(prefix) == 500
    assert [text.startswith(prefix) for text in texts] == [True, False, True, False]
    assert texts[0].removeprefix(prefix).split()[0] != texts[2].removeprefix(prefix).split()[0]
    assert [request.reusable_tokens for request in workload.requests] == [0, 0, 500, 500]


async def test_rounds_bring_the_same_prompts_again_but_for_their_last_line(tokenizer: LocalTokenizer) -> None:
    workload = await build(SyntheticSource(3, 600, 8, rounds=2), tokenizer)
    first, again = workload.requests[1], workload.requests[4]
    assert first.segments == again.segments
    assert first.tail != again.tail
    assert first.reusable_tokens == 0
    assert 500 < again.reusable_tokens < 600


async def test_nonce_changes_the_first_words_alone(tokenizer: LocalTokenizer) -> None:
    plain = await build(SyntheticSource(2, 400, 8), tokenizer)
    fresh = await build(SyntheticSource(2, 400, 8), tokenizer, nonce="5a17")
    await require_exact(fresh, tokenizer)
    words, fresh_words = (workload.requests[0].tail.split() for workload in (plain, fresh))
    assert words[0] != fresh_words[0]
    assert words[1:100] == fresh_words[1:100]
    assert plain.digest != fresh.digest


async def test_text_does_not_repeat_itself_across_prompts(tokenizer: LocalTokenizer) -> None:
    workload = await build(SyntheticSource(60, 1_000, 8), tokenizer)
    sixes: list[tuple[str, ...]] = []
    for request in workload.requests:
        words = workload.render_text(request).split()
        sixes += zip(*(words[start:] for start in range(6)), strict=False)
    assert len(sixes) > 20_000
    assert 1 - len(set(sixes)) / len(sixes) < 1e-3


@pytest.mark.parametrize("num_tokens", range(24, 90, 6))
async def test_short_prompts_are_exact_too(any_tokenizer: LocalTokenizer, num_tokens: int) -> None:
    workload = await build(SyntheticSource(3, num_tokens, 8), any_tokenizer)
    await require_exact(workload, any_tokenizer)


def _with_length(source: SyntheticSource | ConversationSource, tokens: int) -> SyntheticSource | ConversationSource:
    if isinstance(source, ConversationSource):
        return replace(source, first_tokens=tokens)
    return replace(source, input_tokens=tokens)


@pytest.mark.parametrize(
    "source",
    [
        SyntheticSource(3, 4, 8),
        SyntheticSource(3, 600, 8, shared_prefix_tokens=595),
        SyntheticSource(30, 4, 8, input_spread=0.5),
        ConversationSource(2, 2, 4, 100, 8),
    ],
    ids=["generated", "shared", "spread", "conversation"],
)
async def test_too_short_a_prompt_names_the_shortest_that_will_do(
    any_tokenizer: LocalTokenizer, source: SyntheticSource | ConversationSource
) -> None:
    with pytest.raises(UsageError, match="is too short") as caught:
        await build(source, any_tokenizer)
    named = int(caught.value.fix.removeprefix("--input-tokens "))
    await require_exact(await build(_with_length(source, named), any_tokenizer), any_tokenizer)
    if not getattr(source, "input_spread", 0):  # which draws lengths: the shortest may not be among them
        with pytest.raises(UsageError, match="too short"):
            await build(_with_length(source, named - 1), any_tokenizer)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (SyntheticSource(0, 100, 8), "num requests 0"),
        (SyntheticSource(1, 100, 0), "output tokens 0"),
        (SyntheticSource(1, 100, 8, input_spread=1.0), "input spread 1.0"),
        (ConversationSource(1, 0, 100, 100, 8), "turns 0"),
        (ConversationSource(1, 2, 20, 100, 8), "a prompt of 20 tokens is too short"),
        (SyntheticSource(1, 1, 8), "a prompt of 1 token is too short"),
        (SyntheticSource(1, 100, 8, shared_prefix_tokens=3), "a shared prefix of 3 tokens is too short"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_wishes_that_make_no_sense_are_refused(
    tokenizer: LocalTokenizer, source: SyntheticSource, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        await build(source, tokenizer)


async def test_rounds_of_prompts_too_short_to_keep_anything_are_noted(tokenizer: LocalTokenizer) -> None:
    short = await build(SyntheticSource(3, 40, 8, rounds=2), tokenizer)
    assert short.notes == ("3 prompts of each round: too short to keep anything for the next, new each time",)
    assert (await build(SyntheticSource(3, 400, 8, rounds=2), tokenizer)).notes == ()


async def test_progress_goes_up_to_the_whole(tokenizer: LocalTokenizer) -> None:
    seen: list[tuple[int, int]] = []
    wish = WorkloadWish(SyntheticSource(3, 2_000, 8, shared_prefix_tokens=900))
    await build_workload(wish, Counting(tokenizer, 7), lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == seen[-1][1] == 900 + 3 * (2_000 - 7 - 900)


_PROGRAM = """
import asyncio, sys
from longreach.measure.tokenizer import read_tokenizer
from longreach.measure.workload.building import build_workload
from longreach.measure.workload.counting import Counting
from longreach.measure.workload.wishes import SyntheticSource, WorkloadWish
wish = WorkloadWish(SyntheticSource(3, 900, 8, shared_prefix_tokens=200, rounds=2), seed="s")
print(asyncio.run(build_workload(wish, Counting(read_tokenizer(sys.argv[1]), 7))).digest)
"""


def test_another_process_builds_the_same(tokenizer: LocalTokenizer, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizer.tokenizer.save(str(path))
    digests = {
        subprocess.run(
            [sys.executable, "-c", _PROGRAM, str(path)],
            env={"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(digests) == 1
    assert len(digests.pop().strip()) == 64
