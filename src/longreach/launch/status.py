"""`status`: what became of the deployments that were started on this machine."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Literal

from longreach.engine.metrics import EngineMetrics, parse_metrics
from longreach.errors import InputFileError
from longreach.host.processes import read_boot_id, read_family, read_identity
from longreach.launch.http_probe import fetch
from longreach.launch.state import DeploymentState, InstanceState, StateFolder, read_state

_HTTP_TIMEOUT_S = 5.0  # a server that is busy with a long prompt answers late

Life = Literal["alive", "dead", "stale", "unreadable"]
"""`stale`: the machine was rebooted, or the pid belongs to somebody else by now."""

Health = Literal["ok", "starting", "unhealthy", "no answer"]


@dataclass(frozen=True, slots=True)
class InstanceStatus:
    """One instance. Figures are None where the engine does not answer; `note` is one line for people."""

    deployment: str
    name: str
    life: Life
    note: str
    health: Health | None = None
    pid: int | None = None
    base_url: str | None = None
    uptime_s: float | None = None
    num_running: float | None = None
    num_waiting: float | None = None
    kv_cache_usage: float | None = None  # 0..1
    engine_version: str | None = None
    log_path: Path | None = None
    plan_path: Path | None = None
    orphan_pids: tuple[int, ...] = ()


def status(folder: StateFolder) -> tuple[InstanceStatus, ...]:
    """Every instance of every known deployment, by name. A state file that cannot be read is one of its lines."""
    return tuple(line for deployment in folder.deployments() for line in _of_deployment(folder, deployment))


def _of_deployment(folder: StateFolder, deployment: str) -> Iterator[InstanceStatus]:
    try:
        state = read_state(folder, deployment)
    except InputFileError as error:
        yield InstanceStatus(deployment, "?", "unreadable", f"{error.what}: {error.why}")
        return
    if state is not None:
        for instance in state.instances:
            yield read_instance(state, instance)


def read_instance(state: DeploymentState, instance: InstanceState) -> InstanceStatus:
    """One instance: first whether its process lives, then, over HTTP, how it is."""
    life, note = read_life(instance)
    line = InstanceStatus(
        deployment=state.deployment,
        name=instance.name,
        life=life,
        note=note,
        pid=instance.process.pid,
        base_url=instance.base_url,
        engine_version=instance.engine_version,
        log_path=Path(instance.log_path),
        plan_path=Path(state.plan_path) if state.plan_path else None,
    )
    if life == "alive":
        return _with_health(line, state, instance)
    orphans = tuple(member.pid for member in read_family(instance.process)) if life == "dead" else ()
    return replace(line, orphan_pids=orphans)


def read_life(instance: InstanceState) -> tuple[Life, str]:
    """Whether the process that was started still runs, and what that means."""
    process, found = instance.process, read_identity(instance.process.pid)
    if found == process:
        return "alive", f"runs as pid {process.pid}"
    if process.boot_id != read_boot_id():
        return "stale", "the machine was restarted since; nothing of it is left"
    if found is not None:
        return "stale", f"it ended, and pid {process.pid} belongs to another program now"
    return "dead", f"it ended by itself or was killed; see {instance.log_path}"


def _with_health(line: InstanceStatus, state: DeploymentState, instance: InstanceState) -> InstanceStatus:
    uptime_s = (datetime.now(UTC) - instance.started_at).total_seconds()
    health = _read_health(state, instance)
    if health != "ok":
        return replace(line, health=health, uptime_s=uptime_s)
    answer = fetch(instance.connect_host, instance.port, "/metrics", _HTTP_TIMEOUT_S)
    metrics = parse_metrics(answer.text) if answer is not None and answer.status == HTTPStatus.OK else EngineMetrics()
    return replace(
        line,
        health=health,
        uptime_s=uptime_s,
        num_running=metrics.num_running,
        num_waiting=metrics.num_waiting,
        kv_cache_usage=metrics.kv_cache_usage,
    )


def _read_health(state: DeploymentState, instance: InstanceState) -> Health:
    answer = fetch(instance.connect_host, instance.port, "/health", _HTTP_TIMEOUT_S)
    if answer is not None:
        return "ok" if answer.status == HTTPStatus.OK else "unhealthy"
    return "starting" if state.phase == "starting" else "no answer"
