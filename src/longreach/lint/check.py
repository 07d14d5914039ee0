"""Every finding about a foreign command: its words, its settings, and, where they are known, its model and machine. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from longreach.engine.checks import in_range
from longreach.engine.launchfiles.found import FoundCommand
from longreach.engine.options import ServeCommand
from longreach.engine.parsing.parsed import ParsedCommand
from longreach.engine.parsing.ranges import find_misfit
from longreach.engine.reading import read_command
from longreach.engine.release import Release
from longreach.hardware.spec import Machine
from longreach.lint.deployment import deployment_of
from longreach.lint.values import LintReport
from longreach.model.spec import ModelSpec
from longreach.rules.deployment import Deployment
from longreach.rules.finding import SEVERITIES, Finding
from longreach.rules.registry import COMMAND_RULES, OPTION_RULES, check_deployment
from longreach.rules.written import WrittenCommand

_OUTCOMES = ("refused_by_parser", "refused_at_start", "no_effect", None)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known beside the words: nothing here is guessed from them."""

    model: ModelSpec | None = None
    machine: Machine | None = None
    config: Mapping[str, object] | None = None  # of --config file.yaml
    found: FoundCommand | None = None  # the file that the command stood in


UNKNOWN = Surroundings()


def lint_command(command: ServeCommand, release: Release, around: Surroundings = UNKNOWN) -> LintReport:
    """The findings of one command under one release, gravest and earliest first; UsageError when it starts no server."""
    written = read_written(command, release, around)
    judged = _without_refused(command, written, around)
    deployment = deployment_of(judged)
    findings = [finding for rule in COMMAND_RULES for finding in rule.check(written)]
    findings += _option_findings(judged) if deployment is None else _deployment_findings(deployment, findings)
    return LintReport(
        command=command,
        release=release.version,
        findings=tuple(
            sorted((finding for finding in findings if not _beside_the_point(finding, around)), key=_urgency)
        ),
        model=around.model.name if around.model is not None else None,
        gpus=_gpus(around.machine),
        kv_cache=deployment.capacity if deployment is not None else None,
    )


def read_written(command: ServeCommand, release: Release, around: Surroundings = UNKNOWN) -> WrittenCommand:
    """The command as command rules look at it."""
    reading = read_command(command.argv, command.env, release, around.config)
    return WrittenCommand(
        parsed=reading.parsed,
        release=release,
        registry=reading.parsed.registry,
        options=reading.options,
        env=command.env,
        model=around.model,
        machine=around.machine,
        found=around.found,
    )


_UNREADABLE = ("wrong_value", "wrong_choice", "bad_json", "missing_value")
_MOST_ROUNDS = 5  # words that move up may be refused in turn


def _without_refused(command: ServeCommand, written: WrittenCommand, around: Surroundings) -> WrittenCommand:
    """The command without flags that the release lacks, values that are no values, and values out of range.

    What would come of them is not worth asking. Those of the config file, which stand at no place, go from the uses alone.
    """
    for _ in range(_MOST_ROUNDS):
        gone = _refused_words(written.parsed)
        if not gone:
            break
        command = replace(command, argv=tuple(word for place, word in enumerate(command.argv) if place not in gone))
        written = read_written(command, written.release, around)
    kept = tuple(use for use in written.parsed.uses if use.entry is not None and find_misfit(use) is None)
    return replace(written, parsed=replace(written.parsed, uses=kept), options=in_range(written.options))


def _refused_words(parsed: ParsedCommand) -> set[int]:
    """The places of flags whose values are none, or out of range."""
    refused = [problem for problem in parsed.problems if problem.kind in _UNREADABLE]
    uses = [problem.use for problem in refused if problem.use is not None]
    uses += [use for use in parsed.uses if find_misfit(use) is not None]
    groups = [problem.positions for problem in refused] + [use.positions for use in uses]
    return {place for places in groups for place in places}


def _beside_the_point(finding: Finding, around: Surroundings) -> bool:
    """A server in a container has to listen on every interface of it; who reaches those is decided outside."""
    found = around.found
    contained = found is not None and found.format in ("docker", "compose", "kubernetes") and not found.host_network
    return contained and finding.cause == "open_to_network"


def _option_findings(written: WrittenCommand) -> list[Finding]:
    """What settings alone tell where the model is not known."""
    return [finding for rule in OPTION_RULES for finding in rule.check(written)]


def _deployment_findings(deployment: Deployment, said: list[Finding]) -> list[Finding]:
    """What the rules of planned deployments add; what a command rule has said already is not said twice."""
    causes = {finding.cause for finding in said}
    return [finding for finding in check_deployment(deployment) if finding.cause not in causes]


def _urgency(finding: Finding) -> tuple[int, int, str]:
    return SEVERITIES.index(finding.severity), _OUTCOMES.index(finding.outcome), finding.code


def _gpus(machine: Machine | None) -> str | None:
    return None if machine is None or machine.gpu is None else f"{machine.num_gpus}x {machine.gpu.name}"


def with_command(around: Surroundings, command: ServeCommand) -> Surroundings:
    """The surroundings of a command that was edited: the mistakes of the text it stood in are gone with the text."""
    found = around.found
    if found is None:
        return around
    return replace(around, found=replace(found, argv=command.argv, env=command.env, problems=()))
