"""A finding: one thing that is wrong or worth knowing, with its proof and its cure."""

from dataclasses import dataclass
from typing import Literal, get_args

from longreach.rules.edit import Edit
from longreach.rules.remedy import Remedy

Severity = Literal["error", "warning", "advice"]

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""Gravest first: the order in which findings are shown."""

Outcome = Literal["refused_by_parser", "refused_at_start", "no_effect"]
"""What vLLM makes of it: exits 2 at once, fails while it starts, or accepts it and does not do what it says."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`what` is one lower-case line, `why` the numbers that prove it, `fix` something to paste (or says there is none)."""

    code: str  # stable: LR103
    severity: Severity
    what: str
    why: str
    fix: str
    cause: str  # stable snake_case word
    remedy: Remedy | None = None  # the fix as option values, where options alone can cure it
    instance: str | None = None  # which instance of a plan of several
    outcome: Outcome | None = None  # None: it runs, and could be better
    edit: Edit | None = None  # the fix as a change of the command's words


@dataclass(frozen=True, slots=True)
class FindingKind:
    """What all findings of one code share; its page is `pages/<code>.md`."""

    code: str
    severity: Severity
    cause: str
    title: str  # one lower-case line without values
    outcome: Outcome | None = None

    def finding(self, what: str, why: str, fix: str, remedy: Remedy | None = None, edit: Edit | None = None) -> Finding:
        """A finding of this kind."""
        return Finding(self.code, self.severity, what, why, fix, self.cause, remedy, outcome=self.outcome, edit=edit)
