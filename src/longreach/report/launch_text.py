"""What `up`, `status` and `down` print."""

from collections.abc import Sequence

from longreach.launch.compare import Observation
from longreach.launch.down import DownReport, InstanceEnd
from longreach.launch.status import InstanceStatus
from longreach.launch.up import InstanceReport, UpReport
from longreach.report.findings_text import render_findings
from longreach.report.style import Paint, table
from longreach.rules.finding import Finding
from longreach.units import format_duration

_COLOUR = {"pass": "green", "fail": "red", "cannot tell": "yellow"}
_LIFE_COLOUR = {"alive": "green", "dead": "red", "stale": "yellow", "unreadable": "red"}


def render_up(report: UpReport, paint: Paint) -> str:
    """Each instance, what it says against what was planned, and the findings."""
    lines: list[str] = []
    for instance in report.instances:
        lines += [*_instance(instance, paint), ""]
    findings = [finding for instance in report.instances for finding in instance.findings]
    return "\n".join([*lines, *_render_differences(findings, paint)])


def render_comparison(observations: Sequence[Observation], findings: Sequence[Finding], paint: Paint) -> list[str]:
    """One engine against its plan."""
    return [*render_observations(observations, paint), *_render_differences(findings, paint)]


def _render_differences(findings: Sequence[Finding], paint: Paint) -> list[str]:
    if findings:
        return render_findings(findings, paint)
    return [paint("The engine runs as planned, as far as it says.", "green")]


def _instance(instance: InstanceReport, paint: Paint) -> list[str]:
    version = f", vLLM {instance.engine_version}" if instance.engine_version else ""
    head = f"{instance.name} is ready at {instance.base_url} after {format_duration(instance.ready_after_s)}"
    phases = "  ".join(f"{phase.phase} {format_duration(phase.seconds)}" for phase in instance.phases)
    return [
        paint(head, "bold") + f" (pid {instance.pid}{version})",
        f"  start: {phases}",
        f"  log:   {instance.log_path}",
        *render_observations(instance.observations, paint),
    ]


def render_observations(observations: Sequence[Observation], paint: Paint) -> list[str]:
    """Planned beside observed, one line a fact."""
    rows = [("", "fact", "planned", "observed")]
    rows += [(item.verdict, item.name, _figure(item.planned), _figure(item.observed)) for item in observations]
    lines = table(rows, frozenset({2, 3}))
    return (
        [lines[0], *(_paint_mark(line, item, paint) for line, item in zip(lines[1:], observations, strict=True))]
        if observations
        else []
    )


def _paint_mark(line: str, item: Observation, paint: Paint) -> str:
    return line.replace(item.verdict, paint(item.verdict, _COLOUR[item.verdict]), 1)


def _figure(value: float | str | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def render_status(instances: Sequence[InstanceStatus], paint: Paint) -> str:
    """One line an instance, a note under each that does not simply run."""
    if not instances:
        return "nothing is running; start something: longreach up plan.yaml"
    lines: list[str] = []
    for item in instances:
        life = paint(item.life, _LIFE_COLOUR[item.life])
        parts = [f"{item.deployment}/{item.name}", life]
        parts += [item.health] if item.health else []
        parts += [item.base_url] if item.base_url else []
        parts += [f"up {format_duration(item.uptime_s)}"] if item.uptime_s is not None else []
        if item.num_running is not None:
            parts.append(f"{item.num_running:.0f} running, {item.num_waiting or 0:.0f} waiting")
        if item.kv_cache_usage is not None:
            parts.append(f"KV {100 * item.kv_cache_usage:.1f} % used")
        lines.append("  ".join(parts))
        if item.life != "alive":
            pids = ", ".join(map(str, item.orphan_pids))
            orphans = f"; {len(item.orphan_pids)} of its processes still run (pid {pids})" if pids else ""
            lines.append(f"  {item.note}{orphans}; clean up: longreach down {item.deployment}")
    return "\n".join(lines)


def render_down(report: DownReport, paint: Paint) -> str:
    """What became of each instance."""
    lines = [_end(end, paint) for end in report.instances]
    lines += [f"{name}: nothing of that name is known" for name in report.unknown]
    lines += list(report.hints)
    return "\n".join(lines or ["nothing was running"])


def _end(end: InstanceEnd, paint: Paint) -> str:
    name = f"{end.deployment}/{end.name}"
    if end.outcome == "survived":
        return paint(f"{name}: still there: pid {', '.join(map(str, end.survivors))}", "red")
    killed = f", {len(end.killed)} process(es) had to be killed" if end.killed else ""
    files = f", removed {len(end.removed_files)} file(s) from shared memory" if end.removed_files else ""
    return f"{name}: {end.outcome}{killed}{files}"
