"""From which release to which a command works. Pure."""

import re

from longreach.engine.launchfiles.container import starts_server
from longreach.engine.launchfiles.found import FoundCommand
from longreach.engine.launchfiles.start import MODULE, SERVE
from longreach.engine.options import ServeCommand
from longreach.engine.release import RELEASES, Release, get_release
from longreach.lint.check import UNKNOWN, Surroundings, lint_command
from longreach.lint.values import ReleaseVerdict
from longreach.rules.finding import Finding

_LAST_MODULE_ENTRY = (0, 11, 0)  # the image's entry point; later ones start `vllm serve`


def release_for(version: str) -> Release:
    """The release whose rules judge a command of `version`: the oldest known one for all before it. UsageError for unknown ones."""
    numbers = re.match(r"v?(\d+)\.(\d+)", version.strip())
    oldest = RELEASES[0]
    if numbers is not None and (int(numbers[1]), int(numbers[2])) < oldest.minor:
        return oldest
    return get_release(version)


def command_for(command: ServeCommand, found: FoundCommand | None, release: Release) -> ServeCommand:
    """The command as the image of this release starts it: the api_server module up to 0.11.0, `vllm serve` later."""
    if found is None or found.entry != "image":
        return command
    start = MODULE if release.number <= _LAST_MODULE_ENTRY else SERVE
    return _started_by(start, command)


def judge_releases(command: ServeCommand, around: Surroundings = UNKNOWN) -> tuple[ReleaseVerdict, ...]:
    """The verdict of every known release, oldest first. Arguments of an image that nobody knows may be for either entry point."""
    found = around.found
    takes_either = found is not None and found.entry == "image" and not starts_server(found.image)
    verdicts = []
    for release in RELEASES:
        error = _first_error(command_for(command, found, release), release, around)
        if error is not None and takes_either:
            starts = [_first_error(_started_by(start, command), release, around) for start in (SERVE, MODULE)]
            error = None if None in starts else error
        verdicts.append(ReleaseVerdict(release.version, error))
    return tuple(verdicts)


def _first_error(command: ServeCommand, release: Release, around: Surroundings) -> Finding | None:
    findings = lint_command(command, release, around).findings
    return next((finding for finding in findings if finding.severity == "error"), None)


def _started_by(start: tuple[str, ...], command: ServeCommand) -> ServeCommand:
    own = next((known for known in (MODULE, SERVE) if command.argv[: len(known)] == known), ())
    return ServeCommand((*start, *command.argv[len(own) :]), command.env) if own else command
