"""`plan --sweep`: every row is the plan that its settings make."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longreach.cli import plan_sweep
from longreach.cli.plan_sweep import parse_axes

Longreach = Callable[..., tuple[int, str, str]]
PlanJson = Callable[..., tuple[int, dict[str, Any]]]

_BOX = ("qwen3.6-27b", "--gpus", "4xRTX4090", "--weights", "w4a16", "--max-model-len", "750k")


def test_the_rows_are_every_combination_in_order(plan_json: PlanJson) -> None:
    code, document = plan_json(*_BOX, "--sweep", "tp=2/4,kv_cache_dtype=auto/fp8_e4m3,max_model_len=128k/750k")
    assert code == 0
    settings = [tuple(row["settings"].values()) for row in document["sweep"]]
    assert settings[:3] == [("2", "auto", "128k"), ("2", "auto", "750k"), ("2", "fp8_e4m3", "128k")]
    assert len(settings) == len(set(settings)) == 8
    assert all(row["settings"].keys() == {"tp", "kv-cache-dtype", "max-model-len"} for row in document["sweep"])


@pytest.mark.parametrize(
    "sweep", ["tp,kv_cache_dtype,max_model_len=128k/750k", "weights=w4a16/fp8,spec,pp=1/2", "vllm=0.28.0/0.32.0,gpus"]
)
def test_every_row_equals_the_single_plan(plan_json: PlanJson, sweep: str) -> None:
    _, document = plan_json(*_BOX, "--sweep", sweep)
    for row in document["sweep"]:
        if row["verdict"] == "impossible":
            continue
        options = [word for name, value in row["settings"].items() for word in (f"--{name}", value)]
        _, single = plan_json(*_BOX, *options)
        instance = single["instances"][0]
        assert row["argv"] == instance["argv"]
        assert row["verdict"] == single["verdict"]
        assert row["ttft_cold_s"] == instance["speed"][0]["ttft_cold_s"]
        if row["kv_capacity_tokens"] is not None:
            assert row["kv_capacity_tokens"] == instance["kv_cache"]["kv_capacity_tokens"]


def test_the_front_fits_and_is_beaten_by_none(plan_json: PlanJson) -> None:
    _, document = plan_json(*_BOX, "--sweep", "tp,kv_cache_dtype,max_model_len=32k/128k/750k")
    rows, front = document["sweep"], document["pareto"]
    assert front == [row for row in rows if row["pareto"]]
    assert 0 < len(front) < len(rows)
    assert all(row["verdict"] == "fits" for row in front)
    for row in front:
        assert not any(_beats(other, row) for other in rows if other["verdict"] == "fits")
    for row in rows:
        if row["verdict"] == "fits" and not row["pareto"]:
            assert any(_beats(other, row) for other in front)


def _beats(row: dict[str, Any], other: dict[str, Any]) -> bool:
    mine, theirs = _scores(row), _scores(other)
    return mine != theirs and all(a >= b for a, b in zip(mine, theirs, strict=True))


def _scores(row: dict[str, Any]) -> tuple[float, ...]:
    ttft, decode = row["ttft_cold_s"], row["decode_tokens_per_s"]
    times = -(ttft["low"] + ttft["high"]), decode["low"] + decode["high"]
    return (row["max_model_len"], row["concurrency"], *times, -row["num_gpus"])


def test_what_cannot_be_is_a_row_with_its_reason(plan_json: PlanJson) -> None:
    code, document = plan_json("qwen3-8b", "--gpus", "2xH100", "--sweep", "tp=1/3/4,pp=1/2")
    reasons = {tuple(row["settings"].values()): row["reason"] for row in document["sweep"]}
    assert code == 0
    assert "needs 8 GPUs" in reasons["4", "2"]
    assert [row["verdict"] for row in document["sweep"]][:2] == ["fits", "fits"]
    assert all(row["verdict"] == "impossible" for row in document["sweep"][2:])


def test_nothing_that_fits_is_exit_code_1(plan_json: PlanJson) -> None:
    code, document = plan_json("qwen3-32b", "--gpus", "1xRTX3090", "--sweep", "kv-cache-dtype")
    assert code == 1
    assert document["pareto"] == []


def test_the_table_marks_the_front_and_explains_the_mark(longreach: Longreach) -> None:
    code, out, err = longreach("plan", *_BOX, "--sweep", "tp=2/4,kv_cache_dtype=fp8_e4m3,max_model_len=750k")
    assert code == 0
    header, first, second, _, legend = out.splitlines()
    assert header.split()[:3] == ["tp", "kv-cache-dtype", "max-model-len"]
    assert second.startswith("*  4   fp8_e4m3")
    assert first.split()[0] == "2"
    assert "marked *" in legend
    assert err == ""


def test_a_table_is_written_as_csv(longreach: Longreach, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    longreach("plan", *_BOX, "--sweep", "tp,max_model_len=128k/750k", "-o", str(path))
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    assert [row["tp"] for row in rows] == ["1", "1", "2", "2", "4", "4"]
    assert rows[-1]["verdict"] == "fits"
    assert float(rows[-1]["ttft_low_s"]) < float(rows[-1]["ttft_high_s"])


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (["--sweep", "colour"], "colour"),
        (["--sweep", "tp,tp"], "twice"),
        (["--sweep", "tp=1//2"], "empty value"),
        (["--sweep", "tp="], "empty value"),
        (["--sweep", ""], "names nothing"),
        (["--sweep", "tp=two"], "tp=two"),
        (["--sweep", "vllm=0.99"], "0.99"),
        (["--sweep", "weights=fp8/xx"], "unknown weights 'xx'"),
        (["--sweep", "gpus=4xRTX4090/2xFOO"], "GPU 'FOO'"),
        (["--sweep", "kv-cache-dtype=xx/fp8"], "unknown kv_cache_dtype 'xx'"),
        (["--sweep", "spec=xx/none"], "speculation 'xx'"),
        (["--sweep", "yarn=xx/none"], "YaRN factor 'xx'"),
        (["--sweep", "tp=0/1"], "fix: tp from 1 to"),
        (["--sweep", "eviction=a/lru"], "fix: eviction one of lru, arc"),
        (["--sweep", "concurrency"], "needs values"),
        (["--sweep", "tp=1/2,max-model-len=" + "/".join(map(str, range(1000, 2100)))], "2,200 combinations"),
        (["--sweep", "tp", "-o", "plan.yaml"], "plan.yaml"),
        (["--sweep", "tp", "--instances", "2"], "go with --instances"),
        (["--sweep", "tp", "--instance", "a:tp=1"], "go with --instance"),
        (["--sweep", "disk-tier=/a"], "disk-tier"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_a_sweep_that_cannot_be_is_told_before_it_starts(longreach: Longreach, argv: list[str], word: str) -> None:
    code, out, err = longreach("plan", "qwen3-8b", "--gpus", "2xH100", *argv)
    assert (code, out) == (2, "")
    assert word in err


def test_values_keep_their_commas_apart_from_the_names() -> None:
    axes = parse_axes("tp=1/2,kv_cache_dtype,spec=mtp:1/none")
    assert [(axis.name, axis.values) for axis in axes] == [
        ("tp", ("1", "2")),
        ("kv-cache-dtype", ()),
        ("spec", ("mtp:1", "none")),
    ]


def test_ctrl_c_keeps_the_rows_that_are_there(
    longreach: Longreach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[object] = []
    plan_one = plan_sweep._plan_one

    def stop_at_the_third(settings: dict[str, str], swept: plan_sweep.Swept) -> object:
        if len(planned) == 2:
            raise KeyboardInterrupt
        planned.append(settings)
        return plan_one(settings, swept)

    monkeypatch.setattr(plan_sweep, "_plan_one", stop_at_the_third)
    path = tmp_path / "table.csv"
    code, out, err = longreach("plan", *_BOX, "--sweep", "max_model_len=8k/16k/32k/64k", "-o", str(path))
    assert code == 130
    assert len(out.splitlines()) == 5
    assert "stopped after 2 of 4 combinations" in err
    assert f"{path} holds these 2 rows and is not complete" in err
    assert [row["max-model-len"] for row in csv.DictReader(path.read_text().splitlines())] == ["8k", "16k"]
    planned.clear()
    json_code, json_out, _ = longreach("plan", *_BOX, "--sweep", "max_model_len=8k/16k/32k", "--json")
    document = json.loads(json_out)
    assert (json_code, document["complete"], len(document["sweep"])) == (130, False, 2)


@pytest.mark.parametrize(
    ("axis", "rows"),
    [("tp=1/1/01", ["1"]), ("gpus=1xH100/H100/2xH100", ["1xH100", "2xH100"]), ("max-model-len=8k/8000", ["8k"])],
)
def test_two_names_of_one_value_are_one_row(plan_json: PlanJson, axis: str, rows: list[str]) -> None:
    _, document = plan_json("qwen3-0.6b", "--gpus", "1xH100", "--sweep", axis)
    assert document["complete"]
    assert [next(iter(row["settings"].values())) for row in document["sweep"]] == rows
