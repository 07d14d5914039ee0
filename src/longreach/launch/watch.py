"""Watch one engine until it is ready: its log, its process, its health. One small step at a time, so that many can be watched."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from longreach.engine import events
from longreach.errors import EngineError
from longreach.host.ports import read_port_holders
from longreach.host.processes import read_cpu_s
from longreach.launch.engine_process import EngineProcess
from longreach.launch.failure import explain_end, explain_lateness, explain_later_end, explain_silence
from longreach.launch.http_probe import is_healthy
from longreach.launch.log_tail import LogTail, read_last_lines
from longreach.launch.progress import StartProgress, advance, enter
from longreach.launch.readings import LoggedLine, read_log_events
from longreach.launch.up_events import EngineReady, EngineSaid, LaunchEvent, PhaseBegan, StillStarting


@dataclass(frozen=True, slots=True)
class WaitLimits:
    """How long a start may take, in seconds. The deadline moves along with the log, up to `total_s`."""

    stall_s: float = 300.0  # without a new byte in the log
    total_s: float = 3 * 3600.0
    poll_s: float = 0.2
    probe_s: float = 1.0  # between two looks at health and at the family of processes
    http_timeout_s: float = 2.0


@dataclass(slots=True)
class EngineWatch:
    """The state of watching one engine. `lines` keeps what it said that means something."""

    engine: EngineProcess
    limits: WaitLimits
    tail: LogTail
    progress: StartProgress
    last_moved_s: float
    lines: list[LoggedLine] = field(default_factory=list)
    keeps_lines: bool = True
    is_ready: bool = False
    _next_probe_s: float = 0.0
    _cpu_at_last_move_s: float = 0.0

    @property
    def name(self) -> str:
        """The instance's name."""
        return self.engine.spec.name

    def step(self, now_s: float) -> Iterator[LaunchEvent]:
        """Look once. Raises EngineError when the engine has ended, hangs, or is not the one that answers."""
        exit_code = self.engine.poll()
        yield from self._read_log(now_s)
        if exit_code is not None:
            explain = explain_later_end if self.is_ready else explain_end
            raise explain(self.name, exit_code, read_last_lines(self._log_path), self._log_path)
        if self.is_ready:
            return
        if now_s >= self._next_probe_s:
            self._next_probe_s = now_s + self.limits.probe_s
            yield from self._probe(now_s)
        if not self.is_ready:
            self._check_deadlines(now_s)
            yield self._sign_of_life(now_s)

    def finish_log(self, now_s: float) -> Iterator[LaunchEvent]:
        """Read what was logged between the last look and now."""
        yield from self._read_log(now_s)

    @property
    def _log_path(self) -> Path:
        return self.engine.log_path

    def _read_log(self, now_s: float) -> Iterator[LaunchEvent]:
        before = self.tail.offset
        lines = self.tail.read_lines()
        if self.tail.offset != before:
            self.last_moved_s = now_s
            self._cpu_at_last_move_s = read_cpu_s(self.engine.family)
        for line in read_log_events(lines):
            if self.keeps_lines:
                self.lines.append(line)
            if isinstance(line.event, events.OffloadFile):
                self.engine.shared_memory_files.add(Path(line.event.path))
            yield EngineSaid(self.name, line.event, line.text)
            yield from self._move_to(advance(self.progress, line.event, now_s), now_s)

    def _move_to(self, progress: StartProgress, now_s: float) -> Iterator[LaunchEvent]:
        began = progress.phase != self.progress.phase
        self.progress = progress
        if began:
            yield PhaseBegan(self.name, progress.phase, progress.finished[-1], progress.elapsed_s(now_s))

    def _probe(self, now_s: float) -> Iterator[LaunchEvent]:
        self.engine.look_around()
        spec = self.engine.spec
        if not is_healthy(spec.connect_host, spec.port, self.limits.http_timeout_s):
            return
        self._check_it_is_ours()
        self.is_ready = True
        yield from self._move_to(enter(self.progress, "ready", now_s), now_s)
        yield EngineReady(self.name, spec.base_url, self.progress.elapsed_s(now_s), self.progress.finished)

    def _check_it_is_ours(self) -> None:
        """Another server that took the port between our look and the engine's would be as healthy."""
        holders = read_port_holders(self.engine.spec.port)
        family = {member.pid for member in self.engine.family}
        if not holders or any(holder.pid is None or holder.pid in family for holder in holders):
            return
        raise EngineError(
            f"port {self.engine.spec.port} is answered by another server than engine '{self.name}'",
            f"it belongs to {holders[0]}",
            "stop that server, or plan with another port",
        )

    def _check_deadlines(self, now_s: float) -> None:
        silent_s = now_s - self.last_moved_s
        if silent_s >= self.limits.stall_s:
            cpu_s = max(0.0, read_cpu_s(self.engine.look_around()) - self._cpu_at_last_move_s)
            lines = read_last_lines(self._log_path)
            raise explain_silence(self.name, self.progress.phase, silent_s, cpu_s, lines, self._log_path)
        if self.progress.elapsed_s(now_s) >= self.limits.total_s:
            raise explain_lateness(self.name, self.progress.phase, self.limits.total_s, self._log_path)

    def _sign_of_life(self, now_s: float) -> StillStarting:
        return StillStarting(
            instance=self.name,
            phase=self.progress.phase,
            detail=self.progress.detail,
            elapsed_s=self.progress.elapsed_s(now_s),
            phase_elapsed_s=self.progress.phase_elapsed_s(now_s),
            silent_s=now_s - self.last_moved_s,
        )
