"""One rule with a subject on which it speaks and near ones on which it is silent."""

from dataclasses import dataclass
from typing import Generic

from longreach.rules.finding import Finding
from longreach.rules.rule import Check, T


@dataclass(frozen=True, slots=True)
class Case(Generic[T]):
    """The subjects are deployments or written commands. `fires` also gives the example of the rule's page."""

    rule: Check[T]
    fires: T
    silent: tuple[T, ...]


def render(finding: Finding) -> str:
    """The finding as a terminal shows it."""
    return f"{finding.severity}[{finding.code}]: {finding.what}\n  why: {finding.why}\n  fix: {finding.fix}"
