"""Where the engines of a comparison are started, and that the place is free for it: told before the first start."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from longreach.engine.release import Release
from longreach.errors import EngineError
from longreach.host.ports import port_is_free, read_port_holders
from longreach.host.processes import StopTimes, is_alive
from longreach.launch.executable import resolve_engine
from longreach.launch.lock import LockHeldError, hold_lock
from longreach.launch.spec import LaunchSpec
from longreach.launch.state import StateFolder, read_state
from longreach.launch.watch import WaitLimits
from longreach.measure.tiers.values import TierSet
from longreach.plan.values import InstancePlan


@dataclass(frozen=True, slots=True)
class Ground:
    """Where and how engines are started. `spec` is the planned instance's; its command is replaced by each variant's."""

    instance: InstancePlan
    release: Release
    spec: LaunchSpec
    deployment: str  # the variant's name is added
    state: StateFolder
    engine: Path | None = None
    limits: WaitLimits = field(default_factory=WaitLimits)
    stop_times: StopTimes = field(default_factory=StopTimes)
    disk_bytes_wanted: int | None = None
    keeps_disk: bool = False

    def name_of(self, variant: TierSet) -> str:
        """Under which name a variant runs."""
        return f"{self.deployment}-{variant.slug}"


@contextlib.contextmanager
def hold(ground: Ground, variants: Sequence[TierSet]) -> Iterator[None]:
    """Keep other comparisons of the plan away. EngineError for what would make every run fail: another comparison, an engine
    that a killed one left, no engine's command, a port in use.
    """
    resolve_engine(ground.spec.argv, ground.engine, os.environ)
    ground.state.prepare(ground.deployment)
    try:
        with hold_lock(ground.state.lock_path(ground.deployment), "tiers"):
            for variant in variants:
                _check_ended(ground, variant)
            _check_port(ground.spec)
            yield
    except LockHeldError as held:
        raise EngineError(
            "another comparison of this plan is under way",
            f"its lock is {held}",
            "wait for it, end it" + (f" (kill {held.holder.pid})" if held.holder else ""),
        ) from held


def _check_ended(ground: Ground, variant: TierSet) -> None:
    state = read_state(ground.state, ground.name_of(variant))
    alive = [one for one in state.instances if is_alive(one.process)] if state else []
    if alive:
        raise EngineError(
            f"an engine of an earlier comparison still runs: {ground.name_of(variant)}",
            f"it is pid {alive[0].process.pid}; what had started it was killed",
            f"longreach down {ground.name_of(variant)}",
        )


def _check_port(spec: LaunchSpec) -> None:
    if port_is_free(spec.host, spec.port):
        return
    holder = next(iter(read_port_holders(spec.port)), None)
    raise EngineError(
        f"port {spec.port} of the plan is in use",
        f"{holder or 'an unknown process'} listens on it; a comparison starts engines of its own there",
        "end it (longreach down NAME, where it is the plan's own deployment), or plan with another --port",
    )
