"""A finding: one thing that is wrong or worth knowing, with its proof and its cure."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "advice"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`what` is one lower-case line, `why` the numbers that prove it, `fix` something to paste (or says there is none)."""

    code: str  # stable: LR103
    severity: Severity
    what: str
    why: str
    fix: str
    cause: str  # stable snake_case word
