"""`longreach lint` as people call it: words, files, stdin; text, JSON, the mended command; exit codes."""

import io
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from longreach.engine.release import NEWEST_RELEASE

Longreach = Callable[..., tuple[int, str, str]]

BAD = ("vllm", "serve", "m", "--max-model-lenn", "8192")
GOOD = ("vllm", "serve", "m", "--max-model-len", "8192", "--host", "127.0.0.1")
COMPOSE = """
services:
  short:
    image: vllm/vllm-openai:v0.28.0
    command: --model m --max-model-len 8192
  long:
    image: vllm/vllm-openai:v0.10.2
    command: ["--model", "m", "--kv-cache-memory-bytes", "10GiB"]
"""


def test_a_clean_command_exits_0_and_says_where_it_works(longreach: Longreach) -> None:
    code, out, _ = longreach("lint", "--", *GOOD)
    assert code == 0
    assert out.startswith(f"vLLM {NEWEST_RELEASE}, model not known, GPUs not known")
    assert out.splitlines()[-1] == "free of errors on vLLM 0.8.5.post1 and later (memory not judged)"


def test_an_error_exits_1_and_names_its_code(longreach: Longreach) -> None:
    code, out, _ = longreach("lint", "--vllm", "0.32", "--", *BAD)
    assert code == 1
    assert "error[LR9" in out
    assert "--max-model-len" in out


def test_fix_prints_a_script_that_is_clean(longreach: Longreach) -> None:
    code, out, _ = longreach("lint", "--fix", "--vllm", "0.32.0", "--", "A=$B", *BAD, "--port", "$PORT")
    assert code == 0
    comments = [line for line in out.splitlines() if line.startswith("#")]
    assert any("mended" in line for line in comments)
    words = shlex.split(out.replace("\\\n", " "), comments=True)
    assert words == ["A=$B", "vllm", "serve", "m", "--port", "$PORT", "--max-model-len", "8192"]
    assert longreach("lint", "--vllm", "0.32.0", "--", *words)[0] == 0


def test_variables_of_the_shell_stay_open_in_the_mended_command(longreach: Longreach) -> None:
    _, out, _ = longreach("lint", "--fix", "--", *BAD, "--port", "$PORT", "--served-model-name", "it's")
    assert '--port "$PORT"' in out


def test_every_command_of_a_file_is_judged_for_its_own_image(longreach: Longreach, tmp_path: Path) -> None:
    path = tmp_path / "compose.yaml"
    path.write_text(COMPOSE)
    code, out, _ = longreach("lint", str(path), "--json")
    commands = {item["where"].split(",")[0]: item for item in json.loads(out)["commands"]}
    assert code == 1
    assert [(name, item["release"]) for name, item in commands.items()] == [("short", "0.28.0"), ("long", "0.10.2")]
    assert not [finding for finding in commands["short"]["findings"] if finding["severity"] == "error"]
    assert commands["long"]["findings"][0]["outcome"] == "refused_by_parser"


def test_stdin_is_read(longreach: Longreach, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(" ".join(BAD).encode())))
    code, out, _ = longreach("lint", "-")
    assert code == 1
    assert "LR9" in out


def test_a_closed_stdin_is_told(longreach: Longreach, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    code, _, err = longreach("lint", "-")
    assert code == 1
    assert "stdin is closed" in err


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_marked_text_is_read_in_its_encoding(longreach: Longreach, tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "serve.sh"
    path.write_text(" ".join(BAD), encoding=encoding)
    assert "--max-model-len" in longreach("lint", str(path))[1]


def test_a_config_that_is_not_here_is_said_to_be_unread(longreach: Longreach) -> None:
    words = ("--", *GOOD, "--config", "no-such.yaml")
    assert "not read: --config no-such.yaml" in longreach("lint", *words)[1]
    assert "(what was not read and memory not judged)" in longreach("lint", *words)[1]
    assert "# not read: --config no-such.yaml" in longreach("lint", "--fix", *words)[1]
    assert json.loads(longreach("lint", "--json", *words)[1])["commands"][0]["not_read"] == ["--config no-such.yaml"]


def test_every_release_is_tried_for_the_first_commands_only(longreach: Longreach, tmp_path: Path) -> None:
    path = tmp_path / "many.sh"
    path.write_text("\n".join(f"{' '.join(GOOD)} --port {port}" for port in range(8000, 8022)))
    out = longreach("lint", str(path))[1]
    assert out.count("free of errors on vLLM 0.8.5.post1 and later") == 20
    assert "for the first 20 of 22 commands" in out


def test_the_mended_command_keeps_the_spelling_of_a_script(longreach: Longreach, tmp_path: Path) -> None:
    path = tmp_path / "serve.sh"
    path.write_text("nohup vllm serve ~/m --max-model-lenn 8192 --api-key 'a$b' \"$@\" > log 2>&1 &\n")
    out = longreach("lint", "--fix", str(path))[1]
    script = " ".join(line.strip(" \\") for line in out.splitlines() if not line.startswith("#"))
    assert script == "nohup vllm serve ~/m --api-key 'a$b' \"$@\" --max-model-len 8192 > log 2>&1 &"


def test_a_long_command_in_one_word_is_no_file_name(longreach: Longreach) -> None:
    code, out, _ = longreach("lint", " ".join(GOOD) + " --served-model-name " + "x" * 5000)
    assert code == 0
    assert out.splitlines()[-1].startswith("free of errors")
    assert longreach("lint", "--", "vllm", "serve", "/" + "m" * 5000, "--config", "c" * 5000 + ".yaml")[0] == 0


def test_a_command_that_stands_twice_is_named_at_both_lines(longreach: Longreach, tmp_path: Path) -> None:
    path = tmp_path / "twice.sh"
    path.write_text(f"{' '.join(BAD)}\n{' '.join(BAD)}\n")
    commands = json.loads(longreach("lint", "--json", str(path))[1])["commands"]
    assert [item["where"] for item in commands] == ["line 1", "line 2"]
    assert commands[0]["findings"] == commands[1]["findings"]


def test_json_keeps_its_contract(longreach: Longreach) -> None:
    _, out, err = longreach(
        "lint", "--json", "--model", "qwen3-32b", "--gpus", "4xRTX4090", "--vllm", "0.32.0", "--", *BAD, "-tp", "4",
        "--kv-cache-memory-bytes", "10G",
    )  # fmt: skip
    document = json.loads(out)
    assert err == ""
    assert {"findings", "kv_cache", "release", "commands"} <= document.keys()
    assert document["findings"][0].keys() == {"code", "severity", "what", "why", "fix", "cause", "outcome"}
    assert document["kv_cache"]["num_blocks"] > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no command is given"),
        (("no-such-file.sh",), "cannot read"),
        (("--", "echo", "hello"), "does not start a vLLM server"),
        (("--vllm", "0.99", "--", *GOOD), "0.99"),
        (("--gpus", "4xNoSuchCard", "--", *GOOD), "NoSuchCard"),
        (("--model", "no-such-model", "--", *GOOD), "no-such-model"),
    ],
    ids=["nothing", "no file", "no server", "no release", "no card", "no model"],
)
def test_wrong_usage_is_told_what_why_fix(longreach: Longreach, words: tuple[str, ...], said: str) -> None:
    code, out, err = longreach("lint", *words)
    assert code in (1, 2)
    assert out == ""
    assert said in err
    assert "fix:" in err


@pytest.mark.parametrize(
    "content",
    [b"\x00\xff\xfe", b"", b"# nothing\n", b"a: [", b"\x89PNG\r\n"],
    ids=["binary", "empty", "comment", "yaml", "png"],
)
def test_files_without_a_command_say_so(longreach: Longreach, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "launch.yaml"
    path.write_bytes(content)
    code, _, err = longreach("lint", str(path))
    assert code in (1, 2)
    assert "fix:" in err


def test_the_model_of_a_config_file_is_the_model(longreach: Longreach, tmp_path: Path) -> None:
    path = tmp_path / "serve.yaml"
    path.write_text("model: Qwen/Qwen3-32B\ntensor-parallel-size: 6\n")
    document = json.loads(
        longreach("lint", "--json", "--vllm", "0.32.0", "--", "vllm", "serve", "--config", str(path))[1]
    )
    assert document["commands"][0]["model"] == "qwen3-32b"
    assert "tp_not_dividing_heads" in {finding["cause"] for finding in document["findings"]}
