"""Where a starting engine stands, from what it logs. Pure: events and times in, phases out."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from longreach.engine import events
from longreach.engine.events import LogEvent

Phase = Literal["starting", "weights", "compile", "kv_cache", "graphs", "server", "ready"]

PHASES: tuple[Phase, ...] = get_args(Phase)
"""In the order a start goes through them; a build skips what it does not do (a CPU build compiles and captures nothing)."""

_PHASE_OF: tuple[tuple[type[LogEvent], Phase], ...] = (
    (events.WeightsStarted, "weights"),
    (events.WeightsProgress, "weights"),
    (events.WeightsLoaded, "weights"),
    (events.WeightsMemory, "compile"),  # the model is on the GPU; profiling, which compiles, comes next
    (events.CompileStarted, "compile"),
    (events.Compiled, "compile"),
    (events.KvMemory, "kv_cache"),
    (events.KvCapacityLine, "kv_cache"),
    (events.GraphProgress, "graphs"),
    (events.GraphsCaptured, "graphs"),
    (events.EngineInitialized, "server"),
    (events.Listening, "server"),
)


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """A phase that is over, and how long it took."""

    phase: Phase
    seconds: float


@dataclass(frozen=True, slots=True)
class StartProgress:
    """Times are of any steady clock. `detail` is what the engine counts within the phase: `3 of 12 shards`."""

    started_s: float
    phase: Phase
    phase_started_s: float
    finished: tuple[PhaseTime, ...] = ()
    detail: str = ""

    def elapsed_s(self, now_s: float) -> float:
        """Since the start."""
        return now_s - self.started_s

    def phase_elapsed_s(self, now_s: float) -> float:
        """Since the phase began."""
        return now_s - self.phase_started_s


def begin(now_s: float) -> StartProgress:
    """A start that begins now."""
    return StartProgress(started_s=now_s, phase="starting", phase_started_s=now_s)


def advance(progress: StartProgress, event: LogEvent, now_s: float) -> StartProgress:
    """The progress after one more event. It never goes back: the lines of several workers overtake each other."""
    phase = next((phase for kind, phase in _PHASE_OF if isinstance(event, kind)), None)
    if phase is None or PHASES.index(phase) < PHASES.index(progress.phase):
        return progress
    moved = enter(progress, phase, now_s)
    return replace(moved, detail=_detail(event) or moved.detail)


def enter(progress: StartProgress, phase: Phase, now_s: float) -> StartProgress:
    """The progress with `phase` begun now; unchanged when it is in it already."""
    if phase == progress.phase:
        return progress
    over = PhaseTime(progress.phase, progress.phase_elapsed_s(now_s))
    return StartProgress(progress.started_s, phase, now_s, (*progress.finished, over))


def _detail(event: LogEvent) -> str:
    match event:
        case events.WeightsProgress(num_done, num_total):
            return f"{num_done} of {num_total} shards"
        case events.GraphProgress(kind, num_done, num_total):
            return f"{num_done} of {num_total} graphs" + (f" ({kind})" if kind else "")
        case events.KvCapacityLine(kv_capacity_tokens=int(tokens)):
            return f"{tokens:,} tokens"
    return ""
