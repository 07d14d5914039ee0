"""Lint over the real launch lines: which findings each line gets, for the releases and surroundings that are known of it."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from tests.accuracy.causes import RIGHT_CAUSES
from tests.accuracy.commands import CommandLine, expanded, read_lines
from tests.accuracy.machines import machines_of

from longreach.engine.launchfiles.found import FoundCommand
from longreach.engine.launchfiles.recognise import find_commands
from longreach.engine.options import ServeCommand
from longreach.engine.parser import parse_arguments
from longreach.engine.registry import REGISTRY_VERSIONS, get_registry
from longreach.engine.release import NEWEST_RELEASE, get_release
from longreach.errors import UnknownModelError
from longreach.hardware.spec import Machine
from longreach.lint.check import Surroundings, lint_command
from longreach.model.likeness import recognise_model
from longreach.model.source import load_model
from longreach.model.spec import ModelSpec
from longreach.rules.finding import Finding


@dataclass(frozen=True, slots=True)
class FalseError:
    """An error on a line that works."""

    line: str
    release: str
    finding: Finding
    model: str | None
    gpus: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What lint says of a line that fails, in the first and the last release that is stated of it."""

    line: CommandLine
    release_known: bool
    causes: tuple[frozenset[str], ...]  # by release; advice only where the line starts

    @property
    def flagged(self) -> bool:
        """Whether every release names the right cause."""
        label = self.line.label or ""
        right = {label, *RIGHT_CAUSES.get(label, ())}
        return all(right & causes for causes in self.causes)


@cache
def verdicts() -> tuple[Verdict, ...]:
    """One for each line that fails, but for those that nothing before a start could show."""
    lines = (line for line in read_lines() if line.fails and line.lint_needs != "out_of_reach")
    return tuple(_verdict(line) for line in lines)


@cache
def false_errors(line: CommandLine, *, every_release: bool = False) -> tuple[FalseError, ...]:
    """Errors on a line that works: alone, with the model, with the machine, with both; in the first and last release.

    A recipe lists several machines without saying which this very line ran on: one of them must be free of errors.
    """
    releases = expanded(line.works_in, REGISTRY_VERSIONS)
    asked = releases if every_release else _ends(releases)
    commands = find_commands(line.command)
    return tuple(error for found in commands for release in asked for error in _errors(line, found, release))


def _errors(line: CommandLine, found: FoundCommand, release: str) -> list[FalseError]:
    command, model = ServeCommand(found.argv, found.env), model_of(line, found)
    machines = machines_of(line.hardware, command, release)
    errors = []
    for known in dict.fromkeys((None, model)):
        errors += _errors_with(line, found, release, known, None)
        errors += _fewest_errors(_errors_with(line, found, release, known, machine) for machine in machines)
    return errors


def _fewest_errors(tried: Iterable[list[FalseError]]) -> list[FalseError]:
    fewest: list[FalseError] = []
    for errors in tried:
        if not errors:
            return []
        fewest = min(fewest or errors, errors, key=len)
    return fewest


def _errors_with(
    line: CommandLine, found: FoundCommand, release: str, model: ModelSpec | None, machine: Machine | None
) -> list[FalseError]:
    gpus = f"{machine.num_gpus}x {machine.gpu.name}" if machine and machine.gpu else None
    return [
        FalseError(line.id, release, finding, model.name if model else None, gpus)
        for finding in findings_of(found, release, model, machine)
        if finding.severity == "error"
    ]


def findings_of(
    found: FoundCommand, release: str, model: ModelSpec | None, machine: Machine | None
) -> tuple[Finding, ...]:
    """What lint says of a found command."""
    around = Surroundings(model=model, machine=machine, found=found)
    return lint_command(ServeCommand(found.argv, found.env), get_release(release), around).findings


def model_of(line: CommandLine, found: FoundCommand) -> ModelSpec | None:
    """The catalogue model that the line names, or that its publisher names beside it.

    A fragment of arguments that names none leaves more out than its model.
    """
    named = parse_arguments(found.argv, get_registry(NEWEST_RELEASE)).model
    for name in (named, line.model) if named is not None else ():
        match = recognise_model(name) if name is not None else None
        if match is not None:
            with contextlib.suppress(UnknownModelError):
                return load_model(match.name, match.quantization)
    return None


def _verdict(line: CommandLine) -> Verdict:
    releases = _ends(expanded(line.releases, REGISTRY_VERSIONS))
    found = find_commands(line.command)
    causes = tuple(frozenset(_causes(line, found, release)) for release in releases or (NEWEST_RELEASE,))
    return Verdict(line, bool(releases) and not line.older, causes)


def _causes(line: CommandLine, found: Sequence[FoundCommand], release: str) -> Iterator[str]:
    starts = line.outcome == "starts_but_wrong_or_no_effect"
    for command in found:
        machines = machines_of(line.hardware, ServeCommand(command.argv, command.env), release)
        machine = machines[0] if machines else None
        for finding in findings_of(command, release, model_of(line, command), machine):
            if starts or finding.severity != "advice":
                yield finding.cause


def _ends(releases: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((releases[0], releases[-1]))) if releases else ()
