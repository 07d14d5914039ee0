"""From which release to which a command works. Pure."""

import re

from longreach.engine.options import ServeCommand
from longreach.engine.release import RELEASES, Release, get_release
from longreach.lint.check import UNKNOWN, Surroundings, lint_command
from longreach.lint.values import ReleaseVerdict


def release_for(version: str) -> Release:
    """The release whose rules judge a command of `version`: the oldest known one for all before it. UsageError for unknown ones."""
    numbers = re.match(r"v?(\d+)\.(\d+)", version.strip())
    oldest = RELEASES[0]
    if numbers is not None and (int(numbers[1]), int(numbers[2])) < oldest.minor:
        return oldest
    return get_release(version)


def judge_releases(command: ServeCommand, around: Surroundings = UNKNOWN) -> tuple[ReleaseVerdict, ...]:
    """The verdict of every known release, oldest first."""
    verdicts = []
    for release in RELEASES:
        findings = lint_command(command, release, around).findings
        error = next((finding for finding in findings if finding.severity == "error"), None)
        verdicts.append(ReleaseVerdict(release.version, error))
    return tuple(verdicts)
