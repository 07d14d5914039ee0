"""The story as a user runs it: every command in its own process, on the real engine."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from longreach.host.ports import choose_free_port
from longreach.launch.tiny_model import write_tiny_model

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]
_LIMIT_S = 600


def _run(state: Path, *argv: str, expected_code: int = 0) -> str:
    environment = os.environ | {"XDG_STATE_HOME": str(state), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "longreach", *argv],
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        env=environment,
        check=False,
    )
    assert done.returncode == expected_code, f"{' '.join(argv)}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _json(state: Path, *argv: str, expected_code: int = 0) -> Any:
    return json.loads(_run(state, *argv, "--json", expected_code=expected_code))


def test_plan_up_status_verify_logs_down(engine_python: Path, tmp_path: Path) -> None:
    state, plan_path = tmp_path / "state", tmp_path / "tiny.yaml"
    folder = write_tiny_model(tmp_path / "tiny")
    plan = _json(
        state, "plan", str(folder), "--gpus", "cpu", "--max-model-len", "16k", "--kv-cache-memory-bytes", "32M",
        "--max-num-seqs", "4", "--port", str(choose_free_port()), "-o", str(plan_path),
    )  # fmt: skip
    capacity = plan["instances"][0]["kv_cache"]["kv_capacity_tokens"]
    try:
        report = _json(state, "up", str(plan_path), "--engine", str(engine_python.parents[1]))
        (instance,) = report["instances"]
        verdicts = {item["fact"]: (item["verdict"], item["observed"]) for item in instance["observations"]}
        assert verdicts["kv_capacity_tokens"] == ("pass", capacity)
        assert not instance["findings"]
        (line,) = _json(state, "status")["instances"]
        assert (line["life"], line["health"], line["deployment"]) == ("alive", "ok", "tiny")
        verified = _json(state, "verify", str(plan_path), "--no-needles", "--output-tokens", "16")
        assert [item["name"] for item in verified["items"] if item["verdict"] == "fail"] == []
        assert [send["usage"]["prompt_tokens"] for send in verified["sends"]] == [16_000 - 16] * 2
        assert [send["cached_tokens"] == 0 for send in verified["sends"]] == [True, False]
        assert f"{capacity:,} tokens" in _run(state, "logs", "tiny", "-n", "500")
    finally:
        ended = _json(state, "down", "tiny")
    assert [(end["name"], end["outcome"]) for end in ended["instances"]] == [("main", "stopped")]
    assert _json(state, "status") == {"instances": []}
    assert _run(state, "logs", "tiny", "-n", "1")  # the log outlives the engine


def test_the_demo_proves_the_main_job(engine_python: Path, tmp_path: Path) -> None:
    state, kept = tmp_path / "state", tmp_path / "kept"
    out = _run(state, "demo", "--engine", str(engine_python.parents[1]), "--keep", str(kept))
    proven = out[out.index("What was proven") :]
    assert "NOT proven" not in proven
    assert "1,194,731 tokens" in proven
    assert "cold: 32,768 prompt tokens by the server's count, 0 cached" in proven
    assert "the engine was stopped and left nothing behind" in proven
    assert f"longreach tiers {kept}/tiny-tiers.yaml" in out
    for plan in ("tiny.yaml", "tiny-tiers.yaml"):
        assert str(kept / "tiny-qwen3") in _run(state, "up", str(kept / plan), "--dry-run")
