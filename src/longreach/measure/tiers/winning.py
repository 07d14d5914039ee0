"""The plan with the tiers that paid. Pure."""

from dataclasses import replace

from longreach.engine.command import render_command
from longreach.engine.release import get_release
from longreach.engine.shell import render_shell
from longreach.errors import UsageError
from longreach.measure.tiers.values import StepVerdict, TierSet, TiersReport, TierStep
from longreach.measure.tiers.variants import variant_options
from longreach.plan.values import Choice, InstancePlan, Plan
from longreach.rules import offload, tiers
from longreach.rules.finding import Finding

_TIER_CODES = frozenset(rule.kind.code for rule in (*tiers.RULES, *offload.RULES)) - {
    "LR313"
}  # that one is of prefix hits
_DISK_CODES = frozenset({"LR302", "LR303", "LR311"})
_ARC_CODES = frozenset({"LR315"})
_OUTCOMES: dict[StepVerdict, str] = {"keep": "kept", "drop": "left out", "not_enough_data": "left out, undecided"}


def winning_plan(plan: Plan, report: TiersReport) -> Plan:
    """The plan as it was measured best: the command, tiers and findings of one instance, and why, among its choices.

    UsageError where a tier would be left out without a verdict.
    """
    winner = report.winner
    if winner is None or not report.is_complete:
        raise UsageError("there is no winning plan", "not every variant was measured", "-o FOLDER --resume")
    instance = next(item for item in plan.instances if item.name == report.instance)
    won = _with_tiers(instance, winner, plan.release)
    return replace(
        plan,
        instances=tuple(won if item.name == won.name else item for item in plan.instances),
        variants=tuple(
            replace(variant, instances=tuple(won if item == instance else item for item in variant.instances))
            for variant in plan.variants
        ),
        findings=tuple(finding for finding in plan.findings if not _is_obsolete(finding, instance.name, winner)),
        choices=(*plan.choices, *(_choice(step) for step in report.steps)),
    )


def _with_tiers(instance: InstancePlan, winner: TierSet, release: str) -> InstancePlan:
    """What the instance no longer has, it no longer promises."""
    options = variant_options(instance.options, winner)
    if options == instance.options:
        return instance
    command = render_command(options, get_release(release))
    has_cpu, has_disk = "cpu" in winner.tiers, "disk" in winner.tiers
    figures = instance.concurrency_at_mean_input
    return replace(
        instance,
        argv=command.argv,
        shell=render_shell(command),
        options=options,
        tiers=tuple(tier for tier in instance.tiers if tier.name in winner.tiers),
        tier_forecasts=tuple(item for item in instance.tier_forecasts if item.name in winner.tiers),
        speed=tuple(
            replace(
                speed,
                ttft_from_cpu_s=speed.ttft_from_cpu_s if has_cpu else None,
                ttft_from_disk_s=speed.ttft_from_disk_s if has_disk else None,
            )
            for speed in instance.speed
        ),
        concurrency_at_mean_input=figures if figures is None or has_cpu else replace(figures, gpu_and_cpu=None),
    )


def _is_obsolete(finding: Finding, instance: str, winner: TierSet) -> bool:
    if finding.instance not in (None, instance):
        return False
    gone = set() if "cpu" in winner.tiers else set(_TIER_CODES)
    gone |= set() if "disk" in winner.tiers else _DISK_CODES
    gone |= set() if winner.policy == "arc" else _ARC_CODES
    return finding.code in gone


def _choice(step: TierStep) -> Choice:
    option = "--eviction" if step.is_policy else f"--{step.variant.added}-tier"
    return Choice(option, _OUTCOMES[step.verdict], f"measured: {step.why}")
