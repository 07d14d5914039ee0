"""`up`: start every instance of a plan, wait until all are ready, hold what they say against the plan. All or none."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path

from longreach.engine.metrics import parse_metrics
from longreach.errors import EngineError, UsageError
from longreach.host.ports import port_is_free, read_port_holders
from longreach.host.processes import StopTimes, is_alive
from longreach.launch.compare import Observation, compare_with_plan, observe
from longreach.launch.engine_process import start_engine
from longreach.launch.executable import ResolvedCommand, resolve_engine
from longreach.launch.http_probe import fetch
from longreach.launch.lock import LockHeldError, hold_lock
from longreach.launch.log_tail import LogTail
from longreach.launch.progress import PhaseTime, begin
from longreach.launch.readings import Reading, readings_of_cache_config, readings_of_log
from longreach.launch.signals import StopSignals
from longreach.launch.spec import LaunchSpec, check_specs, unplanned_variables
from longreach.launch.state import DeploymentState, StateFolder, read_state, remove_state, write_state
from longreach.launch.stop import end_engine
from longreach.launch.up_events import EngineCompared, EngineStarted, EngineStopped, EngineStopping, LaunchEvent
from longreach.launch.watch import EngineWatch, WaitLimits
from longreach.rules.finding import Finding

_METRICS_TIMEOUT_S = 15.0  # read once, from a server that has only just begun

OnEvent = Callable[[LaunchEvent], None]


@dataclass(frozen=True, slots=True)
class UpSettings:
    """How to start. `engine` is where vLLM is installed (an environment, its bin folder, its Python); None: on PATH."""

    deployment: str
    folder: StateFolder
    engine: Path | None = None
    plan_path: Path | None = None
    foreground: bool = False  # stay with the engines until they are stopped
    limits: WaitLimits = field(default_factory=WaitLimits)
    stop_times: StopTimes = field(default_factory=StopTimes)


@dataclass(frozen=True, slots=True)
class InstanceReport:
    """One engine that became ready."""

    name: str
    base_url: str
    pid: int
    log_path: Path
    engine_version: str | None
    ready_after_s: float
    phases: tuple[PhaseTime, ...]
    observations: tuple[Observation, ...]
    findings: tuple[Finding, ...]
    unplanned_variables: tuple[str, ...] = ()  # inherited from the shell; they may change what the engine does


@dataclass(frozen=True, slots=True)
class UpReport:
    """A deployment that runs (or, in the foreground, ran until it was stopped)."""

    deployment: str
    instances: tuple[InstanceReport, ...]


def up(specs: Sequence[LaunchSpec], settings: UpSettings, on_event: OnEvent) -> UpReport:
    """Start all instances, wait, compare. They keep running when it returns, unless `foreground` is set.

    Raises EngineError when one cannot be started, KeyboardInterrupt on Ctrl-C, SIGTERM or SIGHUP; then none is left running.
    """
    _check_platform()
    check_specs(specs)
    commands = [resolve_engine(spec.argv, settings.engine, os.environ) for spec in specs]
    settings.folder.prepare(settings.deployment)
    try:
        with hold_lock(settings.folder.lock_path(settings.deployment), "up"), StopSignals() as signals:
            _clear_away_earlier(settings)
            for spec in specs:
                _check_port(spec)
            with contextlib.ExitStack() as guard:
                startup = _Startup(settings, on_event, signals, guard)
                report = startup.run(list(zip(specs, commands, strict=True)))
                if not settings.foreground:
                    signals.check()
                    guard.pop_all()  # from here on they live without us
            return report
    except LockHeldError as held:
        raise EngineError(
            f"deployment '{settings.deployment}' is being started or stopped by another command",
            f"its lock is {held}",
            "wait for it, or end it: longreach down " + settings.deployment,
        ) from held


def _check_platform() -> None:
    if sys.platform != "linux":
        raise UsageError(
            "engines are started on Linux only",
            f"this is {sys.platform}",
            "run `longreach up` on the machine with the GPUs; planning works here",
        )


def _clear_away_earlier(settings: UpSettings) -> None:
    """Refuse beside a living deployment of that name; clear away what a dead one left."""
    state = read_state(settings.folder, settings.deployment)
    if state is None:
        return
    for instance in state.instances:
        if is_alive(instance.process):
            raise EngineError(
                f"deployment '{settings.deployment}' already runs",
                f"engine '{instance.name}' is pid {instance.process.pid} on port {instance.port}"
                + (f", started from {state.plan_path}" if state.plan_path else ""),
                f"longreach down {settings.deployment}, or give this one a name of its own: --name NAME",
            )
    for instance in state.instances:
        end_engine(instance, settings.stop_times)
    remove_state(settings.folder, settings.deployment)


def _check_port(spec: LaunchSpec) -> None:
    if not port_is_free(spec.host, spec.port):
        holder = next(iter(read_port_holders(spec.port)), None)
        raise EngineError(
            f"port {spec.port} of engine '{spec.name}' is in use",
            f"{holder or 'an unknown process'} listens on it",
            f"stop it{f' (kill {holder.pid})' if holder and holder.pid else ''}, or plan with another port",
        )


@dataclass(slots=True)
class _Startup:
    """One run of `up`. Whatever it starts, it gives to `guard` to end."""

    settings: UpSettings
    on_event: OnEvent
    signals: StopSignals
    guard: contextlib.ExitStack
    watches: list[EngineWatch] = field(default_factory=list)
    num_survivors: int = 0

    def run(self, wanted: Sequence[tuple[LaunchSpec, ResolvedCommand]]) -> UpReport:
        self.guard.callback(self._forget)
        for spec, command in wanted:
            self.signals.check()
            self._start(spec, command)
        while not all(watch.is_ready for watch in self.watches):
            self._step_all()
        for watch in self.watches:
            for event in watch.finish_log(time.monotonic()):
                self.on_event(event)
        reports = tuple(self._compare(watch) for watch in self.watches)
        self._write_state("ready")
        if self.settings.foreground:
            self._attend()
        return UpReport(self.settings.deployment, reports)

    def _start(self, spec: LaunchSpec, command: ResolvedCommand) -> None:
        log_path = self.settings.folder.log_path(self.settings.deployment, spec.name)
        engine = start_engine(spec, command, os.environ, log_path)
        now_s = time.monotonic()
        limits = self.settings.limits
        watch = EngineWatch(engine, limits, LogTail(log_path), begin(now_s), last_moved_s=now_s)
        self.guard.callback(self._end, watch)
        self.watches.append(watch)
        self._write_state("starting")
        self.on_event(EngineStarted(spec.name, engine.process.pid, engine.argv, log_path))

    def _step_all(self) -> None:
        self.signals.check()
        for watch in self.watches:
            for event in watch.step(time.monotonic()):
                self.on_event(event)
        time.sleep(self.settings.limits.poll_s)

    def _attend(self) -> None:
        """Stay until somebody asks to stop. An engine that ends by itself is an error."""
        for watch in self.watches:
            watch.keeps_lines = False
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                self._step_all()

    def _compare(self, watch: EngineWatch) -> InstanceReport:
        spec, engine = watch.engine.spec, watch.engine
        readings = (*readings_of_log(watch.lines), *self._read_cache_config(watch))
        observations = observe(spec.expected, readings)
        unplanned = unplanned_variables(os.environ, spec.env)
        differences = compare_with_plan(spec.expected, readings, unplanned)
        findings = tuple(replace(finding, instance=spec.name) for finding in differences)
        self.on_event(EngineCompared(spec.name, observations, findings))
        return InstanceReport(
            name=spec.name,
            base_url=spec.base_url,
            pid=engine.process.pid,
            log_path=engine.log_path,
            engine_version=engine.version,
            ready_after_s=watch.progress.phase_started_s - watch.progress.started_s,
            phases=watch.progress.finished,
            observations=observations,
            findings=findings,
            unplanned_variables=unplanned,
        )

    def _read_cache_config(self, watch: EngineWatch) -> tuple[Reading, ...]:
        spec = watch.engine.spec
        answer = fetch(spec.connect_host, spec.port, "/metrics", _METRICS_TIMEOUT_S)
        if answer is None or answer.status != HTTPStatus.OK:
            return ()
        return readings_of_cache_config(parse_metrics(answer.text).cache)

    def _write_state(self, phase: str) -> None:
        plan_path = self.settings.plan_path
        write_state(
            self.settings.folder,
            DeploymentState(
                deployment=self.settings.deployment,
                phase="ready" if phase == "ready" else "starting",
                instances=tuple(watch.engine.state() for watch in self.watches),
                plan_path=str(plan_path.absolute()) if plan_path else None,
            ),
        )

    def _end(self, watch: EngineWatch) -> None:
        self.signals.begin_stopping()
        engine = watch.engine
        try:
            if engine.look_around():
                self.on_event(EngineStopping(watch.name, engine.process.pid))
        finally:  # a listener that fails (its terminal is gone) must not save the engine
            end = end_engine(engine.state(), self.settings.stop_times, self.signals.is_hurried)
            self.num_survivors += len(end.result.survivors)
        self.on_event(EngineStopped(watch.name, end.result, end.removed_files))

    def _forget(self) -> None:
        if not self.num_survivors:
            remove_state(self.settings.folder, self.settings.deployment)
