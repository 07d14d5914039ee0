from dataclasses import replace
from pathlib import Path

from longreach.launch.compare import Observation
from longreach.launch.down import DownReport, InstanceEnd
from longreach.launch.progress import PhaseTime
from longreach.launch.status import InstanceStatus
from longreach.launch.up import InstanceReport, UpReport
from longreach.report.launch_text import render_down, render_status, render_up
from longreach.report.style import Paint
from longreach.rules.observed import CAPACITY_DIFFERS

SAME = Observation("kv_capacity_tokens", "KV cache capacity in tokens", 1_194_731, 1_194_731, "its log", "pass")
OTHER = Observation("max_concurrency", "requests of full length at once", 1.59, 1.2, "its log", "fail")
SILENT = Observation("attention_backend", "attention backend", "FLASHINFER", None, "", "cannot tell")
DIFFERS = CAPACITY_DIFFERS.finding("the engine differs", "its log", "plan again")


def _report(*observations: Observation) -> UpReport:
    instance = InstanceReport(
        name="main",
        base_url="http://127.0.0.1:8000",
        pid=42,
        log_path=Path("/logs/main.log"),
        engine_version="0.32.0",
        ready_after_s=63.2,
        phases=(PhaseTime("weights", 12.0), PhaseTime("graphs", 5.5)),
        observations=observations,
        findings=tuple(DIFFERS for item in observations if item.verdict == "fail"),
    )
    return UpReport("box", (instance,))


def test_up_shows_planned_beside_observed() -> None:
    text = render_up(_report(SAME, SILENT), Paint())
    assert "main is ready at http://127.0.0.1:8000 after 1 min 03 s (pid 42, vLLM 0.32.0)" in text
    assert "start: weights 12.0 s  graphs 5.5 s" in text
    rows = [line.split() for line in text.splitlines() if "1,194,731" in line or "FLASHINFER" in line]
    assert rows[0][-2:] == ["1,194,731", "1,194,731"]
    assert rows[1][-2:] == ["FLASHINFER", "-"]
    assert text.endswith("The engine runs as planned, as far as it says.")


def test_up_says_what_differs() -> None:
    text = render_up(_report(SAME, OTHER), Paint())
    assert "warning[LR601]: the engine differs" in text
    assert "as planned" not in text
    assert "\x1b[31mfail\x1b[0m" in render_up(_report(OTHER), Paint(enabled=True))


def test_status_tells_the_living_from_the_dead() -> None:
    alive = InstanceStatus(
        "box", "main", "alive", "runs as pid 42", "ok", 42, "http://127.0.0.1:8000", 3840.0, 2.0, 1.0, 0.41
    )
    dead = InstanceStatus("old", "main", "dead", "it ended by itself")
    lines = render_status([alive, dead], Paint()).splitlines()
    assert lines[0] == "box/main  alive  ok  http://127.0.0.1:8000  up 1 h 04 min  2 running, 1 waiting  KV 41.0 % used"
    assert lines[2] == "  it ended by itself; clean up: longreach down old"
    assert "nothing is running" in render_status([], Paint())
    orphaned = replace(dead, orphan_pids=(43, 44))
    assert "2 of its processes still run (pid 43, 44); clean up" in render_status([orphaned], Paint())


def test_down_names_what_was_killed_removed_and_unknown() -> None:
    stopped = InstanceEnd("box", "main", "alive", "stopped", killed=(7,), removed_files=(Path("/dev/shm/x"),))
    survived = InstanceEnd("box", "other", "alive", "survived", survivors=(9,))
    text = render_down(DownReport((stopped, survived), ("bx",), ("did you mean 'box'?",)), Paint())
    assert text.splitlines() == [
        "box/main: stopped, 1 process(es) had to be killed, removed 1 file(s) from shared memory",
        "box/other: still there: pid 9",
        "bx: nothing of that name is known",
        "did you mean 'box'?",
    ]
    assert render_down(DownReport(()), Paint()) == "nothing was running"
