"""The screen of each example, compared with the one on file; `make generate` writes them anew."""

import io
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from longreach.cli.main import run
from longreach.cli.plan_file import read_plan
from longreach.engine.release import DEFAULT_RELEASE, get_release
from longreach.hardware.machine import machine_from
from longreach.model.source import load_model
from longreach.plan.build import make_plan
from longreach.plan.goal import Goal, NamedGoal
from longreach.report.plan_text import render_plan
from longreach.report.style import Paint, table

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
SCREENS = ROOT / "tests/corpus/screens"
COMMANDS = {
    "does-not-fit": "qwen3-32b --gpus 4xRTX4090 --tp 4 --weights w4a16 --kv-cache-dtype fp8_e4m3 --kv-cache-memory-bytes 10G "
    "--max-model-len 750k",
    "mix": "qwen3-32b --gpus 8xRTX4090 --weights w4a16 --mix 90%:8k,10%:100k",
    "sweep": "qwen3.6-27b --gpus 4xRTX4090 --weights w4a16 --max-model-len 750k --sweep tp,kv_cache_dtype,max_model_len=128k/750k",
    "older-release": "qwen3-32b --gpus 2xA100-SXM-80GB --numa 2 --max-model-len 100k --vllm 0.10.0",
}


def _screen(example: Path) -> str:
    return render_plan(read_plan(example), Paint()) + "\n"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_screen_is_the_one_on_file(example: Path) -> None:
    assert _screen(example) == (SCREENS / f"{example.stem}.txt").read_text(encoding="utf-8")


def _screen_of(command: str) -> str:
    with redirect_stdout(io.StringIO()) as printed:
        run(["plan", *command.split()])
    return printed.getvalue()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_screen_of_the_command_is_the_one_on_file(name: str) -> None:
    assert _screen_of(COMMANDS[name]) == (SCREENS / f"{name}.txt").read_text(encoding="utf-8")


def test_verbose_adds_the_arithmetic_and_all_advice() -> None:
    plan = read_plan(ROOT / "examples/four-card-box.yaml")
    brief, full = render_plan(plan, Paint()), render_plan(plan, Paint(), verbose=True)
    assert "PFLOP" in full
    assert plan.instances[0].speed[0].arithmetic[0] in full
    assert full.count("\n  fix: ") == len(plan.findings)
    assert full.count("\n  fix: ") > brief.count("\n  fix: ")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("gpt-oss-20b --gpus H100 --vllm 0.9.2", "vLLM 0.9.2 does not know GptOssForCausalLM (LR116)"),
        ("qwen3-8b --gpus cpu", "its memory is not known (LR120)"),
        (
            "qwen3.6-27b --gpus 4xRTX4090 --kv-cache-memory-bytes 15G",
            "weights and KV cache do not fit a GPU of 23.65 GiB (LR101)",
        ),
        (
            "qwen3.6-27b --gpus 4xRTX4090 --weights w4a16",
            "does not hold the w4a16 weights that the plan counts with (LR140)",
        ),
        ("qwen3-8b --gpus H100 --ttft 0.001", "is impossible for 40960 cold tokens (LR801)"),
    ],
)
def test_the_headline_names_the_first_error(command: str, reason: str) -> None:
    headline, _, _ = _screen_of(command).partition("\n\n")
    assert headline.endswith(reason)


def test_colour_changes_no_letter() -> None:
    plan = read_plan(ROOT / "examples/dense.yaml")
    coloured = render_plan(plan, Paint(enabled=True))
    assert "\x1b[1;32mFITS\x1b[0m" in coloured
    for code in ("1", "1;32", "1;33", "1;36", "1;31", "32", "2"):
        coloured = coloured.replace(f"\x1b[{code}m", "")
    assert coloured.replace("\x1b[0m", "") == render_plan(plan, Paint())


def test_a_machine_without_gpus_is_not_told_of_any() -> None:
    goal = NamedGoal("main", Goal(max_model_len=4096, kv_cache_memory_bytes=2**30))
    model, release = load_model("qwen2.5-0.5b", None), get_release(DEFAULT_RELEASE)
    text = render_plan(make_plan(model, machine_from(None, 0), release, [goal]), Paint())
    assert "blocks of" in text
    assert "GPU" not in text.partition("Command")[0]
    assert "\n  memory" in text


def test_a_table_aligns_numbers_to_the_right() -> None:
    assert table([("a", "1"), ("bb", "22")], frozenset({1}), indent="") == ["a    1", "bb  22"]


if __name__ == "__main__":
    for path in EXAMPLES:
        (SCREENS / f"{path.stem}.txt").write_text(_screen(path), encoding="utf-8")
    for title, line in COMMANDS.items():
        (SCREENS / f"{title}.txt").write_text(_screen_of(line), encoding="utf-8")
