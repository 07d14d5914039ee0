"""From which release to which a command works. Pure."""

from longreach.engine.options import ServeCommand
from longreach.engine.release import RELEASES
from longreach.lint.check import UNKNOWN, Surroundings, lint_command
from longreach.lint.values import ReleaseVerdict


def judge_releases(command: ServeCommand, around: Surroundings = UNKNOWN) -> tuple[ReleaseVerdict, ...]:
    """The verdict of every known release, oldest first."""
    verdicts = []
    for release in RELEASES:
        findings = lint_command(command, release, around).findings
        error = next((finding for finding in findings if finding.severity == "error"), None)
        verdicts.append(ReleaseVerdict(release.version, error))
    return tuple(verdicts)
