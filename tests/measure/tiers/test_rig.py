"""What a rig takes over from an earlier comparison. That it runs engines is shown by tests/engine/test_tiers.py."""

from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.measure.tiers.test_workload import CYCLIC, workload
from tests.measure.tiers.tier_cases import Script, planned, result_of

from longreach.cli.from_plan import launch_specs, verify_target
from longreach.engine.release import get_release
from longreach.errors import EngineError, InputFileError, ServerError, UsageError
from longreach.host.ports import choose_free_port
from longreach.launch.down import DownReport
from longreach.launch.state import StateFolder
from longreach.measure.bench.journal import open_journal
from longreach.measure.bench.log import RunEnd
from longreach.measure.bench.values import BenchResult, Load
from longreach.measure.tiers.ground import Ground
from longreach.measure.tiers.rig import EngineRig, Sending
from longreach.measure.tiers.values import TierRun, TierSet
from longreach.measure.tiers.workload import wish_for
from longreach.measure.workload.digest import digest_workload
from longreach.measure.workload.storing import write_workload
from longreach.measure.workload.wishes import TraceSource, WorkloadWish

CPU = TierSet(("gpu", "cpu"), "lru")


def rig_in(
    folder: Path,
    *,
    resume: bool = True,
    cpu_gib: int = 200,
    disk: str | None = None,
    seed: str = "seed",
    source: Path | WorkloadWish | None = None,
) -> EngineRig:
    """No engine is to be found: a run that is not taken over fails."""
    plan = planned(cpu=cpu_gib * 2**30, disk=disk)
    ground = Ground(
        instance=plan.instances[0],
        release=get_release(plan.release),
        spec=launch_specs(plan)[0],
        deployment="test",
        state=StateFolder(folder / "state"),
        engine=folder / "nowhere",
    )
    target, sizing = verify_target(plan, plan.instances[0], 100), None if source else CYCLIC
    sending = Sending(target, source or wish_for(CYCLIC, 16, seed), sizing)
    return EngineRig(
        ground, sending, folder, on_launch=lambda _event: None, on_bench=lambda _event: None, resume=resume
    )


def leave_results(
    folder: Path, *, interrupted: bool = False, digest: str | None = None, failed: frozenset[int] = frozenset()
) -> None:
    """As a comparison leaves them that ran the GPU and CPU variant once."""
    sent = workload(CYCLIC)
    write_workload(folder / "workload.jsonl", sent)
    result = result_of(Script([1.0] * CYCLIC.num_requests, failed=failed))
    label = rig_in(folder).label(CPU)
    header = replace(result.header, workload_digest=digest or sent.digest, label=label)
    with open_journal(folder / TierRun(CPU, 1).journal, header) as journal:
        for record in result.records:
            journal.write(record)
        journal.write(result.phases[0])
        journal.write(RunEnd(0.0, interrupted))


def test_a_run_that_has_ended_is_taken_over(tmp_path: Path) -> None:
    leave_results(tmp_path)
    result = rig_in(tmp_path).measure(CPU, 1)
    assert len(result.records) == CYCLIC.num_requests


@pytest.mark.parametrize(
    ("interrupted", "digest", "cpu_gib"),
    [(True, None, 200), (False, "of another text", 200), (False, None, 100)],
    ids=["cut short", "another workload", "another command"],
)
def test_a_run_that_is_another_is_run_again(
    tmp_path: Path, interrupted: bool, digest: str | None, cpu_gib: int
) -> None:
    leave_results(tmp_path, interrupted=interrupted, digest=digest)
    with pytest.raises(EngineError):
        rig_in(tmp_path, cpu_gib=cpu_gib).measure(CPU, 1)


def test_a_run_in_which_a_request_failed_is_run_again(tmp_path: Path) -> None:
    leave_results(tmp_path, failed=frozenset({3}))
    with pytest.raises(EngineError):
        rig_in(tmp_path).measure(CPU, 1)


def test_a_torn_results_file_is_run_again(tmp_path: Path) -> None:
    leave_results(tmp_path)
    (tmp_path / TierRun(CPU, 1).journal).write_text('{"kind": "hea', encoding="utf-8")
    with pytest.raises(EngineError):
        rig_in(tmp_path).measure(CPU, 1)


def test_results_of_another_wish_are_not_continued(tmp_path: Path) -> None:
    rig_in(tmp_path).begin()
    leave_results(tmp_path)
    rig_in(tmp_path).check()
    with pytest.raises(UsageError, match="results of another comparison"):
        rig_in(tmp_path, seed="another").check()
    with pytest.raises(UsageError, match="holds results"):
        rig_in(tmp_path, resume=False).check()


@pytest.mark.parametrize(
    "change",
    [
        {"sizing": replace(CYCLIC, is_shuffled=True)},
        {"load": Load("closed", 2)},
        {"source": wish_for(CYCLIC, 17, "seed")},
    ],
    ids=["another order", "another concurrency", "longer answers"],
)
def test_a_comparison_goes_on_with_the_options_it_was_begun_with(tmp_path: Path, change: dict[str, Any]) -> None:
    rig_in(tmp_path).begin()
    leave_results(tmp_path)
    rig = rig_in(tmp_path)
    rig.sending = replace(rig.sending, **change)
    with pytest.raises(UsageError, match="results of another comparison"):
        rig.check()


def test_a_results_folder_that_cannot_be_is_refused_before_a_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputFileError, match="no results can be written"):
        rig_in(tmp_path / "file").begin()


def test_a_disk_tier_that_cannot_be_is_refused_before_a_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputFileError, match="no folder for the disk tier"):
        rig_in(tmp_path / "runs", disk=str(tmp_path / "file")).begin()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    rig_in(tmp_path / "runs", disk=str(tmp_path / "kv")).begin()
    assert not (tmp_path / "kv").exists()


def test_a_workload_that_is_not_there_or_too_long_is_refused_before_a_start(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="no workload file"):
        rig_in(tmp_path, source=tmp_path / "workload.jsonl").check()
    for path, what in ((tmp_path / "trace.jsonl", "cannot be read"), (Path(__file__), "line 1: not JSON")):
        with pytest.raises(InputFileError, match=what):
            rig_in(tmp_path, source=WorkloadWish(TraceSource(path))).check()
    sent = workload(CYCLIC)
    longer = replace(sent, requests=(replace(sent.requests[0], prompt_tokens=131_073), *sent.requests[1:]))
    write_workload(tmp_path / "given.jsonl", replace(longer, digest=digest_workload(longer)))
    with pytest.raises(UsageError, match="does not fit 'main'"):
        rig_in(tmp_path / "runs", source=tmp_path / "given.jsonl").check()


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """`up` and `down` that start and end nothing; put True into the list, and somebody asks to stop while it ends."""
    asked: list[bool] = []
    monkeypatch.setattr("longreach.measure.tiers.rig.up", lambda *_: None)
    monkeypatch.setattr("longreach.measure.tiers.rig.down", lambda *_: DownReport((), was_asked_to_stop=any(asked)))
    return asked


def test_a_stop_while_the_engine_ends_ends_the_comparison(tmp_path: Path, no_engine: list[bool]) -> None:
    def answered(work: Coroutine[Any, Any, Any]) -> BenchResult:
        work.close()
        return result_of(Script([1.0]))

    rig = rig_in(tmp_path)
    rig.run_async = answered
    assert len(rig.measure(CPU, 1).records) == 1
    no_engine.append(True)
    with pytest.raises(KeyboardInterrupt):
        rig.measure(CPU, 1)


@pytest.mark.usefixtures("no_engine")
def test_an_engine_that_is_gone_before_it_says_how_it_counts_leaves_no_empty_prompts(tmp_path: Path) -> None:
    rig = rig_in(tmp_path)
    rig.sending = replace(
        rig.sending, target=replace(rig.sending.target, base_url=f"http://127.0.0.1:{choose_free_port()}")
    )
    with pytest.raises(ServerError, match="answers no more"):
        rig.measure(CPU, 1)
    assert not (tmp_path / "workload.jsonl").exists()
