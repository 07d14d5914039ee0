"""What happens during `up` and `down`, as values for whoever draws it. Every event names its instance."""

from dataclasses import dataclass
from pathlib import Path

from longreach.engine.events import LogEvent
from longreach.host.processes import StopResult
from longreach.launch.compare import Observation
from longreach.launch.progress import Phase, PhaseTime
from longreach.rules.finding import Finding


@dataclass(frozen=True, slots=True)
class EngineStarted:
    """The process runs; its output goes to the log."""

    instance: str
    pid: int
    argv: tuple[str, ...]
    log_path: Path


@dataclass(frozen=True, slots=True)
class EngineSaid:
    """A line of the log that means something."""

    instance: str
    event: LogEvent
    text: str


@dataclass(frozen=True, slots=True)
class PhaseBegan:
    """The start moved on; `finished` is the phase before it."""

    instance: str
    phase: Phase
    finished: PhaseTime
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class StillStarting:
    """A sign of life, several times a second: where the start stands and how long the log has been silent."""

    instance: str
    phase: Phase
    detail: str
    elapsed_s: float
    phase_elapsed_s: float
    silent_s: float


@dataclass(frozen=True, slots=True)
class EngineReady:
    """It answers requests."""

    instance: str
    base_url: str
    elapsed_s: float
    phases: tuple[PhaseTime, ...]


@dataclass(frozen=True, slots=True)
class EngineCompared:
    """What it says was held against the plan."""

    instance: str
    observations: tuple[Observation, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class EngineStopping:
    """It is being ended."""

    instance: str
    pid: int


@dataclass(frozen=True, slots=True)
class EngineStopped:
    """It has ended, as far as it could be made to."""

    instance: str
    result: StopResult
    removed_files: tuple[Path, ...]


LaunchEvent = (
    EngineStarted
    | EngineSaid
    | PhaseBegan
    | StillStarting
    | EngineReady
    | EngineCompared
    | EngineStopping
    | EngineStopped
)
