"""One rule with a deployment on which it speaks and near ones on which it is silent."""

from dataclasses import dataclass

from longreach.rules.deployment import Deployment
from longreach.rules.finding import Finding
from longreach.rules.rule import Rule


@dataclass(frozen=True, slots=True)
class Case:
    """`fires` also gives the example of the rule's page."""

    rule: Rule
    fires: Deployment
    silent: tuple[Deployment, ...]


def render(finding: Finding) -> str:
    """The finding as a terminal shows it."""
    return f"{finding.severity}[{finding.code}]: {finding.what}\n  why: {finding.why}\n  fix: {finding.fix}"
