"""What lint says of one command."""

from dataclasses import dataclass

from longreach.engine.launchfiles.found import FoundCommand
from longreach.engine.options import ServeCommand
from longreach.rules.finding import Finding
from longreach.sizing.values import KvCapacity


@dataclass(frozen=True, slots=True)
class LintReport:
    """One command under one release. `model` and `gpus`: what it was judged with; None: not known."""

    command: ServeCommand
    release: str
    findings: tuple[Finding, ...]  # most likely to bite first
    model: str | None = None
    gpus: str | None = None
    kv_cache: KvCapacity | None = None

    @property
    def has_errors(self) -> bool:
        """Whether the command fails, or silently does something else than it says."""
        return any(finding.severity == "error" for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Mend:
    """One edit that was kept: its finding, and the words that went and came, assignments of the environment included."""

    finding: Finding
    gone: tuple[str, ...]
    come: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FixedCommand:
    """The command after every edit that made its finding vanish, and what no edit could mend."""

    report: LintReport  # of the mended command
    mends: tuple[Mend, ...]

    @property
    def mended(self) -> tuple[Finding, ...]:
        """The findings that are gone."""
        return tuple(mend.finding for mend in self.mends)

    @property
    def left(self) -> tuple[Finding, ...]:
        """Errors and warnings that still stand."""
        return tuple(finding for finding in self.report.findings if finding.severity != "advice")


@dataclass(frozen=True, slots=True)
class ReleaseVerdict:
    """One release's verdict: its first error, or None."""

    release: str
    error: Finding | None


@dataclass(frozen=True, slots=True)
class JudgedCommand:
    """One command of a file, judged. `releases` is empty when one release was asked for."""

    report: LintReport
    where: str = ""  # "service web, line 12"
    releases: tuple[ReleaseVerdict, ...] = ()
    fixed: FixedCommand | None = None
    found: FoundCommand | None = None  # as the file holds it
    unread: tuple[str, ...] = ()  # what the command names and lint could not read

    @property
    def fails(self) -> bool:
        """Whether an error stands; of a mended command, one that no edit mends."""
        return (self.report if self.fixed is None else self.fixed.report).has_errors

    @property
    def working_spans(self) -> tuple[tuple[str, str], ...]:
        """First and last release of each unbroken run of releases without an error."""
        spans: list[tuple[str, str]] = []
        was_working = False
        for verdict in self.releases:
            if verdict.error is None:
                first = spans.pop()[0] if was_working else verdict.release
                spans.append((first, verdict.release))
            was_working = verdict.error is None
        return tuple(spans)
