"""Results files: what is written is read, whatever ended the run."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.measure.bench.results import HEADER, failed, record

from longreach.errors import InputFileError, UsageError
from longreach.measure.bench.journal import (
    Journal,
    check_continues,
    continue_journal,
    open_journal,
    read_journal,
    read_log,
)
from longreach.measure.bench.log import Entry, Resumption, RunEnd
from longreach.measure.bench.reach import UNNAMED_MODEL
from longreach.measure.bench.values import BenchHeader, Load, PhaseReport, PhaseSpec, ServerSample

PHASE = PhaseReport("cold", "cold", 0.0, 9.0, 2, attributed=True, hits_by_source=(("device", 16),), ttft_sum_s=4.0)
SAMPLE = ServerSample(1.0, 2.0, 0.0, 0.25)
ENTRIES: tuple[Entry, ...] = (record(0), SAMPLE, failed(1), PHASE, RunEnd(0.002, interrupted=False))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A results file with every kind of line."""
    path = tmp_path / "new folder" / "run.jsonl"
    with open_journal(path, HEADER) as journal:
        for entry in ENTRIES:
            journal.write(entry)
    return path


def test_what_is_written_is_read(path: Path) -> None:
    result = read_journal(path)
    assert result.header == HEADER
    assert result.records == (record(0), failed(1))
    assert (result.phases, result.samples) == ((PHASE,), (SAMPLE,))
    assert (result.client_loop_lag_p99_s, result.interrupted) == (0.002, False)


def test_every_line_is_in_the_file_as_soon_as_it_is_written(tmp_path: Path) -> None:
    with open_journal(tmp_path / "run.jsonl", HEADER) as journal:
        journal.write(record(0))
        assert read_journal(tmp_path / "run.jsonl").records == (record(0),)


def test_a_torn_last_line_is_left_out_and_the_run_counts_as_cut_off(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-10])
    result = read_journal(path)
    assert len(result.records) == 2
    assert result.interrupted


def test_a_continued_file_goes_on_after_its_last_whole_line(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])
    with continue_journal(path) as journal:
        journal.write(replace(record(1), sent_s=20.0))
        journal.write(RunEnd(0.003, interrupted=False))
    result = read_journal(path)
    assert result.records == (record(0), replace(record(1), sent_s=20.0))
    assert not result.interrupted


def test_a_later_header_counts(path: Path) -> None:
    later = replace(HEADER, phases=(*HEADER.phases, PhaseSpec("warm 1", "warm")))
    with continue_journal(path) as journal:
        journal.write(later)
    assert read_journal(path).header == later


def test_a_continuation_knows_what_is_done_and_with_which_salt(path: Path) -> None:
    with continue_journal(path) as journal:
        journal.write(Resumption("second"))
        journal.write(replace(failed(2), error_kind="unreachable"))
    log = read_log(path)
    assert [log.has("cold", index) for index in range(4)] == [True, True, False, False]
    assert (log.salts[0], log.salts[2], log.salt) == (HEADER.cache_salt, "second", "second")
    assert log.last_moment_s == 9.0


def test_results_are_never_overwritten(path: Path) -> None:
    with pytest.raises(UsageError, match="exists") as error:
        open_journal(path, HEADER)
    assert "--resume" in error.value.fix


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "holds no results"),
        (b'{"kind":"header"', "holds no results"),
        (b"hello\n", "holds no results of a benchmark"),
        (b"[1]\n", "holds no results of a benchmark"),
        (b'{"kind":"request","schema":1}\n', "cannot be understood"),
        (b'{"kind":"header","schema":"longreach/bench/9"}\n', "of a version that is not read"),
        (b'{"kind":"header","schema":"longreach/workload/1"}\n', "holds no results of a benchmark"),
        (b'{"kind":"sample","at_s":1,"num_running":1,"num_waiting":0,"kv_cache_usage":0}\n', "holds no results of a"),
    ],
)
def test_what_is_no_results_file_is_refused_in_words(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputFileError, match=what):
        read_journal(path)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"ttft_s":2.0', '"ttft_s":"fast"', "line 2: expected a number, not 'fast' @ ttft_s"),
        ('"ttft_s":2.0', '"ttft_s":-2.0', "line 2: expected a number from 0 to 10^15, not -2.0 @ ttft_s"),
        ('"ok":true', '"ok":"false"', "line 2: expected true or false, not 'false' @ ok"),
        ('"state":"cold","ok"', '"state":"hot","ok"', "line 2: expected one of cold, warm"),
        ('"error_kind":"refused"', '"error_kind":"odd"', "line 4: expected one of unreachable"),
        ('"phases":[{"name":"cold","state":"cold"}]', '"phases":[]', "its header names no phase"),
    ],
)
def test_what_was_edited_to_what_cannot_be_is_named(path: Path, old: str, new: str, why: str) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputFileError, match="cannot be understood") as caught:
        read_journal(path)
    assert caught.value.why.startswith(why)


def test_two_runs_in_one_file_are_not_mixed(path: Path) -> None:
    with continue_journal(path) as journal:
        journal.write(replace(HEADER, started_at="2026-12-01T21:00:00+00:00"))
    with pytest.raises(InputFileError, match="holds two runs") as caught:
        read_journal(path)
    assert caught.value.why == "the second begins on line 7"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"cannot read the results .*nowhere"):
        read_journal(tmp_path / "nowhere.jsonl")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"workload_digest": "other"}, "workload digest"),
        ({"model": "other"}, "model"),
        ({"base_url": "http://127.0.0.1:1"}, "base url"),
        ({"load": Load(concurrency=2)}, "load"),
        ({"phases": (PhaseSpec("as it comes", "as_it_comes"),)}, "states"),
    ],
)
def test_another_run_is_not_continued(change: dict[str, object], what: str) -> None:
    wanted: BenchHeader = replace(HEADER, **change)  # type: ignore[arg-type] # each value is of its field's type
    with pytest.raises(UsageError, match=f"{what} changed"):
        check_continues(HEADER, wanted, Path("run.jsonl"))


def test_a_second_pass_that_was_added_and_what_nobody_could_tell_do_not_hinder() -> None:
    began = replace(HEADER, phases=(*HEADER.phases, PhaseSpec("warm 1", "warm"), PhaseSpec("warm 2", "warm")))
    wanted = replace(HEADER, phases=began.phases[:2], model=UNNAMED_MODEL, workload_digest="")
    check_continues(began, wanted, Path("run.jsonl"))


def test_one_run_at_a_time_writes_a_file(path: Path) -> None:
    with continue_journal(path), pytest.raises(InputFileError, match="is being written by another run"):
        continue_journal(path)
    continue_journal(path).__exit__(None, None, None)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_told_with_the_file_and_how_to_go_on() -> None:
    with Journal(Path("/dev/full").open("wb")) as journal, pytest.raises(InputFileError, match="/dev/full") as caught:
        journal.write(record(0))
    assert "--resume -o /dev/full" in caught.value.fix


def test_a_link_to_nowhere_is_a_file_too(tmp_path: Path) -> None:
    link = tmp_path / "run.jsonl"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="exists"):
        open_journal(link, HEADER)
