"""`lint --fix` over the real launch lines: how many with an error are free of errors afterwards."""

from collections.abc import Iterator
from functools import cache

from tests.accuracy.commands import CommandLine, expanded, read_lines
from tests.accuracy.judging import model_of
from tests.accuracy.machines import machines_of

from longreach.engine.launchfiles.found import FoundCommand
from longreach.engine.launchfiles.recognise import find_commands
from longreach.engine.options import ServeCommand
from longreach.engine.registry import REGISTRY_VERSIONS
from longreach.engine.release import NEWEST_RELEASE, get_release
from longreach.lint.check import Surroundings, lint_command
from longreach.lint.fix import fix_command


@cache
def mended() -> tuple[bool, ...]:
    """One for each line and release, the first and last that are stated, with an error: whether none is left."""
    found = ((line, command) for line in read_lines() for command in find_commands(line.command))
    return tuple(is_clean for line, command in found for is_clean in _mended(line, command))


def _mended(line: CommandLine, found: FoundCommand) -> Iterator[bool]:
    command = ServeCommand(found.argv, found.env)
    releases = expanded(line.releases, REGISTRY_VERSIONS) or (NEWEST_RELEASE,)
    for version in dict.fromkeys((releases[0], releases[-1])):
        release, machines = get_release(version), machines_of(line.hardware, command, version)
        around = Surroundings(model_of(line, found), machines[0] if machines else None, found=found)
        if any(finding.severity == "error" for finding in lint_command(command, release, around).findings):
            report = fix_command(command, release, around).report
            yield all(finding.severity != "error" for finding in report.findings)
