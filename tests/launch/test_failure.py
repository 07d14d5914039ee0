from pathlib import Path

import pytest

from longreach.launch.failure import describe_exit, explain_end, explain_lateness, explain_silence

LOG = Path("/logs/long.log")
REFUSED = """\
(EngineCore pid=1) INFO 11-30 15:05:04 [x.py:1] Using LBHNC KV cache layout.
(EngineCore pid=1) ERROR 11-30 15:05:04 [core.py:1510] EngineCore failed to start.
(EngineCore pid=1) ERROR 11-30 15:05:04 [core.py:1510] ValueError: To serve at least one request with the model's max seq \
len (16384), (0.03 GiB KV cache is needed, which is larger than the available KV cache memory (0.02 GiB). Based on the \
available memory, the estimated maximum model length is 10112.
RuntimeError: Engine core initialization failed. See root cause above.
""".splitlines()


def test_the_decisive_line_is_the_proof() -> None:
    error = explain_end("long", 1, REFUSED, LOG)
    assert error.cause == "kv_too_small_for_max_len"
    assert error.why.startswith("line 3 of /logs/long.log: ValueError: To serve at least one request")


def test_an_error_that_is_in_no_table_is_shown_as_it_is() -> None:
    error = explain_end("long", 1, ["NotImplementedError: FP10 needs a moon."], LOG)
    assert error.what == "engine 'long' did not start, for a reason that is new to us"
    assert error.why == "line 1 of /logs/long.log: NotImplementedError: FP10 needs a moon."
    assert error.cause == "unknown_start_failure"


@pytest.mark.parametrize(
    ("code", "words", "reason"),
    [
        (1, "exit code 1", "names no cause that is known"),
        (-9, "killed by SIGKILL", "when memory runs out"),
        (-15, "killed by SIGTERM", "asked it to stop while it was starting"),
        (-64, "killed by SIGRTMAX", "ended from outside"),
    ],
)
def test_without_a_known_line_the_exit_and_the_last_lines_are_told(code: int, words: str, reason: str) -> None:
    error = explain_end("long", code, ["one", "", "two"], LOG)
    assert words in error.what
    assert reason in error.why
    assert error.why.endswith("its last lines: one / two")
    assert error.cause is None


def test_an_empty_log_is_said_to_be_empty() -> None:
    assert "the log is empty" in explain_end("long", 127, [], LOG).why
    assert describe_exit(-99) == "killed by signal 99"


@pytest.mark.parametrize(("cpu_s", "words"), [(290.0, "so it was working"), (1.0, "so it was waiting for something")])
def test_a_silence_tells_work_from_waiting(cpu_s: float, words: str) -> None:
    error = explain_silence("long", "compile", 300.0, cpu_s, ["Starting torch.compile"], LOG)
    assert error.what == "engine 'long' logged nothing for 5 min 00 s in phase 'compile'"
    assert words in error.why
    assert "--stall 600" in error.fix


def test_a_silence_after_an_error_names_the_error() -> None:
    error = explain_silence("long", "kv_cache", 300.0, 0.0, REFUSED, LOG)
    assert error.cause == "kv_too_small_for_max_len"
    assert "an earlier error: ValueError: To serve at least" in error.why


def test_the_last_moment_is_named() -> None:
    error = explain_lateness("long", "weights", 10_800.0, LOG)
    assert error.what == "engine 'long' was not ready after 3 h 00 min"
    assert error.why == "it is in phase 'weights' and still logging"


def test_a_full_disk_is_the_reason_when_nothing_else_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longreach.launch.failure.read_free_bytes", lambda _folder: 0)
    error = explain_end("long", 1, ["one"], tmp_path / "long.log")
    assert error.why == "the disk that holds its log is full (0 bytes free); its last lines: one"
    assert error.fix == f"make room for {tmp_path / 'long.log'}"


def test_a_line_of_thousands_of_characters_is_cut() -> None:
    why = explain_end("long", 1, ["with config: " + "x" * 5000, "end"], LOG).why
    assert len(why) < 400
    assert why.endswith("x ... / end")
