import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Longreach = Callable[..., tuple[int, str, str]]
PLAN = (sys.executable, "-m", "longreach", "plan", "qwen3-8b", "--gpus", "1xH100")


@pytest.mark.parametrize(
    "argv", [("plan", "qwen3-8b", "--port", "0"), ("plan",), ("plna",), ("explain", "LR000")], ids=" ".join
)
def test_wrong_usage_is_a_document_too(longreach: Longreach, argv: tuple[str, ...]) -> None:
    code, out, err = longreach(*argv, "--json")
    error = json.loads(out)["error"]
    assert code == 2
    assert err
    assert all(error[key] for key in ("what", "why", "fix"))


@pytest.mark.parametrize("word", ["caf\udce9.yaml", "\ud800"])
def test_words_that_are_not_utf8_are_refused_once_for_all(longreach: Longreach, word: str) -> None:
    code, out, err = longreach("verify", word, "--json")
    assert code == 2
    assert "argument 2 holds bytes that are no letters" in err
    assert json.loads(out)["error"]["what"] == "the command line is not UTF-8"


def test_no_model_is_not_this_folder(longreach: Longreach) -> None:
    code, _, err = longreach("plan", "", "--gpus", "1xH100")
    assert code == 2
    assert "no model is named" in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has the device that is always full")
def test_a_full_disk_is_an_error_with_advice() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ended = subprocess.run([*PLAN, "--json"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert "the output could not be written" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_reader_that_leaves_ends_the_command_quietly() -> None:
    with subprocess.Popen([*PLAN, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""


def test_a_plan_is_the_same_under_any_hash_seed() -> None:
    outputs = {
        subprocess.run([*PLAN, "--json"], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        for seed in ("0", "1", "42")
    }
    assert len(outputs) == 1


WAITS_FOR_AN_ANSWER = """
import socket, subprocess, sys
with socket.create_server(("127.0.0.1", 0)) as server:
    url = f"http://127.0.0.1:{server.getsockname()[1]}"
    command = [sys.executable, "-m", "longreach", "verify", url, "--length", "1000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    connection, _ = server.accept()  # dropped, it would be closed
    process.send_signal(int(sys.argv[1]))
    print(process.communicate(timeout=20)[0])
    sys.exit(process.returncode)
"""


@pytest.mark.parametrize(
    ("number", "before"),
    [
        (signal.SIGINT, ""),
        (signal.SIGTERM, ""),
        (signal.SIGHUP, ""),
        (signal.SIGTERM, "trap '' INT HUP; "),
    ],
    ids=["ctrl-c", "kill", "closed terminal", "kill in the background"],
)
def test_every_way_to_stop_gives_the_partial_report(number: signal.Signals, before: str) -> None:
    command = ["sh", "-c", f'{before}exec "$@"', "sh", sys.executable, "-c", WAITS_FOR_AN_ANSWER, str(int(number))]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert ended.returncode == 130
    assert "stopped early" in ended.stdout


@pytest.mark.parametrize(
    ("command", "what", "why", "fix"),
    [
        ("plan", "missing argument 'MODEL'", "longreach plan needs it", "longreach plan [OPTIONS] MODEL"),
        ("plan --gpus", "option '--gpus' requires an argument", "longreach plan takes --gpus NxGPU", "plan --help"),
        ("plan m --verbose=3", "'--verbose' does not take a value", "takes --verbose without a value", "plan --help"),
        ("plan m --gpuss 3", "no such option '--gpuss'", "longreach plan has no option", "did you mean --gpus"),
        ("plan m --tp 0", "0 is not in the range", "longreach plan does not", "--tp from 1 to 1000000"),
        ("plan m --ttft 0", "0.0 is not in the range", "longreach plan does not", "--ttft a number above 0"),
        (
            "plan m --gpu-memory-utilization 2",
            "2.0 is not",
            "longreach plan",
            "--gpu-memory-utilization above 0 up to 1",
        ),
        ("plan m --weights x", "'x' is not one of", "longreach plan", "--weights one of bf16, fp8"),
        (f"plan m --concurrency {'9' * 5000}", "999...", "longreach plan", "--concurrency from 1 to 1000000"),
        (f"plan qwen3-8b --vllm 0.{'9' * 5000}", "unknown vLLM release", "rules are known for", "--vllm"),
        ("plna", "no command 'plna'; did you mean 'plan'", "longreach does not take it", "longreach --help"),
        ("--foo", "no such option '--foo'", "longreach has no option", "longreach --help"),
    ],
    ids=lambda value: value[:24],
)
def test_each_way_to_mistype_has_its_reason_and_its_cure(
    longreach: Longreach, command: str, what: str, why: str, fix: str
) -> None:
    code, out, err = longreach(*command.split())
    lines = " ".join(err.split())
    assert (code, out) == (2, "")
    told, reason = lines.partition(" why: ")[0], lines.partition(" why: ")[2]
    assert what in told
    assert why in reason.partition(" fix: ")[0]
    assert fix in reason.partition(" fix: ")[2]


def test_no_command_at_all_shows_the_help(longreach: Longreach) -> None:
    code, _, err = longreach()
    assert code == 2
    assert "Commands:" in err
