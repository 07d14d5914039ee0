"""What a rule is: a small pure function from a subject to diagnoses, with a code, a page and the releases it holds for.

The subject is a `Deployment` (what a plan or a readable command amounts to) or a `WrittenCommand` (the words of a foreign command).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from longreach.engine.options import EngineOptions
from longreach.engine.registry import version_key
from longreach.engine.release import Release
from longreach.model.spec import ModelSpec
from longreach.rules.deployment import Deployment
from longreach.rules.edit import Edit
from longreach.rules.finding import Finding, FindingKind, Outcome, Severity
from longreach.rules.remedy import Remedy


class _Subject(Protocol):
    @property
    def release(self) -> Release: ...


class HasOptions(_Subject, Protocol):
    """What a planned deployment and a foreign command have in common. None: not known."""

    @property
    def options(self) -> EngineOptions: ...
    @property
    def model(self) -> ModelSpec | None: ...
    @property
    def max_model_len(self) -> int | None: ...
    @property
    def max_num_batched_tokens(self) -> int | None: ...
    @property
    def max_num_seqs(self) -> int | None: ...


S_contra = TypeVar("S_contra", bound=_Subject, contravariant=True)
T = TypeVar("T", bound=_Subject)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a rule found in one subject; code, severity, cause and outcome come from the rule."""

    what: str
    why: str
    fix: str
    remedy: Remedy | None = None
    edit: Edit | None = None


@dataclass(frozen=True, slots=True)
class Check(Generic[S_contra]):
    """One rule over subjects of one kind.

    `first_release` and `last_release` bound the vLLM releases it is true of; None leaves that end open.
    """

    kind: FindingKind
    diagnose: Callable[[S_contra], Iterable[Diagnosis]]
    first_release: str | None = None
    last_release: str | None = None

    def applies_to(self, release: Release) -> bool:
        """Whether the rule holds for this release."""
        first, last = self.first_release, self.last_release
        return (first is None or release.number >= version_key(first)) and (
            last is None or release.number <= version_key(last)
        )

    def check(self, subject: S_contra) -> Iterator[Finding]:
        """The rule's findings on this subject; none when the rule does not hold for its release."""
        if not self.applies_to(subject.release):
            return
        for said in self.diagnose(subject):
            yield self.kind.finding(said.what, said.why, said.fix, said.remedy, said.edit)


Rule = Check[Deployment]
OptionRule = Check[HasOptions]
"""A rule that looks at settings only, so that a command is judged by it whose model is not known."""


def rule(
    code: str,
    severity: Severity,
    cause: str,
    title: str,
    *,
    outcome: Outcome | None = None,
    first: str | None = None,
    last: str | None = None,
) -> Callable[[Callable[[T], Iterable[Diagnosis]]], Check[T]]:
    """Make a rule of the decorated function. A rule counts only once its module lists it in `RULES`."""
    kind = FindingKind(code, severity, cause, title, outcome)

    def decorate(diagnose: Callable[[T], Iterable[Diagnosis]]) -> Check[T]:
        return Check(kind, diagnose, first, last)

    return decorate
