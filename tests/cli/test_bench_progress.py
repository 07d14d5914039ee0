import io
from dataclasses import replace

import pytest

from longreach.cli.bench_progress import BenchProgress, describe
from longreach.measure.bench.events import BenchEvent

HALF_WAY = BenchEvent("requests", 60.0, "warm 1", 20, 10, 1, 4_000, 1_000, 2.5, 180.0)


def test_a_line_tells_how_far_how_well_and_how_much_longer() -> None:
    assert describe(HALF_WAY) == (
        "warm 1: 10 of 20 requests, 1 failed, 1,000 of 4,000 tokens, TTFT median 2.5 s, 3 min 00 s left"
    )


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (
            110,
            "warm 1: 10 of 20 requests, 1 failed, TTFT median 2.5 s, next request due in 2 min 00 s, 3 min 00 s left",
        ),
        (90, "warm 1: 10 of 20 requests, 1 failed, next request due in 2 min 00 s, 3 min 00 s left"),
        (60, "warm 1: 10 of 20 requests, 1 failed, 3 min 00 s left"),
    ],
)
def test_a_narrow_line_leaves_out_what_is_missed_least(columns: int, line: str) -> None:
    told = describe(replace(HALF_WAY, next_due_s=120.0), columns)
    assert told == line
    assert len(told) <= columns


def test_a_bar_fits_a_terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    progress = BenchProgress()
    progress(replace(HALF_WAY, ttft_p50_s=24.6))
    progress._bar.refresh()
    progress.close()
    assert "3 min 00 s left" in screen.getvalue()
    assert "\N{HORIZONTAL ELLIPSIS}" not in screen.getvalue()


def test_before_the_first_answer_nothing_is_guessed() -> None:
    event = BenchEvent("requests", 1.0, "cold", 20, 0, 0, 4_000, 0)
    assert describe(event) == "cold: 0 of 20 requests, 0 of 4,000 tokens"


def test_without_a_terminal_there_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    progress = BenchProgress(lambda: now)
    for event in (BenchEvent("reach"), BenchEvent("prompts"), BenchEvent("prompts"), BenchEvent("reach")):
        progress(event)
    for _ in range(31):
        now += 1.0
        progress(HALF_WAY)
    progress(BenchEvent("requests", say="nothing answers any more"))
    progress.close()
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["asking the server who it is", "writing the prompts"]
    assert [line.startswith("warm 1: 10 of 20") for line in lines[2:4]] == [True, True]
    assert lines[4:] == ["nothing answers any more"]


def test_a_terminal_that_cannot_move_its_cursor_gets_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    progress = BenchProgress()
    progress(BenchEvent("reach"))
    progress(BenchEvent("finished"))
    progress.close()
    assert capsys.readouterr().err == "asking the server who it is\n"
