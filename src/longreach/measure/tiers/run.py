"""Run a comparison: every variant as often as asked, in turns, and a verdict on each tier.

1. GPU alone, + CPU, + disk: in turns, each turn begun by another variant, so that no one has the best of a warming machine
2. where ARC is to be tried and a tier paid: the best variant and the same under ARC, in turns of their own
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal, Protocol

from longreach.errors import LongreachError
from longreach.measure.bench.values import BenchResult
from longreach.measure.tiers.decide import DEFAULT_MARGIN, Measured, decide_step
from longreach.measure.tiers.figures import variant_figures
from longreach.measure.tiers.notes import notes_on
from longreach.measure.tiers.places import Place, places_of
from longreach.measure.tiers.values import TierRun, TierSet, TiersReport, TierStep, WorkloadSizing
from longreach.measure.tiers.variants import with_arc
from longreach.measure.workload.values import Workload
from longreach.units import format_duration


@dataclass(frozen=True, slots=True)
class TiersEvent:
    """A run begins, ends or fails; `number` of `num_runs` that are planned so far."""

    step: Literal["begin", "end", "failed"]
    variant: TierSet
    repeat: int
    number: int
    num_runs: int
    text: str = ""


OnTiersEvent = Callable[[TiersEvent], None]


class Rig(Protocol):
    """What starts a variant afresh, sends it the workload and ends it."""

    def measure(self, variant: TierSet, repeat: int) -> BenchResult:
        """One run. LongreachError when it does not start; a run that was cut short is a result with `interrupted` set."""

    def workload(self) -> Workload | None:
        """What was sent; None before the first run."""


@dataclass(frozen=True, slots=True)
class TiersSubject:
    """What is compared, as the report names it. `sizing` is None for a workload that was given."""

    model: str
    instance: str
    release: str
    device_type: str
    is_hybrid: bool
    variants: tuple[TierSet, ...]
    sizing: WorkloadSizing | None = None


@dataclass(frozen=True, slots=True)
class TiersSettings:
    """How often, and how much a tier must save to be kept."""

    repeats: int = 1
    margin: float = DEFAULT_MARGIN
    try_arc: bool = False
    ssd_tbw_bytes: int | None = None  # what the drive of the disk tier is rated to bear
    results_folder: str | None = None


def run_tiers(
    subject: TiersSubject, settings: TiersSettings, rig: Rig, on_event: OnTiersEvent = lambda _event: None
) -> TiersReport:
    """Measure and judge. A variant that does not start is reported and the others are judged; a comparison that is cut
    short is judged by the runs that had ended.
    """
    study = _Study(subject, settings, rig, on_event)
    study.run_turns(subject.variants, first=1)
    best, _ = study.judge()
    if settings.try_arc and best is not None and best.policy is not None and not study.interrupted:
        study.run_turns((best, with_arc(best)), first=settings.repeats + 1)
    return study.report()


@dataclass(slots=True)
class _Study:
    """A comparison under way."""

    subject: TiersSubject
    settings: TiersSettings
    rig: Rig
    on_event: OnTiersEvent
    runs: list[TierRun] = field(default_factory=list)
    interrupted: bool = False
    _num_planned: int = 0

    def run_turns(self, variants: Sequence[TierSet], first: int) -> None:
        self._num_planned += len(variants) * self.settings.repeats
        for variant, repeat in take_turns(variants, self.settings.repeats, first):
            if self.interrupted:
                return
            self._run(variant, repeat)

    def _run(self, variant: TierSet, repeat: int) -> None:
        place = (variant, repeat, len(self.runs) + 1, self._num_planned)
        self.on_event(TiersEvent("begin", *place))
        try:
            result = self.rig.measure(variant, repeat)
        except LongreachError as error:
            self.runs.append(TierRun(variant, repeat, failure=str(error)))
            self.on_event(TiersEvent("failed", *place, str(error)))
        except KeyboardInterrupt:
            self.interrupted = True
        else:
            self.interrupted = result.interrupted
            if not result.interrupted:
                self.runs.append(TierRun(variant, repeat, result))
                self.on_event(TiersEvent("end", *place, _tell(result)))

    def judge(self) -> tuple[TierSet | None, tuple[TierStep, ...]]:
        """The best variant, and how each fared against the best before it. GPU alone is best until a tier pays."""
        measured = self._measured()
        best: TierSet | None = None
        steps: list[TierStep] = []
        for variant in measured:
            if best is None:
                best = variant
                continue
            step = decide_step(measured[best], measured[variant], self._places(), self.settings.margin)
            steps.append(step)
            if step.verdict == "keep":
                best = variant
        if best is not None and best.policy is not None and self.subject.variants[0] not in measured:
            return None, tuple(steps)  # nothing to compare the tiers with
        return best, tuple(steps)

    def report(self) -> TiersReport:
        """Everything so far."""
        best, steps = self.judge()
        workload, figures = self.rig.workload(), tuple(one.figures for one in self._measured().values())
        return TiersReport(
            model=self.subject.model,
            instance=self.subject.instance,
            release=self.subject.release,
            device_type=self.subject.device_type,
            is_hybrid=self.subject.is_hybrid,
            margin=self.settings.margin,
            workload_source=workload.source if workload else "",
            workload_digest=workload.digest if workload else "",
            sizing=self.subject.sizing,
            figures=figures,
            steps=steps,
            winner=best,
            runs=tuple(self.runs),
            notes=(
                *(self.subject.sizing.notes if self.subject.sizing else ()),
                *(workload.notes if workload else ()),
                *notes_on(
                    figures,
                    is_hybrid=self.subject.is_hybrid,
                    device_type=self.subject.device_type,
                    planned_release=self.subject.release,
                    planned_tokens=self.subject.sizing.gpu_capacity_tokens if self.subject.sizing else None,
                    ssd_tbw_bytes=self.settings.ssd_tbw_bytes,
                ),
            ),
            results_folder=self.settings.results_folder,
            interrupted=self.interrupted,
        )

    def _places(self) -> Mapping[int, Place]:
        workload = self.rig.workload()
        return {} if workload is None else places_of(workload)

    def _measured(self) -> dict[TierSet, Measured]:
        """What has ended, by variant: fewest tiers first, ARC last."""
        places, results = self._places(), dict[TierSet, dict[int, BenchResult]]()
        for run in sorted(self.runs, key=lambda run: (run.variant.policy == "arc", len(run.variant.tiers), run.repeat)):
            if run.result is not None:
                results.setdefault(run.variant, {})[run.repeat] = run.result
        return {
            variant: Measured(variant_figures(variant, list(found.values()), places), found)
            for variant, found in results.items()
        }


def take_turns(variants: Sequence[TierSet], repeats: int, first: int) -> Iterator[tuple[TierSet, int]]:
    """ABC, BCA, CAB, ... with the number of the turn, counted from `first`."""
    for turn in range(repeats):
        begin = turn % len(variants)
        for variant in (*variants[begin:], *variants[:begin]):
            yield variant, first + turn


def _tell(result: BenchResult) -> str:
    waits = [record.ttft_s for record in result.counted if record.ok and record.ttft_s is not None]
    failed = sum(not record.ok for record in result.counted)
    mean = f"mean time to first token {format_duration(fmean(waits))}" if waits else "no answer"
    return f"{mean}, {failed} of {len(result.counted)} requests failed" if failed else mean
