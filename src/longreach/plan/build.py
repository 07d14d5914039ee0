"""Goal + model + machine + release to a Plan."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

from longreach.engine.parser import parse_arguments
from longreach.engine.registry import get_registry
from longreach.engine.release import Release
from longreach.errors import UnknownModelError, UsageError
from longreach.hardware.spec import Machine
from longreach.model.spec import ModelSpec
from longreach.plan.alternatives import find_alternatives
from longreach.plan.goal import NamedGoal
from longreach.plan.instance import PlannedInstance, plan_instance
from longreach.plan.summary import kv_bytes_per_token, summarize_machine, summarize_model
from longreach.plan.values import Alternative, Plan, Verdict
from longreach.rules.finding import Finding
from longreach.rules.registry import COMMAND_RULES, check_deployment
from longreach.rules.written import WrittenCommand

_SPEED_CODES = "LR8"  # a wish that physics denies is an error, but the deployment still starts
_CURABLE = ("LR101", "LR103", "LR105", "LR107", "LR201", "LR202", "LR801", "LR802")
"""Errors of room, reach and speed: a nearer goal may not have them."""
_SEVERITY = {"error": 0, "warning": 1, "advice": 2}


def make_plan(
    model: ModelSpec,
    machine: Machine,
    release: Release,
    goals: Sequence[NamedGoal],
    *,
    with_alternatives: bool = True,
) -> Plan:
    """The plan for one or more instances that share the machine's GPUs in order. Raises UsageError for impossible requests.

    `with_alternatives`: count what would fit instead, where the goal does not.
    """
    planned = plan_instances(model, machine, release, goals)
    return assemble(model, machine, release, planned, with_alternatives=with_alternatives)


def assemble(
    model: ModelSpec,
    machine: Machine,
    release: Release,
    planned: Sequence[PlannedInstance],
    *,
    with_alternatives: bool = True,
) -> Plan:
    """Planned instances with what the rules say of them, as one plan."""
    several = len(planned) > 1
    findings = [
        replace(finding, instance=instance.plan.name) if several else finding
        for instance in planned
        for finding in _findings(instance)
        if instance.plan.loads or finding.severity == "error"  # advice on what never runs is noise
    ]
    choices = [
        replace(choice, option=f"{instance.plan.name}: {choice.option}") if several else choice
        for instance in planned
        for choice in instance.choices
    ]
    return Plan(
        verdict=_verdict(planned, findings),
        model=summarize_model(model, planned[0].plan.options.model, _kv_bytes_per_token(planned[0])),
        machine=summarize_machine(machine),
        release=release.version,
        instances=tuple(instance.plan for instance in planned),
        findings=tuple(sorted(findings, key=lambda item: (_SEVERITY[item.severity], item.code))),
        choices=tuple(choices),
        alternatives=_alternatives(planned, findings) if with_alternatives else (),
    )


def _findings(instance: PlannedInstance) -> Iterator[Finding]:
    """What the rules say of the deployment, and the errors that lint would find in the words of its command."""
    found = check_deployment(instance.deployment)
    causes = {finding.cause for finding in found}
    yield from found
    yield from (finding for finding in _refusals(instance) if finding.cause not in causes)


def _refusals(instance: PlannedInstance) -> Iterator[Finding]:
    deployment, plan = instance.deployment, instance.plan
    registry = get_registry(deployment.release.version)
    written = WrittenCommand(
        parsed=parse_arguments(plan.argv, registry),
        release=deployment.release,
        registry=registry,
        options=plan.options,
        env=tuple(plan.env.items()),
        model=deployment.model,
        machine=deployment.machine,
    )
    findings = (finding for rule in COMMAND_RULES for finding in rule.check(written))
    return (finding for finding in findings if finding.severity == "error")


def plan_instances(
    model: ModelSpec, machine: Machine, release: Release, goals: Sequence[NamedGoal]
) -> tuple[PlannedInstance, ...]:
    """Each on its own GPUs and port, in order."""
    _check_names(goals)
    free = list(range(machine.num_gpus))
    unsized = sum(1 for named in goals if _own_gpus(named) is None)
    equal_share = max(len(free) - sum(_own_gpus(named) or 0 for named in goals), 0) // max(unsized, 1)
    planned: list[PlannedInstance] = []
    for named in goals:
        share = named.num_gpus or (len(free) if named.goal.tp_size is not None else equal_share)
        goal = replace(named.goal, port=_free_port(named.goal.port, planned))
        instance = plan_instance(replace(named, goal=goal), model, machine, release, free[:share])
        del free[: len(instance.plan.gpu_indices)]
        planned.append(instance)
    return tuple(_beside_others(planned))


def _alternatives(planned: Sequence[PlannedInstance], findings: Sequence[Finding]) -> tuple[Alternative, ...]:
    """None where something else than room or reach stops the start: no other goal would cure it."""
    if any(finding.severity == "error" and finding.code not in _CURABLE for finding in findings):
        return ()
    is_alone = len(planned) == 1
    return tuple(
        alternative if is_alone else replace(alternative, instance=instance.plan.name)
        for instance in planned
        for alternative in find_alternatives(instance.case, instance.decision, is_alone=is_alone)
    )


def _free_port(port: int, planned: Sequence[PlannedInstance]) -> int:
    """The wanted port, or the next one that no earlier instance took."""
    taken = {instance.plan.port for instance in planned}
    return next(candidate for candidate in count(port) if candidate not in taken)


def _beside_others(planned: Sequence[PlannedInstance]) -> Iterator[PlannedInstance]:
    for instance in planned:
        others = tuple(other.plan.options for other in planned if other is not instance)
        yield replace(instance, deployment=replace(instance.deployment, others=others))


def _own_gpus(named: NamedGoal) -> int | None:
    """GPUs of an instance whose share or TP is given; None where it is to be chosen."""
    goal = named.goal
    if named.num_gpus is not None or goal.tp_size is None:
        return named.num_gpus
    return goal.tp_size * (goal.pp_size or 1) * (goal.dp_size or 1)


def _check_names(goals: Sequence[NamedGoal]) -> None:
    names = [named.name for named in goals]
    if len(set(names)) < len(names):
        raise UsageError(
            f"instance names repeat: {', '.join(names)}", "each instance needs its own", "give them different names"
        )


def _verdict(planned: Sequence[PlannedInstance], findings: Sequence[Finding]) -> Verdict:
    """`does_not_fit` when one instance is sure not to start, or to hold no request; `unknown` when one cannot be counted."""
    memories = [instance.plan.memory for instance in planned]
    capacities = [instance.plan.kv_cache for instance in planned]
    refused = any(capacity is not None and not capacity.serves for capacity in capacities)
    if refused or any(memory is not None and memory.fits is False for memory in memories):
        return "does_not_fit"
    if any(capacity is None for capacity in capacities):
        return "unknown"
    blocked = any(finding.severity == "error" and not finding.code.startswith(_SPEED_CODES) for finding in findings)
    return "does_not_fit" if blocked else "fits"


def _kv_bytes_per_token(planned: PlannedInstance) -> int | None:
    try:
        return kv_bytes_per_token(planned.deployment.model, planned.plan.options.kv_cache_dtype or "auto")
    except UnknownModelError:
        return None
