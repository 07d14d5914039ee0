"""`longreach bench` as it is typed: options, documents, exit codes, against a server of known truth."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete
from tests.measure.known_truth import KnownTruth, TruthMode, known_truth

from longreach.cli.main import cli, run
from longreach.measure.bench.journal import read_journal

Longreach = Callable[..., tuple[int, str, str]]
Bench = Callable[..., Awaitable[tuple[int, dict[str, Any], str]]]

SMALL = ("--input-tokens", "300", "--output-tokens", "16", "--num-requests", "4")


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results that nobody named go there."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str]) -> Bench:
    """Run it beside the server: (exit code, document, stderr)."""

    async def call(server: KnownTruth, *argv: str) -> tuple[int, dict[str, Any], str]:
        tokenizer = str(server.tokenizer_folder)
        line = ["bench", server.url, "--model", "known", "--tokenizer", tokenizer, *argv, "--json"]
        code = await asyncio.to_thread(run, line)
        captured = capsys.readouterr()
        return code, json.loads(captured.out), captured.err

    return call


async def test_the_document_keeps_its_contract(bench: Bench, state_home: Path) -> None:
    async with known_truth(TruthMode(ttft_s=0.02, itl_s=0.002)) as server:
        code, document, err = await bench(server, *SMALL, "--concurrency", "2", "--seed", "a")
    assert code == 0
    assert len(document["requests"]) == 4
    keys = {"ok", "prompt_tokens", "cached_tokens", "output_tokens", "error"}
    keys |= {"ttft_s", "time_to_first_answer_s", "itl_s", "e2e_latency_s"}
    for request in document["requests"]:
        assert keys <= set(request)
        assert (request["ok"], request["prompt_tokens"], request["cached_tokens"]) == (True, 300, 0)
        assert (request["output_tokens"], request["error"]) == (16, None)
        assert 0.02 <= request["ttft_s"] < request["e2e_latency_s"]
    summary = document["summary"]
    assert (summary["num_ok"], summary["num_failed"]) == (4, 0)
    assert {"mean", "p50", "p90", "p99"} <= set(summary["ttft_s"])
    assert summary["itl_s"]["p50"] >= 0.002 * 0.9
    assert summary["output_tokens_per_s"] > 0
    assert summary["client_loop_lag_p99_s"] is not None
    (path,) = (state_home / "longreach" / "bench").glob("*.jsonl")
    assert str(path) in err
    assert len(read_journal(path).records) == 4


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (TruthMode(early_role_chunk=True, ttft_s=0.2), {"ttft_s": 0.2}),
        (
            TruthMode(num_reasoning_tokens=6, ttft_s=0.05, itl_s=0.02),
            {"ttft_s": 0.05, "time_to_first_answer_s": 0.05 + 6 * 0.02},
        ),
        (TruthMode(tokens_per_chunk=3, itl_s=0.02), {"itl_s": 0.02}),
    ],
    ids=["early role chunk", "reasoning first", "three tokens a chunk"],
)
async def test_times_mean_what_they_say(bench: Bench, mode: TruthMode, expected: dict[str, float]) -> None:
    async with known_truth(mode) as server:
        code, document, _ = await bench(server, *SMALL, "--num-requests", "1")
        truth = server.requests[-1]
    (request,) = document["requests"]
    assert code == 0
    assert truth.first_token is not None
    for name, value in expected.items():
        assert value * 0.99 <= request[name] < value * 1.5 + 0.1, name
    assert request["ttft_s"] == pytest.approx(truth.first_token - truth.arrived, abs=0.1)


@pytest.mark.parametrize(
    ("mode", "kind", "words"),
    [
        (TruthMode(error_after_tokens=5), "error_event", "Internal server error"),
        (TruthMode(die_after_tokens=5), "disconnected", "closed the connection"),
        (TruthMode(refuse_with=(400, "the prompt is too long for me")), "refused", "the prompt is too long for me"),
    ],
    ids=["error event", "death", "refusal"],
)
async def test_a_failed_request_is_shown_and_ends_with_1(bench: Bench, mode: TruthMode, kind: str, words: str) -> None:
    async with known_truth(mode) as server:
        code, document, _ = await bench(server, *SMALL)
        allowed, _, _ = await bench(server, *SMALL, "--allow-failures", "4")
    assert (code, allowed) == (1, 0)
    assert document["summary"]["num_failed"] == 4
    assert {request["error_kind"] for request in document["requests"]} == {kind}
    assert all(words in request["error"] for request in document["requests"])


async def test_a_server_that_dies_ends_with_1_and_a_whole_document(bench: Bench) -> None:
    async with known_truth(TruthMode(dead_from_request=2)) as server:
        code, document, _ = await bench(server, *SMALL)
    assert code == 1
    assert [request["ok"] for request in document["requests"]] == [True, True, False, False]


def test_a_server_that_is_not_there_ends_with_1_and_a_whole_document(longreach: Longreach) -> None:
    code, out, _ = longreach("bench", "http://127.0.0.1:9", *SMALL, "--json")
    document = json.loads(out)
    assert code == 1
    assert [request["error_kind"] for request in document["requests"]] == ["unreachable"] * 4
    assert document["summary"]["ttft_s"] is None


async def test_warm_and_evicted_are_proven_by_source(bench: Bench) -> None:
    async with known_truth(TruthMode(cache_blocks=100, host_blocks=400)) as server:
        code, document, _ = await bench(server, *SMALL, "--states", "cold,warm,evicted")
    assert code == 0
    states = {state["state"]: state for state in document["summary"]["states"]}
    assert {name: state["num_proven"] for name, state in states.items()} == {"cold": 4, "warm": 4, "evicted": 4}
    assert dict(states["evicted"]["hits_by_source"]) == {"host": 4 * 288}


async def test_cold_that_was_not_cold_ends_with_1(bench: Bench) -> None:
    async with known_truth() as server:
        first, _, _ = await bench(server, *SMALL, "--cache-salt", "mine", "--states", "cold")
        second, document, _ = await bench(server, *SMALL, "--cache-salt", "mine", "--states", "cold")
        unclaimed, told, _ = await bench(server, *SMALL, "--cache-salt", "mine")
    assert (first, second, unclaimed) == (0, 1, 0)
    for each in (document, told):
        assert {item["name"]: item["verdict"] for item in each["summary"]["checks"]}["cold_is_cold"] == "fail"


async def test_a_workload_file_gives_both_sides_the_same(bench: Bench, tmp_path: Path) -> None:
    path = str(tmp_path / "workload.jsonl")
    async with known_truth() as server, known_truth(TruthMode(with_version=False)) as other:
        saved, a, _ = await bench(server, *SMALL, "--save-workload", path)
        sent, b, _ = await bench(other, "--workload", path)
        assert [seen.text for seen in server.requests] == [seen.text for seen in other.requests]
    assert (saved, sent) == (0, 0)
    assert a["header"]["workload_digest"] == b["header"]["workload_digest"]


async def test_the_report_is_written_as_a_page_too(bench: Bench, tmp_path: Path) -> None:
    async with known_truth() as server:
        code, _, _ = await bench(server, *SMALL, "--html", str(tmp_path / "run.html"), "--slo", "ttft=60s")
    assert code == 0
    assert "<html" in (tmp_path / "run.html").read_text(encoding="utf-8")


async def test_limits_are_counted(bench: Bench) -> None:
    async with known_truth() as server:
        _, document, _ = await bench(server, *SMALL, "--slo", "ttft=60s,e2e=5m")
    assert document["summary"]["goodput"]["num_met"] == 4


INTERRUPTED = """
import asyncio, subprocess, sys
from tests.measure.known_truth import TruthMode, known_truth

async def main():
    async with known_truth(TruthMode(ttft_s=0.1)) as server:
        argv = ["bench", server.url, "--tokenizer", str(server.tokenizer_folder), *sys.argv[3:]]
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "longreach", *argv, stdout=subprocess.PIPE)
        while len(server.requests) < 3:
            await asyncio.sleep(0.01)
        process.send_signal(int(sys.argv[1]))
        out, _ = await process.communicate()
        print(out.decode())
        if sys.argv[2] == "resume":
            argv = [sys.executable, "-m", "longreach", *argv, "--resume"]
            again = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE)
            await again.communicate()
            print(again.returncode, len(server.requests), file=sys.stderr)
    sys.exit(process.returncode)

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "kill"])
def test_every_way_to_stop_leaves_a_document_and_a_file_that_goes_on(number: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    resumes = "resume" if number == signal.SIGINT else "no"
    command = [sys.executable, "-c", INTERRUPTED, str(int(number)), resumes, *SMALL, "-o", str(path), "--json"]
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=root, env=environment)
    assert ended.returncode == 130, ended.stderr
    document = json.loads(ended.stdout)
    assert document["interrupted"]
    assert len(document["requests"]) == 2
    if resumes == "resume":
        assert "\n0 5\n" in f"\n{ended.stderr}"  # of four prompts the one that was cut off came twice
        assert len(read_journal(path).records) == 4


@pytest.mark.parametrize(
    ("options", "what", "fix"),
    [
        ("", "how long the prompts are to be is not known", "--input-tokens"),
        ("--input-tokens 1k --trace t.jsonl", "--input-tokens does not go with --trace", "leave --input-tokens out"),
        ("--text a --trace t.jsonl", "--trace and --text are both given", "leave --text out"),
        (
            "--input-tokens 1k --turn-tokens 100",
            "--turn-tokens does not go with generated prompts",
            "use it with --turns",
        ),
        ("--input-tokens 1k --arrivals poisson", "--arrivals poisson needs a rate", "--rate 0.5"),
        ("--input-tokens 1k --arrivals trace", "--arrivals trace needs a trace", "--trace FILE"),
        (
            "--input-tokens 1k --rate 2 --arrivals closed",
            "--rate does not go with --arrivals closed",
            "leave --rate out",
        ),
        ("--input-tokens 1k --states warm", "cache states 'warm' cannot be measured", "--states cold,warm,evicted"),
        ("--input-tokens 1k --states hot", "'hot' is none of cold, warm, evicted, as-is", "--states LIST"),
        ("--input-tokens 1k --flood-tokens 1k", "--flood-tokens does not go without evicted", "--states cold,evicted"),
        ("--input-tokens 1k --num-prefixes 2", "--num-prefixes needs prefixes", "--shared-prefix-tokens"),
        ("--input-tokens 1k --cache-salt=", "--cache-salt is empty", "--cache-salt TEXT"),
        ('--input-tokens 1k --sampling {"cache_salt":"x"}', "sampling field 'cache_salt'", "--cache-salt TEXT"),
        ("--input-tokens 1k --resume", "--resume needs the results file", "-o FILE.jsonl"),
        ("--input-tokens 1k --instance main", "--instance goes with a plan", "name a plan file"),
        ("--input-tokens 1k --slo ttft", "limit 'ttft' is not understood", "ttft=60s"),
        ('--input-tokens 1k --sampling {"max_tokens":1}', "sampling field 'max_tokens'", "leave 'max_tokens' out"),
        ("--trace t.jsonl --sessions 5/4", "--sessions '5/4' is no share above 0% up to 100%", "--sessions 5%"),
        (
            "--input-tokens 1k --input-spread 50",
            "--input-spread '50' is no share from 0% and below 100%",
            "--input-spread 50%",
        ),
    ],
    ids=lambda text: text[:40] if text.startswith("--") else "",
)
def test_what_excludes_itself_is_refused_with_its_cure(longreach: Longreach, options: str, what: str, fix: str) -> None:
    code, out, err = longreach("bench", "http://127.0.0.1:9", *options.split())
    told, _, advice = " ".join(err.split()).partition(" fix: ")
    assert (code, out) == (2, "")
    assert what in told
    assert fix in advice


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ("-o a.jsonl --html a.jsonl", "-o and --html name the same file"),
        ("-o a.jsonl --save-answers ./a.jsonl", "-o and --save-answers name the same file"),
        ("--save-answers a --save-workload a", "--save-answers and --save-workload name the same file"),
        ("--html none/a.html", "there is no folder"),
        ("--save-answers none/a.jsonl", "there is no folder"),
        ("--save-answers held.jsonl", "answers are never overwritten"),
        ("-o held.jsonl/a.jsonl", "there is no folder"),
    ],
    ids=lambda text: text[:30] if text.startswith("-") else "",
)
def test_files_that_cannot_be_written_are_refused_before_anything_is_sent(
    longreach: Longreach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, what: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "held.jsonl").write_text("precious", encoding="utf-8")
    code, out, err = longreach("bench", "http://127.0.0.1:9", *SMALL, *options.split())
    assert (code in {1, 2}, out) == (True, "")
    assert what in " ".join(err.split())
    assert [path.read_text(encoding="utf-8") for path in tmp_path.glob("*.jsonl")] == ["precious"]


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&-"])
def test_a_closed_standard_stream_stops_no_run(closed: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    command = [sys.executable, "-m", "longreach", "bench", "http://127.0.0.1:9", *SMALL, "--json", "-o", str(path)]
    ended = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *command], capture_output=True, check=False)
    assert ended.returncode == 1
    assert len(read_journal(path).records) == 4
    assert closed != "2>&-" or len(json.loads(ended.stdout)["requests"]) == 4


def test_results_are_never_overwritten(longreach: Longreach, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("precious", encoding="utf-8")
    code, _, err = longreach("bench", "http://127.0.0.1:9", *SMALL, "-o", str(path))
    assert code == 2
    assert "exists" in err
    assert path.read_text(encoding="utf-8") == "precious"


def test_a_dry_run_sends_nothing_and_needs_nobody(longreach: Longreach) -> None:
    code, out, _ = longreach("bench", "http://127.0.0.1:9", *SMALL, "--rate", "2", "--dry-run", "--json")
    document = json.loads(out)
    assert code == 0
    assert (document["num_requests"], document["prompt_tokens"], document["output_tokens"]) == (4, 1_200, 64)
    assert document["load"]["arrivals"] == "poisson"
    _, screen, _ = longreach("bench", "http://127.0.0.1:9", *SMALL, "--dry-run")
    assert "4 of 300 tokens, 1,200 in all" in screen


def test_a_plan_gives_length_model_and_an_estimate(longreach: Longreach, tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    made = ("plan", "qwen3-8b", "--gpus", "1xH100", "--max-model-len", "32k", "--mean-input", "8k")
    longreach(*made, "-o", str(plan))
    code, out, _ = longreach("bench", str(plan), "--dry-run", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["longest_prompt_tokens"] == 8_000
    assert 0 < document["expected_cold_s"]["low"] < document["expected_cold_s"]["high"]


@pytest.mark.parametrize(
    ("mean", "output", "tokens", "why"),
    [
        ("8k", "128", 8_000, "the plan's mean"),
        ("32k", "128", 16_000, "half the plan's longest request, 32,000, which is its mean too"),
        ("31k", "2k", 30_000, "the plan's mean is 31,000, and the answer takes 2,000 of 32,000"),
    ],
    ids=["mean", "mean is longest", "no room for the answer"],
)
def test_a_length_that_nobody_named_is_explained(
    longreach: Longreach, tmp_path: Path, mean: str, output: str, tokens: int, why: str
) -> None:
    plan = str(tmp_path / "plan.yaml")
    longreach("plan", "qwen3-8b", "--gpus", "1xH100", "--max-model-len", "32k", "--mean-input", mean, "-o", plan)
    _, out, _ = longreach("bench", plan, "--output-tokens", output, "--dry-run", "--json")
    document = json.loads(out)
    assert document["longest_prompt_tokens"] == tokens
    assert document["notes"] == [f"no --input-tokens: {tokens:,}, {why}"]
    code, _, err = longreach("bench", plan, "--input-tokens", "32k", "--dry-run")
    assert (code, "--input-tokens 31872" in err) == (2, True)
    code, out, err = longreach("bench", plan, "--num-requests", "2")
    assert (code, out) == (1, "")
    assert f"fix: longreach up {plan}" in err


async def test_a_warm_up_is_sent_and_not_reported(bench: Bench) -> None:
    async with known_truth() as server:
        code, document, err = await bench(server, *SMALL, "--warmup", "2")
        assert len(server.requests) == 6
    assert (code, len(document["requests"]), document["summary"]["num_ok"]) == (0, 4, 4)
    assert "warm-up" in [phase["name"] for phase in document["phases"]]
    assert "the first request" not in err


def test_nobody_there_is_one_error_for_people_and_leaves_no_file(
    longreach: Longreach, tmp_path: Path, state_home: Path
) -> None:
    path = tmp_path / "w.jsonl"
    code, out, err = longreach("bench", "http://127.0.0.1:9", *SMALL, "--save-workload", str(path))
    assert (code, out) == (1, "")
    assert err.splitlines()[-3] == "error: nothing answers at http://127.0.0.1:9"
    assert "is it started" in err
    assert "fix: longreach up PLAN" in err
    assert not path.exists()
    assert not state_home.exists()


def test_a_trace_is_tried_as_it_will_be_sent(longreach: Longreach, tmp_path: Path) -> None:
    plan, trace = str(tmp_path / "plan.yaml"), tmp_path / "t.jsonl"
    longreach("plan", "qwen3-8b", "--gpus", "1xH100", "--max-model-len", "32k", "-o", plan)
    lines = ((0, 600, 0), (2_000, 40_960, 100), (3_480_000, 700, 300))
    trace.write_text(
        "".join(
            json.dumps(
                {
                    "timestamp": moment,
                    "input_length": tokens,
                    "output_length": 8,
                    "hash_ids": [*range(first, first + -(-tokens // 512))],
                }
            )
            + "\n"
            for moment, tokens, first in lines
        ),
        encoding="utf-8",
    )
    _, out, _ = longreach("bench", plan, "--trace", str(trace), "--dry-run")
    assert "requests: 2 of 600 to 700 tokens" in out
    assert "note: left out: 1 request longer than 32,000 tokens" in out
    assert "last request is due after 58 min 00 s (--time-scale 0.02 makes it 1 min 10 s)" in out
    _, out, _ = longreach("bench", "http://127.0.0.1:9", "--trace", str(trace), "--dry-run")
    assert "requests: 3 of" in out
    assert "the server's limit is asked when the run begins" in out


async def test_a_run_taken_up_again_says_what_is_left(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    async with known_truth() as server:
        _, _, first = await bench(server, *SMALL, "-o", str(path), "--resume")
        num_sent = len(server.requests)
        code, document, second = await bench(server, *SMALL, "-o", str(path), "--resume")
        assert len(server.requests) == num_sent
    assert f"there is no {path} yet: the run begins anew" in first
    assert "nothing is left to send" in second
    assert "nothing is left" not in first
    assert (code, len(document["requests"])) == (0, 4)


def test_the_first_word_may_name_a_file_command(longreach: Longreach) -> None:
    code, out, _ = longreach("bench", "compare", "--help")
    assert code == 0
    assert "longreach bench compare [OPTIONS] A.jsonl B.jsonl" in out


@pytest.mark.parametrize(
    ("words", "incomplete", "expected"),
    [
        (["bench"], "comp", ["compare"]),
        (["bench", "x", "--arr"], "", []),
        (["bench", "x", "--arrivals"], "p", ["poisson"]),
        (["bench", "compare", "a", "b"], "--mar", ["--margin"]),
    ],
)
def test_the_shell_completes_it(words: list[str], incomplete: str, expected: list[str]) -> None:
    found = ShellComplete(cli, {}, "longreach", "_LONGREACH_COMPLETE").get_completions(words, incomplete)
    assert [item.value for item in found if item.type == "plain"] == expected
