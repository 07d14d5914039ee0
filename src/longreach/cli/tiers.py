"""`longreach tiers`: does the CPU tier, the disk tier pay? Measured on this machine."""

import os
import shlex
from pathlib import Path
from typing import Any

import click

from longreach.cli.bench_outputs import check_folder
from longreach.cli.params import FILE, echo_json, stdout_paint
from longreach.cli.targets import choose_instance, is_address
from longreach.cli.tiers_options import check_source, read_sizing_wish, tiers_options
from longreach.errors import EngineError, UsageError


@click.command(short_help="Do the CPU and disk tiers pay? Measure each against doing without.")
@click.argument("plan_path", metavar="PLAN", type=FILE)
@tiers_options
def tiers(plan_path: Path, *, as_json: bool, **values: Any) -> int:
    """Run one workload against GPU only, + CPU tier, + disk tier, each freshly started, and keep the tiers that pay.

    The prompts overflow the GPU cache and come back, so that each tier is asked. A tier is kept when it surely saves more
    of the time to first token than --margin, dropped when it surely does not or when nothing was hit in it; else more runs
    are asked for. Exit code 1 when a run or a request failed.
    """
    from longreach.cli.plan_file import read_plan

    _check_is_no_server(plan_path)
    study = _Study(plan_path, read_plan(plan_path), values)
    if values["dry_run"]:
        from longreach.cli.tiers_dry_run import print_dry_run

        return print_dry_run(study.dry_run(), as_json=as_json)
    report = study.run()
    if as_json:
        from longreach.report.tiers_document import tiers_document

        echo_json(tiers_document(report))
    else:
        from longreach.report.tiers_text import render_tiers

        click.echo(render_tiers(report, stdout_paint()))
    if values["write_plan"] is not None:
        study.write_winner(report, values["write_plan"])
    if values["html"] is not None:
        from longreach.cli.html_page import write_tiers_page

        write_tiers_page(values["html"], report)
        click.echo(f"report: {values['html']}", err=True)
    if report.interrupted:
        return 130
    return 1 if report.failures or any(one.num_failed for one in report.figures) else 0


def _check_is_no_server(plan_path: Path) -> None:
    text = str(plan_path)  # a path has one slash where an address has two
    if is_address(text) or text.startswith(("http:/", "https:/")):
        address = text if "://" in text else text.replace(":/", "://", 1)
        raise UsageError(
            f"'{address}' is a server",
            "tiers starts engines itself, with each tier and without, so it needs a plan",
            f"longreach tiers plan.yaml; a server that runs is measured by: longreach bench {address}",
        )


class _Study:
    """A comparison as the options ask for it. Everything that can be refused is refused here, before anything starts."""

    def __init__(self, plan_path: Path, plan: Any, values: dict[str, Any]) -> None:
        from longreach.engine.release import get_release
        from longreach.measure.tiers.outlook import foresee
        from longreach.measure.tiers.sizing import size_workload
        from longreach.measure.tiers.variants import tier_sets

        self._values, self._plan = values, plan
        self._name = plan_path.name.removesuffix(".yaml").removesuffix(".yml")
        self._source = check_source(values)
        self.release = get_release(plan.release)
        self.instance = choose_instance(plan, values["instance"])
        self.variants = tier_sets(self.instance)
        self.sizing = size_workload(self.instance, read_sizing_wish(values)) if self._source == "generated" else None
        self.outlook = foresee(self.instance, plan.model, self.variants, self.sizing, values["repeats"])
        self.folder = values["output"] or _default_folder()
        for name in ("write_plan", "html"):
            if values[name] is not None:
                check_folder(name, values[name])

    def dry_run(self) -> Any:
        """What would be started and sent. An engine that is missing is told on stderr."""
        from longreach.cli.tiers_dry_run import DryRun
        from longreach.launch.executable import resolve_engine
        from longreach.measure.tiers.variants import variant_command

        commands = [(variant, variant_command(self.instance, variant, self.release)) for variant in self.variants]
        try:
            resolve_engine(commands[0][1].argv, self._values["engine"], os.environ)
        except EngineError as error:
            click.echo(f"it would not start: {error.what}: {error.why}", err=True)
        return DryRun(commands, self.sizing, self._given(), self.outlook, self._plan.machine.device_type)

    def _given(self) -> Any:
        """How large the trace or the workload file is; None for generated prompts."""
        from longreach.measure.bench.prepare import outline_wish
        from longreach.measure.tiers.outlook import size_given
        from longreach.measure.workload.storing import read_workload

        if self._source == "generated":
            return None
        if self._source == "workload":
            return size_given(read_workload(self._values["workload"]), keeps_times=False)
        outline = outline_wish(self._wish())
        assert outline is not None, "the lengths of a trace are known"
        return size_given(outline, keeps_times=self._values["concurrency"] is None)

    def run(self) -> Any:
        """Measure with progress on stderr; a stop signal ends the engine and gives what is known."""
        from longreach.cli.cancelling import interrupting_on_signals
        from longreach.cli.tiers_progress import TiersProgress
        from longreach.measure.tiers.ground import hold
        from longreach.measure.tiers.run import TiersSettings, run_tiers

        values, progress = self._values, TiersProgress()
        settings = TiersSettings(
            repeats=values["repeats"],
            margin=values["margin"],
            try_arc=values["arc"] or self.instance.options.offload.eviction_policy == "arc",
            ssd_tbw_bytes=values["ssd_tbw"],
            results_folder=str(self.folder),
        )
        rig = self._rig(progress)
        rig.check()
        with hold(rig.ground, self.variants):
            rig.begin()
            click.echo(f"results go to {self.folder}", err=True)
            try:
                with interrupting_on_signals():
                    return run_tiers(self._subject(), settings, rig, progress.on_run)
            finally:
                progress.close()

    def write_winner(self, report: Any, path: Path) -> None:
        """The plan with the tiers that paid, where that was decided."""
        if not report.is_complete:
            click.echo(
                f"no plan is written to {path}: not every variant was measured; go on with -o {self.folder} --resume",
                err=True,
            )
            return
        from longreach.cli.plan_file import write_plan
        from longreach.measure.tiers.winning import winning_plan

        write_plan(path, winning_plan(self._plan, report))
        click.echo(
            f"the plan with {report.winner.title} is in {path}; next: longreach up {shlex.quote(str(path))}", err=True
        )

    def _subject(self) -> Any:
        from longreach.measure.tiers.run import TiersSubject

        plan = self._plan
        return TiersSubject(
            model=plan.model.name,
            instance=self.instance.name,
            release=plan.release,
            device_type=plan.machine.device_type,
            is_hybrid=plan.model.is_hybrid,
            variants=self.variants,
            sizing=self.sizing,
        )

    def _rig(self, progress: Any) -> Any:
        from longreach.cli.from_plan import launch_specs
        from longreach.launch.state import check_name, default_state_folder
        from longreach.launch.watch import WaitLimits
        from longreach.measure.tiers.ground import Ground
        from longreach.measure.tiers.rig import EngineRig

        spec = next(spec for spec in launch_specs(self._plan) if spec.name == self.instance.name)
        ground = Ground(
            instance=self.instance,
            release=self.release,
            spec=spec,
            deployment=check_name(f"{self._name}-tiers"),
            state=default_state_folder(),
            engine=self._values["engine"],
            limits=WaitLimits(stall_s=self._values["stall"]),
            disk_bytes_wanted=self.outlook.disk_bytes_wanted,
            keeps_disk=self._values["keep_disk"],
        )
        return EngineRig(
            ground=ground,
            sending=self._sending(),
            folder=self.folder,
            on_launch=progress.on_launch,
            on_bench=progress.on_bench,
            run_async=_run_async,
            resume=self._values["resume"],
        )

    def _sending(self) -> Any:
        from longreach.cli.from_plan import verify_target
        from longreach.measure.bench.values import Load
        from longreach.measure.tiers.rig import Sending

        values = self._values
        by_trace = self._source == "trace" and values["concurrency"] is None
        return Sending(
            target=verify_target(self._plan, self.instance, self.instance.max_model_len),
            source=values["workload"] if self._source == "workload" else self._wish(),
            sizing=self.sizing,
            load=Load("trace", None) if by_trace else Load("closed", values["concurrency"] or 1),
        )

    def _wish(self) -> Any:
        from longreach.measure.tiers.workload import wish_for
        from longreach.measure.workload.wishes import TraceSource, WorkloadWish

        values = self._values
        if self.sizing is not None:
            return wish_for(self.sizing, values["output_tokens"], values["seed"])
        given = {name: values[name] for name in ("sessions", "time_scale") if values[name] is not None}
        source = TraceSource(
            values["trace"],
            max_output_tokens=values["output_tokens"],
            max_request_tokens=self.instance.max_model_len,
            **given,
        )
        return WorkloadWish(source, values["seed"])


def _run_async(work: Any) -> Any:
    import asyncio

    from longreach.cli.cancelling import cancelling_on_signals
    from longreach.measure import event_loop

    async def run() -> Any:
        with cancelling_on_signals():
            return await work

    try:
        return event_loop.run(run())
    except asyncio.CancelledError:  # by a signal, before there was anything to report
        raise KeyboardInterrupt from None


def _default_folder() -> Path:
    from datetime import datetime

    from longreach.launch.state import default_state_folder

    return default_state_folder().path / "tiers" / f"{datetime.now().astimezone():%Y%m%d-%H%M%S-%f}"
