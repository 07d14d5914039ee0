"""What a rig takes over from an earlier comparison. That it runs engines is shown by tests/engine/test_tiers.py."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.measure.tiers.test_workload import CYCLIC, workload
from tests.measure.tiers.tier_cases import Script, planned, result_of

from longreach.cli.from_plan import launch_specs, verify_target
from longreach.engine.release import get_release
from longreach.errors import EngineError, InputFileError, UsageError
from longreach.launch.state import StateFolder
from longreach.measure.bench.journal import open_journal
from longreach.measure.bench.log import RunEnd
from longreach.measure.bench.values import Load
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
    seed: str = "seed",
    source: Path | WorkloadWish | None = None,
) -> EngineRig:
    """No engine is to be found: a run that is not taken over fails."""
    plan = planned(cpu=cpu_gib * 2**30)
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
        {"source": WorkloadWish(TraceSource(Path(__file__)), "seed"), "sizing": None},
    ],
    ids=["another order", "another concurrency", "longer answers", "a trace"],
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


def test_a_workload_that_is_not_there_or_too_long_is_refused_before_a_start(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="no workload file"):
        rig_in(tmp_path, source=tmp_path / "workload.jsonl").check()
    with pytest.raises(InputFileError, match="no trace"):
        rig_in(tmp_path, source=WorkloadWish(TraceSource(tmp_path / "trace.jsonl"))).check()
    sent = workload(CYCLIC)
    longer = replace(sent, requests=(replace(sent.requests[0], prompt_tokens=131_073), *sent.requests[1:]))
    write_workload(tmp_path / "given.jsonl", replace(longer, digest=digest_workload(longer)))
    with pytest.raises(UsageError, match="does not fit 'main'"):
        rig_in(tmp_path / "runs", source=tmp_path / "given.jsonl").check()
