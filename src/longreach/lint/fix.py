"""The command that works: edits made one at a time, each kept only if its finding is gone afterwards. Pure."""

from longreach.engine.command import render_flags
from longreach.engine.options import ServeCommand
from longreach.engine.release import Release
from longreach.lint.check import UNKNOWN, Surroundings, lint_command, read_written, with_command
from longreach.lint.edits import apply_edit
from longreach.lint.mends import other_edits
from longreach.lint.values import FixedCommand, LintReport
from longreach.rules.edit import Edit
from longreach.rules.finding import Finding
from longreach.rules.remedy import apply_remedy
from longreach.rules.written import WrittenCommand

_MOST_EDITS = 60  # more than any command has flags that are wrong


def fix_command(command: ServeCommand, release: Release, around: Surroundings = UNKNOWN) -> FixedCommand:
    """Mend errors and warnings for this release, gravest first; advice is left to the reader."""
    report = lint_command(command, release, around)
    mended: list[Finding] = []
    refused: set[tuple[str, str]] = set()
    while len(mended) < _MOST_EDITS:
        finding = _next(report, refused)
        if finding is None:
            break
        better = _mend(report, finding, release, around)
        if better is None:
            refused.add((finding.code, finding.what))
        else:
            report, around = better, with_command(around, better.command)
            mended.append(finding)
            refused.clear()  # what could not be mended may be now
    return FixedCommand(report, tuple(mended))


def _next(report: LintReport, refused: set[tuple[str, str]]) -> Finding | None:
    open_findings = (
        finding
        for finding in report.findings
        if finding.severity == "error"
        or (finding.severity == "warning" and (finding.edit is not None or finding.remedy is not None))
    )
    return next((finding for finding in open_findings if (finding.code, finding.what) not in refused), None)


def _mend(report: LintReport, finding: Finding, release: Release, around: Surroundings) -> LintReport | None:
    """The report after the edit, or None when the finding outlives it or a new error takes its place."""
    written = read_written(report.command, release, around)
    own = finding.edit or _edit_of(finding, written)
    for edit in (*((own,) if own is not None else ()), *other_edits(finding, written)):
        command = apply_edit(report.command, written.parsed, edit)
        after = lint_command(command, release, with_command(around, command))
        stays = (finding.code, finding.what) in {(left.code, left.what) for left in after.findings}
        if not stays and _count_errors(after) <= _count_errors(report):
            return after
    return None


def _count_errors(report: LintReport) -> int:
    return sum(finding.severity == "error" for finding in report.findings)


def _edit_of(finding: Finding, written: WrittenCommand) -> Edit | None:
    """A remedy of options as the change of the flags that carry them."""
    if finding.remedy is None:
        return None
    old = written.options
    new = apply_remedy(old, finding.remedy)
    before, after = render_flags(old), render_flags(new)
    gone = tuple(name for name in before if name not in after)
    changed = tuple((name, value) for name, value in after.items() if before.get(name, ()) != value)
    kept, wanted = dict(old.env), dict(new.env)
    return Edit(
        set=changed,
        remove=gone,
        set_env=tuple(pair for pair in wanted.items() if kept.get(pair[0]) != pair[1]),
        unset_env=tuple(name for name in kept if name not in wanted),
    )
