"""A comparison of tiers on the real engine: the CPU tier is kept where prompts come back, and dropped where none does."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from longreach.cli.main import run
from longreach.cli.plan_file import read_plan, write_plan
from longreach.engine.release import get_release
from longreach.hardware.machine import machine_from
from longreach.host.ports import choose_free_port
from longreach.launch.state import default_state_folder
from longreach.launch.tiny_model import write_tiny_model
from longreach.model.source import load_model
from longreach.plan.build import make_plan
from longreach.plan.goal import Goal, NamedGoal

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(1800)]

PROMPT_TOKENS = 4_000
ROUNDS = 5
GPU_TOKENS = 16_384  # 512 bytes a token
Tiers = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture(scope="module")
def plan_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model with room for four prompts in its KV cache, and for thirty in the CPU tier."""
    folder = tmp_path_factory.mktemp("tiers")
    model = str(write_tiny_model(folder / "tiny"))
    goal = Goal(
        max_model_len=8_192,
        mean_input_tokens=PROMPT_TOKENS,
        kv_cache_memory_bytes=GPU_TOKENS * 512,
        cpu_tier_bytes=64 * 2**20,
        max_num_batched_tokens=8_192,
        max_num_seqs=2,
        model_path=model,
        served_model_name="tiny",
        port=choose_free_port(),
    )
    plan = make_plan(load_model(model, None), machine_from(None, 0), get_release("0.32.0"), [NamedGoal("main", goal)])
    assert plan.instances[0].kv_cache is not None
    assert plan.instances[0].kv_cache.kv_capacity_tokens == GPU_TOKENS
    write_plan(folder / "tiny.yaml", plan)
    return folder / "tiny.yaml"


@pytest.fixture
def tiers(
    plan_path: Path,
    engine_python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Tiers:
    """Compare, with the winning plan in best.yaml: (exit code, document)."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def compare(*argv: str, runs: str = "runs") -> tuple[int, dict[str, Any]]:
        sizes = ("--input-tokens", str(PROMPT_TOKENS), "--output-tokens", "4")
        places = (
            "--engine",
            str(engine_python),
            "-o",
            str(tmp_path / runs),
            "--write-plan",
            str(tmp_path / "best.yaml"),
        )
        code = run(["tiers", str(plan_path), *sizes, *places, *argv, "--json"])
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return code, document

    return compare


def variant(document: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(item for item in document["variants"] if item["name"] == name)
    return found


def told_apart(tiers: Tiers) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Comparisons until one is told apart: on a busy machine one run each may rightly be too few."""
    for runs in ("first", "second", "third"):
        code, document = tiers("--rounds", str(ROUNDS), runs=runs)
        if document["steps"][0]["verdict"] != "not_enough_data" or runs == "third":
            yield runs, code, document


def test_the_cpu_tier_is_kept_where_prompts_come_back(tiers: Tiers, plan_path: Path, tmp_path: Path) -> None:
    runs, code, document = next(told_apart(tiers))
    step = document["steps"][0]
    assert (code, step["verdict"], document["winner"]) == (0, "keep", "gpu+cpu"), document
    gpu, cpu = variant(document, "gpu"), variant(document, "gpu+cpu")
    assert gpu["prompt_tokens"] == cpu["prompt_tokens"] == ROUNDS * 8 * PROMPT_TOKENS, (
        "the same workload, exact at the server"
    )
    assert gpu["hit_share"] < 0.1, "the GPU's cache overflows"
    assert cpu["hits_by_source"]["host"] >= (ROUNDS - 1) * 8 * 3_840, (
        "every repeat is served by the CPU tier, in whole blocks"
    )
    assert cpu["stored_bytes"] >= 8 * 3_840 * 512
    assert cpu["loaded_bytes"] >= (ROUNDS - 1) * 8 * 3_840 * 512
    assert read_plan(tmp_path / "best.yaml").instances[0].argv == read_plan(plan_path).instances[0].argv
    assert default_state_folder().deployments() == (), "no engine is left"
    code, again = tiers("--rounds", str(ROUNDS), "--resume", runs=runs)
    assert (code, again["steps"]) == (0, document["steps"]), "what has ended is not run again"


def test_the_cpu_tier_is_dropped_where_nothing_comes_back(tiers: Tiers, tmp_path: Path) -> None:
    code, document = tiers("--no-reuse")
    step = document["steps"][0]
    assert (code, step["verdict"], document["winner"]) == (0, "drop", "gpu"), document
    assert "not one prompt token came from the CPU tier" in step["why"]
    assert variant(document, "gpu+cpu")["stored_bytes"] > 0, "it was there, and took what it was given"
    best = read_plan(tmp_path / "best.yaml").instances[0]
    assert best.options.offload is None
    assert [tier.name for tier in best.tiers] == ["gpu"]
