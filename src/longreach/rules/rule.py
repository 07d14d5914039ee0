"""What a rule is: a small pure function from a deployment to diagnoses, with a code, a page and the releases it holds for."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from longreach.engine.release import Release
from longreach.rules.deployment import Deployment
from longreach.rules.finding import Finding, FindingKind, Severity
from longreach.rules.remedy import Remedy


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a rule found in one deployment; code, severity and cause come from the rule."""

    what: str
    why: str
    fix: str
    remedy: Remedy | None = None


Diagnose = Callable[[Deployment], Iterable[Diagnosis]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One check. `first_release` and `last_release` bound the vLLM releases it is true of; None leaves that end open."""

    kind: FindingKind
    diagnose: Diagnose
    first_release: str | None = None
    last_release: str | None = None

    def applies_to(self, release: Release) -> bool:
        """Whether the rule holds for this release."""
        first, last = _number(self.first_release), _number(self.last_release)
        return (first is None or release.number >= first) and (last is None or release.number <= last)

    def check(self, deployment: Deployment) -> Iterator[Finding]:
        """The rule's findings on this deployment; none when the rule does not hold for its release."""
        if not self.applies_to(deployment.release):
            return
        for said in self.diagnose(deployment):
            yield self.kind.finding(said.what, said.why, said.fix, said.remedy)


def rule(
    code: str, severity: Severity, cause: str, title: str, *, first: str | None = None, last: str | None = None
) -> Callable[[Diagnose], Rule]:
    """Make a rule of the decorated function. A rule counts only once its module lists it in `RULES`."""
    kind = FindingKind(code, severity, cause, title)

    def decorate(diagnose: Diagnose) -> Rule:
        return Rule(kind, diagnose, first, last)

    return decorate


def _number(version: str | None) -> tuple[int, ...] | None:
    return None if version is None else tuple(int(part) for part in version.split("."))
