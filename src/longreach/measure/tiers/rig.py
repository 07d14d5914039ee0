"""The real thing behind a comparison: start a variant afresh, send it the workload, end it, keep the results."""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from longreach.engine.options import ServeCommand
from longreach.errors import EngineError, InputFileError, ServerError, UsageError
from longreach.launch.down import down
from longreach.launch.up import UpSettings, up
from longreach.launch.up_events import LaunchEvent
from longreach.measure.bench.events import OnBenchEvent
from longreach.measure.bench.journal import read_journal
from longreach.measure.bench.prepare import outline_wish, prepare_workload
from longreach.measure.bench.run import run_bench
from longreach.measure.bench.settings import BenchSettings, BenchTarget
from longreach.measure.bench.values import BenchResult, Load
from longreach.measure.tiers.disk_folder import fresh_folder
from longreach.measure.tiers.ground import Ground
from longreach.measure.tiers.values import TierRun, TierSet, WorkloadSizing
from longreach.measure.tiers.variants import variant_command
from longreach.measure.tiers.workload import in_order
from longreach.measure.workload.storing import read_workload, write_workload
from longreach.measure.workload.values import Workload
from longreach.measure.workload.wishes import TraceSource, WorkloadWish

RunAsync = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine to its end; a stop signal cancels it."""

_WORKLOAD_FILE = "workload.jsonl"
_ASKED_FILE = "asked.txt"


@dataclass(frozen=True, slots=True)
class Sending:
    """What is sent. `source` is a workload file, or a wish that is made when the first engine runs, since only it can tell
    how it counts. `sizing` is the order of a generated one.
    """

    target: BenchTarget
    source: Path | WorkloadWish
    sizing: WorkloadSizing | None = None
    load: Load = field(default_factory=Load)


@dataclass(slots=True)
class EngineRig:
    """A `Rig` on this machine. `folder` holds the workload and one results file a run; with `resume` what has ended there
    is taken over. What was cut short is run again from the start: its caches are gone.
    """

    ground: Ground
    sending: Sending
    folder: Path
    on_launch: Callable[[LaunchEvent], None]
    on_bench: OnBenchEvent
    run_async: RunAsync = asyncio.run
    resume: bool = False
    _workload: Workload | None = None

    def check(self) -> None:
        """UsageError where results would be overwritten, or those of another comparison continued; InputFileError for a
        workload that is not there. All of it before anything is started or written.
        """
        source = self.sending.source
        if isinstance(source, Path):
            self._workload = read_workload(source)
            self._check_lengths(self._workload)
        elif isinstance(source.source, TraceSource):
            outline_wish(source)  # raises what it would raise beside the first engine
        if not self.resume and any(self.folder.glob("*.jsonl")):
            fix = "--resume to go on with them, or another folder: -o FOLDER"
            raise UsageError(f"{self.folder} holds results", "results are never overwritten", fix)
        path = self.folder / _ASKED_FILE
        if any(self.folder.glob("*.jsonl")) and not (path.is_file() and path.read_text("utf-8") == self._asked()):
            raise UsageError(
                f"{self.folder} holds results of another comparison",
                f"its prompts, their order or --concurrency are others; {path} says which",
                "use the options it was begun with, or another folder: -o FOLDER",
            )

    def begin(self) -> None:
        """Make the results folder, and note what is compared. InputFileError where that, or a folder for the disk tier, cannot
        be.
        """
        with self._disk_folder("check"):
            pass
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / _ASKED_FILE).write_text(self._asked(), encoding="utf-8")
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputFileError(f"no results can be written to {self.folder}", reason, "-o FOLDER") from error

    def _asked(self) -> str:
        """What is sent and how: the same text for the same comparison."""
        source, sizing = self.sending.source, self.sending.sizing
        sizing = sizing and replace(sizing, notes=())
        what = self._workload.digest if self._workload and isinstance(source, Path) else source
        return "\n".join(map(repr, (what, sizing, self.sending.load))) + "\n"

    def _check_lengths(self, workload: Workload) -> None:
        longest = max(request.prompt_tokens + request.output_tokens for request in workload.requests)
        if longest > self.ground.instance.max_model_len:
            raise UsageError(
                f"the workload does not fit '{self.ground.instance.name}'",
                f"its longest request takes {longest} tokens, and max-model-len is {self.ground.instance.max_model_len}",
                "plan with a longer --max-model-len, or send another workload",
            )

    def measure(self, variant: TierSet, repeat: int) -> BenchResult:
        """One run, from a start with empty caches to the engine's end."""
        journal = self.folder / TierRun(variant, repeat).journal
        held = self._held(journal, label := self.label(variant))
        if held is not None:
            return held
        journal.unlink(missing_ok=True)
        with self._disk(variant, repeat) as disk_path, self._running(variant, disk_path):
            result: BenchResult = self.run_async(self._send(label, journal))
            return result

    def label(self, variant: TierSet) -> str:
        """What the results of a variant are labelled with; another command gets another label, another disk folder does not."""
        return f"{variant.name}, command {_fingerprint(self._command(variant, None))}"

    def workload(self) -> Workload | None:
        """What is sent to every variant."""
        if self._workload is None and (path := self._workload_path()).exists():
            self._workload = read_workload(path)
        return self._workload

    def _held(self, journal: Path, label: str) -> BenchResult | None:
        """The results of an earlier comparison that this run would only repeat; where a request failed, it is worth it."""
        workload = self.workload()
        if not self.resume or workload is None or not journal.exists():
            return None
        try:
            result = read_journal(journal)
        except InputFileError:  # killed before its first line was whole
            return None
        same = (result.header.workload_digest, result.header.label) == (workload.digest, label)
        is_whole = not result.interrupted and all(record.ok for record in result.counted)
        return result if same and is_whole else None

    def _workload_path(self) -> Path:
        source = self.sending.source
        return source if isinstance(source, Path) else self.folder / _WORKLOAD_FILE

    @contextlib.contextmanager
    def _disk(self, variant: TierSet, repeat: int) -> Iterator[str | None]:
        if "disk" not in variant.tiers:
            yield None
            return
        with self._disk_folder(f"{variant.slug}-{repeat}", keep=self.ground.keeps_disk) as folder:
            yield folder

    @contextlib.contextmanager
    def _disk_folder(self, name: str, *, keep: bool = False) -> Iterator[str | None]:
        """None without a disk tier."""
        ground, offload = self.ground, self.ground.instance.options.offload
        if offload is None or offload.disk_path is None:
            yield None
            return
        root, full_name = Path(offload.disk_path), f"{ground.deployment}-{name}"
        with fresh_folder(root, full_name, wanted_bytes=ground.disk_bytes_wanted, keep=keep) as folder:
            yield str(folder)

    def _command(self, variant: TierSet, disk_path: str | None) -> ServeCommand:
        return variant_command(self.ground.instance, variant, self.ground.release, disk_path)

    @contextlib.contextmanager
    def _running(self, variant: TierSet, disk_path: str | None) -> Iterator[None]:
        """The variant's engine, ready; it is ended however the block ends."""
        ground, command = self.ground, self._command(variant, disk_path)
        spec = replace(ground.spec, argv=command.argv, env=dict(command.env))
        name = ground.name_of(variant)
        settings = UpSettings(name, ground.state, ground.engine, limits=ground.limits, stop_times=ground.stop_times)
        up((spec,), settings, self.on_launch)
        try:
            yield
        finally:
            ended = down((name,), ground.state, self.on_launch, ground.stop_times)
            survivors = [pid for end in ended.instances for pid in end.survivors]
        if survivors:
            raise EngineError(
                f"the engine of {name} does not end",
                f"pid {', '.join(map(str, survivors))} survived every signal",
                f"longreach down {name}",
            )
        if ended.was_asked_to_stop:
            raise KeyboardInterrupt

    async def _send(self, label: str, journal: Path) -> BenchResult:
        if self.workload() is None:
            self._workload = await self._build()
        workload = self.workload()
        assert workload is not None
        settings = BenchSettings(load=self.sending.load, states=("as_it_comes",), journal=journal, label=label)
        return await run_bench(self.sending.target, settings, workload, self.on_bench)

    async def _build(self) -> Workload:
        """Made once and written down, so that every variant, now or after an interruption, gets the same."""
        wish, target = self.sending.source, self.sending.target
        assert isinstance(wish, WorkloadWish), "a workload file that is named exists"
        workload = await prepare_workload(target, BenchSettings(), wish, self.on_bench)
        if self.sending.sizing is not None:
            workload = in_order(workload, self.sending.sizing)
        if not any(request.segments or request.tail for request in workload.requests):
            raise ServerError(
                "the engine answers no more",
                "it was ready, and did not say how it counts",
                "see its log: longreach logs",
            )
        write_workload(self._workload_path(), workload)
        return workload


def _fingerprint(command: ServeCommand) -> str:
    """Eight letters that another command has otherwise."""
    return hashlib.sha256(repr((command.argv, command.env)).encode()).hexdigest()[:8]
