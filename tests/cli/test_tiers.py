"""`longreach tiers` as it is typed, up to where an engine would start."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.measure.tiers.tier_cases import planned
from tests.report.html import sample_tiers

from longreach.cli.plan_file import write_plan

Longreach = Callable[..., tuple[int, str, str]]


@pytest.fixture
def plan_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    write_plan(tmp_path / "plan.yaml", planned(disk=str(tmp_path / "kv")))
    return tmp_path / "plan.yaml"


def test_a_dry_run_shows_commands_workload_and_what_it_takes(longreach: Longreach, plan_path: Path) -> None:
    code, out, _ = longreach("tiers", str(plan_path), "--dry-run")
    assert code == 0
    heads = [line for line in out.splitlines() if line.startswith("# ")]
    assert heads == ["# GPU", "# GPU+CPU: the same, and", "# GPU+CPU+disk: the same, and"]
    assert out.count("vllm serve") == 1, "the whole command once, then what differs"
    assert out.count("--kv-transfer-config") == 2
    between = out.split("# GPU+CPU: the same, and\n")[1].split("\n# ")[0]
    assert between.splitlines()[0].startswith("  --kv-transfer-config ")
    assert len(between.splitlines()) == 1
    assert "groups of 15 prompts twice over, in the same order, and all groups twice" in out
    assert "the GPUs hold 327,680, the CPU tier 1,638,400" in out
    assert "of prefill when nothing is hit" in out
    assert "written at each start with the disk tier" in out
    assert {path.name for path in plan_path.parent.iterdir()} == {"plan.yaml"}


def test_a_dry_run_says_that_the_engine_is_missing(longreach: Longreach, plan_path: Path) -> None:
    code, out, err = longreach("tiers", str(plan_path), "--dry-run", "--engine", "/nowhere")
    assert code == 0
    assert "it would not start: the engine's command 'vllm' is not installed: there is nothing at /nowhere" in err
    assert "vllm serve" in out


def test_a_dry_run_of_a_trace_says_what_it_sends(longreach: Longreach, plan_path: Path) -> None:
    trace = plan_path.parent / "trace.jsonl"
    lines = [
        {"timestamp": 30_000 * number, "input_length": 2_000, "output_length": 40, "hash_ids": [1, 2, 3, 10 + number]}
        for number in range(3)
    ]
    trace.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    _, out, _ = longreach("tiers", str(plan_path), "--dry-run", "--trace", str(trace))
    assert "3 requests, 6,000 prompt tokens, 48 answer tokens each run, sent over 1 min 00 s" in out
    assert "each run: how long it takes cannot be told: the prompts of a workload that is given differ" in out
    _, out, _ = longreach("tiers", str(plan_path), "--dry-run", "--trace", str(trace), "--json")
    assert json.loads(out)["workload"]["span_s"] == 60


@pytest.mark.parametrize("address", ["http://127.0.0.1:8000", "https://gpu.example/v1", "127.0.0.1:8000"])
def test_a_server_is_no_plan(longreach: Longreach, address: str) -> None:
    code, out, err = longreach("tiers", address)
    assert (code, out) == (2, "")
    assert f"'{address}' is a server" in err
    assert "tiers starts engines itself" in err
    assert f"longreach bench {address}" in err


def test_a_dry_run_is_a_document_too(longreach: Longreach, plan_path: Path) -> None:
    code, out, _ = longreach("tiers", str(plan_path), "--dry-run", "--json", "--repeats", "2", "--no-reuse")
    document = json.loads(out)
    assert (code, document["outlook"]["num_starts"]) == (0, 6)
    assert document["workload"]["num_requests"] == document["workload"]["num_prompts"]
    assert document["outlook"]["disk_bytes_per_start"] == document["workload"]["distinct_tokens"] * 131_072


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--trace", "t.jsonl", "--workload", "w.jsonl"), "--trace and --workload are both given"),
        (("--trace", "t.jsonl", "--rounds", "2"), "--rounds does not go with --trace"),
        (("--workload", "w.jsonl", "--prompts", "9"), "--prompts does not go with --workload"),
        (("--sessions", "1/4"), "--sessions does not go with generated prompts"),
        (("--no-reuse", "--rounds", "2"), "--no-reuse and --rounds are both given"),
        (("--resume",), "--resume needs the results folder"),
        (("--instance", "other"), "the plan has no instance 'other'"),
        (("--input-tokens", "1M"), "prompts of 1,048,576 tokens do not fit"),
        (("--margin", "2"), "--margin"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_is_refused_before_anything_starts(
    longreach: Longreach, plan_path: Path, words: tuple[str, ...], what: str
) -> None:
    code, out, err = longreach("tiers", str(plan_path), *words)
    assert (code, out) == (2, "")
    assert what in err


@pytest.mark.parametrize("option", ["--write-plan", "--html"])
@pytest.mark.parametrize("place", [".", "nowhere/file"], ids=["a folder", "in no folder"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_starts(
    longreach: Longreach, plan_path: Path, option: str, place: str
) -> None:
    code, out, err = longreach("tiers", str(plan_path), option, str(plan_path.parent / place))
    assert (code, out) == (1, "")
    assert "cannot be written" in err


def test_a_plan_that_won_says_what_to_do_with_it(
    longreach: Longreach, plan_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = sample_tiers.report()
    monkeypatch.setattr("longreach.cli.tiers._Study.run", lambda _: replace(report, runs=report.runs[:-1]))
    won = plan_path.parent / "the best.yaml"
    code, out, err = longreach("tiers", str(plan_path), "--write-plan", str(won))
    assert code == 0
    assert out.rstrip().endswith("best: GPU+CPU")
    assert f"the plan with GPU+CPU is in {won}; next: longreach up '{won}'" in err
    assert won.exists()


def test_results_are_never_overwritten(longreach: Longreach, plan_path: Path) -> None:
    runs = plan_path.parent / "runs"
    runs.mkdir()
    (runs / "gpu.1.jsonl").write_text("{}\n", encoding="utf-8")
    code, _, err = longreach("tiers", str(plan_path), "-o", str(runs))
    assert code == 2
    assert "holds results" in err
    assert (runs / "gpu.1.jsonl").read_text(encoding="utf-8") == "{}\n"


def test_an_engine_that_is_not_there_is_told_once_and_leaves_nothing(longreach: Longreach, plan_path: Path) -> None:
    runs = plan_path.parent / "runs"
    code, out, _ = longreach("tiers", str(plan_path), "--engine", "/nowhere", "--json", "-o", str(runs))
    assert (code, json.loads(out)["error"]["what"]) == (1, "the engine's command 'vllm' is not installed")
    assert not runs.exists()
    assert not (plan_path.parent / "kv").exists()
