"""Request traces: what is in them, what is sent of them, and what is wrong with a bad one."""

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from longreach.errors import InputFileError, UsageError
from longreach.measure.tokenizer import LocalTokenizer
from longreach.measure.workload import tails
from longreach.measure.workload.building import build_workload
from longreach.measure.workload.counting import Counting
from longreach.measure.workload.outlines import Outline, Room, count_reusable
from longreach.measure.workload.trace import BLOCK_TOKENS, link_sessions, outline_trace, read_trace
from longreach.measure.workload.wishes import TraceSource, WorkloadWish

ROOM = Room(template_tokens=10, tail_tokens=30, least_tokens=8)
TRACES = Path(__file__).parents[4] / "shared" / "data" / "traces"


def line(timestamp: float, input_length: int, ids: list[int], **more: object) -> dict[str, object]:
    fields = {"timestamp": timestamp, "input_length": input_length, "output_length": 5, "hash_ids": ids}
    return fields | more


def write(tmp_path: Path, *lines: dict[str, object] | str) -> Path:
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(f"{part if isinstance(part, str) else json.dumps(part)}\n" for part in lines))
    return path


# Two sessions behind one system prompt (block 0): 1-2-3 with its second turn, and 7.
SMALL = (
    line(1_000, 1_600, [0, 1, 2, 3]),
    line(2_000, 1_100, [0, 7, 8], model="unknown keys are passed over"),
    line(4_000, 2_148, [0, 1, 2, 4, 5]),
)


def outline(path: Path, **more: object) -> Outline:
    return outline_trace(TraceSource(path, **more), "seed", ROOM)  # type: ignore[arg-type] # a test's own options


def test_shared_blocks_become_segments_and_the_rest_the_tail(tmp_path: Path) -> None:
    result = outline(write(tmp_path, *SMALL))
    assert result.segments == {"block 0": 512, "blocks 1..2": 1_024}
    assert [request.segments for request in result.requests] == [
        ("block 0", "blocks 1..2"),
        ("block 0",),
        ("block 0", "blocks 1..2"),
    ]
    assert [request.prompt_tokens for request in result.requests] == [1_600, 1_100, 2_148]
    assert [request.arrival_s for request in result.requests] == [0, 1, 3]
    assert count_reusable(result) == (0, 512, 1_536)
    assert result.notes == ()


def test_a_last_shared_block_is_given_up_for_the_template_and_said_so(tmp_path: Path) -> None:
    result = outline(write(tmp_path, line(0, 1_024, [0, 1]), line(1, 1_500, [0, 1, 2])))
    assert [request.segments for request in result.requests] == [("block 0",), ("block 0",)]
    assert "1 request with 512 shared tokens less than in the trace" in result.notes[0]


def test_sessions_are_linked_by_full_blocks_that_not_everyone_has(tmp_path: Path) -> None:
    lines = (*SMALL, line(5_000, 1_300, [0, 7, 9]), line(6_000, 600, [0, 11]))
    assert link_sessions(read_trace(write(tmp_path, *lines))) == (0, 1, 0, 1, 2)


@pytest.mark.parametrize(
    ("more", "lengths", "note"),
    [
        ({"num_requests": 2}, [1_600, 1_100], "only the first 2 of 3 requests"),
        ({"max_request_tokens": 2_000}, [1_600, 1_100], "left out: 1 request longer than 2,000 tokens"),
        ({"max_output_tokens": 3}, [1_600, 1_100, 2_148], "cut to 3 tokens: 3 answers"),
        ({"time_scale": 2.0}, [1_600, 1_100, 2_148], "the trace's clock runs 2 times as long"),
    ],
    ids=["first", "too_long", "output_cap", "clock"],
)
def test_what_is_not_sent_as_recorded_is_noted(
    tmp_path: Path, more: dict[str, object], lengths: list[int], note: str
) -> None:
    result = outline(write(tmp_path, *SMALL), **more)
    assert [request.prompt_tokens for request in result.requests] == lengths
    assert note in result.notes
    assert max(request.output_tokens for request in result.requests) == more.get("max_output_tokens", 5)


def test_time_scale_stretches_arrivals(tmp_path: Path) -> None:
    result = outline(write(tmp_path, *SMALL), time_scale=2.0)
    assert [request.arrival_s for request in result.requests] == [0, 2, 6]


def test_requests_too_short_for_words_of_their_own_are_left_out(tmp_path: Path) -> None:
    result = outline(write(tmp_path, line(0, 17, [0]), line(0, 18, [1]), line(0, 29, [2])))
    assert [request.prompt_tokens for request in result.requests] == [18, 29]
    assert result.notes == ("left out: 1 request shorter than 18 tokens",)


def test_sampled_sessions_are_whole_and_the_seed_chooses_them(tmp_path: Path) -> None:
    """Eight sessions of three turns; the lengths tell which session a request is of."""
    lines = [
        line(turn * 1_000, 1_024 + 10 * session + 50, [10 * session, 10 * session + 1, 100 * turn + session + 1_000])
        for turn in range(3)
        for session in range(8)
    ]
    source = TraceSource(write(tmp_path, *lines), sessions=Fraction(1, 2))
    samples = [outline_trace(source, seed, ROOM) for seed in ("a", "a", "b")]
    sizes = Counter(request.prompt_tokens for request in samples[0].requests)
    assert sorted(sizes.values()) == [3, 3, 3, 3]
    assert samples[0] == samples[1] != samples[2]
    assert samples[0].notes[0].startswith("4 of 8 sessions, each of them whole: 12 of 24 requests")


def test_nothing_left_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no request of the trace is left") as caught:
        outline(write(tmp_path, *SMALL), max_request_tokens=100)
    assert "3 requests longer than 100 tokens" in caught.value.why


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ("{", "line 2: not JSON"),
        ("[1]", "line 2: not an object"),
        (line(-1, 600, [0, 1]), "line 2: no 'timestamp'"),
        (line(1e300, 600, [0, 1]), "line 2: no 'timestamp'"),
        (line(0, 0, []), "line 2: no 'input_length'"),
        (line(0, 600, [0, 1], output_length=True), "line 2: no 'output_length'"),
        (line(0, 600, [0, 1.5]), "line 2: no 'hash_ids'"),  # type: ignore[list-item] # on purpose
        (line(0, 600, [0]), "line 2: 1 'hash_ids' for 600 tokens"),
        (line(0, 600, [3, 1]), "line 2: hash id 1 follows 3"),
    ],
    ids=["json", "object", "timestamp", "far_away", "input", "output", "ids", "too_few_ids", "broken_chain"],
)
def test_bad_lines_are_named(tmp_path: Path, bad: dict[str, object] | str, what: str) -> None:
    with pytest.raises(InputFileError) as caught:
        read_trace(write(tmp_path, line(0, 600, [0, 1]), bad))
    assert what in caught.value.what
    assert caught.value.why
    assert caught.value.fix


def test_missing_and_empty_traces_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="cannot be read"):
        read_trace(tmp_path / "none.jsonl")
    with pytest.raises(InputFileError, match="holds no request"):
        read_trace(write(tmp_path, ""))


@pytest.mark.parametrize("more", [{"sessions": Fraction(0)}, {"time_scale": 0.0}, {"num_requests": 0}], ids=str)
def test_wishes_that_make_no_sense_are_refused(tmp_path: Path, more: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        outline(write(tmp_path, *SMALL), **more)


async def test_prompts_of_a_trace_are_exact_and_share_their_blocks(
    tmp_path: Path, any_tokenizer: LocalTokenizer
) -> None:
    wish = WorkloadWish(TraceSource(write(tmp_path, *SMALL)))
    workload = await build_workload(wish, Counting(any_tokenizer, 10))
    texts = [workload.render_text(request) for request in workload.requests]
    counts = await any_tokenizer.count_many(texts)
    assert [count + 10 for count in counts] == [1_600, 1_100, 2_148]
    shared = workload.segments["block 0"] + workload.segments["blocks 1..2"]
    assert texts[0].startswith(shared)
    assert texts[2].startswith(shared)
    assert not texts[1].startswith(shared)


async def test_large_traces_are_proven_by_a_sample_and_their_joints(
    tmp_path: Path, any_tokenizer: LocalTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tails, "_CHEAP_TOKENS", 10_000)
    monkeypatch.setattr(tails, "_TOKENS_SAMPLED", 1_000)
    lines = (line(number, 2_608, [0, 1, 2, 3 + number % 4, 10 + number % 4, 100 + number]) for number in range(60))
    workload = await build_workload(WorkloadWish(TraceSource(write(tmp_path, *lines))), Counting(any_tokenizer, 10))
    counts = await any_tokenizer.count_many([workload.render_text(request) for request in workload.requests])
    assert {count + 10 for count in counts} == {2_608}


@pytest.fixture(params=["conversation", "synthetic"])
def real_trace(request: pytest.FixtureRequest) -> Path:
    path = TRACES / f"mooncake_{request.param}.jsonl"
    if not path.exists():
        pytest.skip(f"NOT RUN: the public trace {path.name} is not here")
    return path


# Published traces of a cluster, counted by other means: requests, prompt tokens, full blocks, sessions, single, largest.
KNOWN = {
    "mooncake_conversation.jsonl": (12_031, 144.8, 170_899, 7_401, 5_158, 43),
    "mooncake_synthetic.jsonl": (3_993, 61.2, 40_148, 2_232, 1_836, 24),
}


@pytest.fixture
def real_trace_counts(real_trace: Path) -> tuple[float, ...]:
    return KNOWN[real_trace.name]


def test_real_traces_have_their_known_counts(real_trace: Path, real_trace_counts: tuple[float, ...]) -> None:
    requests = read_trace(real_trace)
    sizes = Counter(link_sessions(requests)).values()
    assert (
        len(requests),
        round(sum(request.input_tokens for request in requests) / 1e6, 1),
        len({block for request in requests for block in request.blocks}),
        len(sizes),
        sum(size == 1 for size in sizes),
        max(sizes),
    ) == real_trace_counts


# Of all prompt tokens, what an endless cache would hit; less by what the template and each request's own words take.
CEILINGS = {"mooncake_conversation.jsonl": 0.3734, "mooncake_synthetic.jsonl": 0.6504}


def test_outline_of_a_real_trace_keeps_its_reuse(real_trace: Path) -> None:
    result = outline(real_trace)
    total = sum(request.prompt_tokens for request in result.requests)
    share = sum(count_reusable(result)) / total
    assert share == pytest.approx(CEILINGS[real_trace.name], abs=0.003)
    assert share < CEILINGS[real_trace.name]
    known = {name for request in result.requests for name in request.segments}
    assert known == set(result.segments)
    assert all(tokens % BLOCK_TOKENS == 0 for tokens in result.segments.values())
