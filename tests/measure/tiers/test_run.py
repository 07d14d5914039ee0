from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tests.measure.tiers.test_workload import workload
from tests.measure.tiers.tier_cases import Script, result_of

from longreach.errors import EngineError
from longreach.measure.bench.values import BenchResult
from longreach.measure.tiers.run import TiersEvent, TiersSettings, TiersSubject, run_tiers, take_turns
from longreach.measure.tiers.values import TierSet, TiersReport, WorkloadSizing
from longreach.measure.tiers.variants import with_arc
from longreach.measure.workload.values import Workload

SIZING = WorkloadSizing(1_000, 10, 10, 3, 1, 5_000, 20_000, notes=("sized so",))
GPU, CPU, DISK = TierSet(("gpu",)), TierSet(("gpu", "cpu"), "lru"), TierSet(("gpu", "cpu", "disk"), "lru")
SUBJECT = TiersSubject("tiny", "main", "0.32.0", "cuda", is_hybrid=False, variants=(GPU, CPU, DISK), sizing=SIZING)

Act = Callable[[], BenchResult]


def answering(warm_s: float, hits: tuple[tuple[str, int], ...] = ()) -> Act:
    """Cold prompts take two seconds, repeats `warm_s`; every prompt a little more than the one before."""
    ttfts = [(2.0 if index < 10 else warm_s) * (1 + index % 10 / 100) for index in range(30)]
    return lambda: result_of(Script(ttfts, hits=(("device", 0), *hits)))


def refusing() -> BenchResult:
    raise EngineError("it did not start", "no memory", "buy some")


def stopped() -> BenchResult:
    raise KeyboardInterrupt


@dataclass
class ScriptedRig:
    """Acts as told, by variant; notes what was run."""

    acts: Mapping[TierSet, Act]
    ran: list[tuple[TierSet, int]] = field(default_factory=list)

    def measure(self, variant: TierSet, repeat: int) -> BenchResult:
        self.ran.append((variant, repeat))
        return self.acts[variant]()

    def workload(self) -> Workload | None:
        return workload(SIZING) if self.ran else None


GOOD: dict[TierSet, Act] = {
    GPU: answering(2.0),
    CPU: answering(0.2, (("host", 9_000),)),
    DISK: answering(0.2, (("host", 9_000), ("disk", 0))),
    with_arc(CPU): answering(0.6, (("host", 8_000),)),
}


def verdicts(report: TiersReport) -> dict[str, str]:
    return {step.variant.name: step.verdict for step in report.steps}


def test_each_tier_is_judged_against_the_best_before_it() -> None:
    report = run_tiers(SUBJECT, TiersSettings(), ScriptedRig(GOOD))
    assert verdicts(report) == {"gpu+cpu": "keep", "gpu+cpu+disk": "drop"}
    assert [step.base for step in report.steps] == [GPU, CPU]
    assert report.winner == CPU
    assert report.notes[0] == "sized so"


def test_a_disk_tier_may_pay_where_the_cpu_tier_alone_does_not() -> None:
    acts = GOOD | {CPU: answering(2.0, (("host", 0),)), DISK: answering(0.5, (("host", 10), ("disk", 9_000)))}
    report = run_tiers(SUBJECT, TiersSettings(), ScriptedRig(acts))
    assert verdicts(report) == {"gpu+cpu": "drop", "gpu+cpu+disk": "keep"}
    assert (report.steps[1].base, report.winner) == (GPU, DISK)


def test_variants_take_turns_and_none_is_always_first() -> None:
    rig = ScriptedRig(GOOD)
    run_tiers(SUBJECT, TiersSettings(repeats=3), rig)
    assert rig.ran == [(GPU, 1), (CPU, 1), (DISK, 1), (CPU, 2), (DISK, 2), (GPU, 2), (DISK, 3), (GPU, 3), (CPU, 3)]
    assert list(take_turns((GPU, CPU), 2, 5)) == [(GPU, 5), (CPU, 5), (CPU, 6), (GPU, 6)]


def test_arc_is_tried_on_the_best_in_turns_of_its_own_and_must_win() -> None:
    rig = ScriptedRig(GOOD)
    report = run_tiers(SUBJECT, TiersSettings(try_arc=True), rig)
    assert rig.ran[3:] == [(CPU, 2), (with_arc(CPU), 2)]
    assert verdicts(report)["gpu+cpu+arc"] == "drop"
    assert report.winner == CPU
    faster = ScriptedRig(GOOD | {with_arc(CPU): answering(0.01, (("host", 9_000),))})
    assert run_tiers(SUBJECT, TiersSettings(try_arc=True), faster).winner == with_arc(CPU)


def test_arc_is_not_tried_where_no_tier_pays() -> None:
    rig = ScriptedRig(GOOD | {variant: answering(2.0, (("host", 0), ("disk", 0))) for variant in (CPU, DISK)})
    assert run_tiers(SUBJECT, TiersSettings(try_arc=True), rig).winner == GPU
    assert len(rig.ran) == 3


def test_a_variant_that_does_not_start_is_told_and_the_others_are_judged() -> None:
    events: list[TiersEvent] = []
    report = run_tiers(SUBJECT, TiersSettings(), ScriptedRig(GOOD | {CPU: refusing}), events.append)
    assert [(run.variant, run.failure) for run in report.failures] == [
        (CPU, "it did not start\n  why: no memory\n  fix: buy some")
    ]
    assert [step.variant for step in report.steps] == [DISK]
    assert [event.step for event in events] == ["begin", "end", "begin", "failed", "begin", "end"]


def test_without_the_gpus_alone_nothing_wins() -> None:
    report = run_tiers(SUBJECT, TiersSettings(try_arc=True), ScriptedRig(GOOD | {GPU: refusing}))
    assert report.winner is None
    assert len(report.runs) == 3


def test_what_had_ended_before_a_stop_is_judged() -> None:
    rig = ScriptedRig(GOOD | {DISK: stopped})
    report = run_tiers(SUBJECT, TiersSettings(repeats=2, try_arc=True), rig)
    assert report.interrupted
    assert verdicts(report) == {"gpu+cpu": "keep"}
    assert rig.ran[-1] == (DISK, 1)


def test_a_run_that_was_cut_short_is_in_no_figure() -> None:
    def cut_short() -> BenchResult:
        return replace(GOOD[CPU](), interrupted=True)

    report = run_tiers(SUBJECT, TiersSettings(), ScriptedRig(GOOD | {CPU: cut_short}))
    assert (report.interrupted, report.steps, len(report.runs)) == (True, (), 1)
