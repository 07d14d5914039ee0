"""The decisive line of a failed start: the first cause, not the tracebacks that follow from it. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from longreach.engine.failure_patterns import FailurePattern
from longreach.engine.failure_rows_fit import FIT_PATTERNS
from longreach.engine.failure_rows_setup import SETUP_PATTERNS
from longreach.engine.logs import LogLine, is_exception, split_log_line

UNKNOWN = "unknown_start_failure"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an engine did not start. `why` is the engine's own line; `line_number` counts from 1."""

    cause: str
    what: str
    why: str
    fix: str
    line_number: int
    process: str | None = None


PATTERNS: tuple[FailurePattern, ...] = (*FIT_PATTERNS, *SETUP_PATTERNS)
"""Tried in this order on each line."""

_COMPILED = tuple((re.compile(row.pattern), row) for row in PATTERNS)
_FOLLOW_UP = re.compile(
    r"Engine core initialization failed|EngineCore (?:failed to start|encountered a)|EngineCore encountered an issue"
    r"|WorkerProc (?:failed to start|initialization failed|hit an exception)|Worker proc \S+ died unexpectedly"
    r"|Worker failed with error .*please check the stack trace above|EngineDeadError|output_handler failed"
    r"|Engine core proc \S+ died unexpectedly|Traceback \(most recent call last\)"
)
"""What follows from a failure and is never its cause."""

# Source lines inside a traceback stand four columns in; `  Value error, ...` of a validation error stands two.
_SOURCE_LINE = re.compile(r"\s{4,}|\s+File \"")


def find_failure(lines: Sequence[str]) -> Failure | None:
    """The first line that names a cause; else the first exception or error that is no follow-up; None without any.

    Meant for the log of a start that failed: the errors of single requests later on look alike.
    """
    suspects = list(_suspects(lines))
    for number, line in suspects:
        for pattern, row in _COMPILED:
            if match := pattern.search(line.text):
                return _known(row, match, line, number)
    first_hand = [(number, line) for number, line in suspects if not _FOLLOW_UP.search(line.text)]
    for group in (first_hand, suspects):
        if decisive := [pair for pair in group if is_exception(pair[1].text)] or group:
            return _unknown(*decisive[0])
    return None


def _suspects(lines: Sequence[str]) -> Iterator[tuple[int, LogLine]]:
    """Lines that can carry a cause: errors, and what is printed outside the logger."""
    for number, raw in enumerate(lines, start=1):
        line = split_log_line(raw)
        if line.level in ("DEBUG", "INFO", "WARNING") or not line.text.strip() or _SOURCE_LINE.match(line.text):
            continue
        if line.level is None and not _may_be_cause(line.text):
            continue
        yield number, line


def _may_be_cause(text: str) -> bool:
    return is_exception(text) or any(pattern.search(text) for pattern, _ in _COMPILED)


def _known(row: FailurePattern, match: re.Match[str], line: LogLine, number: int) -> Failure:
    values = {name: value or "?" for name, value in match.groupdict().items()}
    text = line.text.strip()
    return Failure(row.cause, row.meaning.format(**values), text, row.fix.format(**values), number, line.process)


def _unknown(number: int, line: LogLine) -> Failure:
    return Failure(
        UNKNOWN,
        "the engine did not start, for a reason that is not in our table",
        line.text.strip(),
        "no fix is known; read the log from this line on",
        number,
        line.process,
    )
