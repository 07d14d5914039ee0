"""A row of the table of start failures; the rows stand in `failure_rows_fit` and `failure_rows_setup`. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FailurePattern:
    """One sentence. `meaning` is one lower-case line; `fix` something to paste, or says that there is none."""

    cause: str
    pattern: str
    meaning: str
    fix: str
