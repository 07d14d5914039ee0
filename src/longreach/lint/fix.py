"""The command that works: edits made one at a time, each kept only if its finding is gone afterwards. Pure."""

from collections import Counter

from longreach.engine.command import render_flags
from longreach.engine.options import ServeCommand
from longreach.engine.release import Release
from longreach.lint.check import UNKNOWN, Surroundings, lint_command, read_written, with_command
from longreach.lint.edits import apply_edit
from longreach.lint.mends import other_edits
from longreach.lint.values import FixedCommand, LintReport, Mend
from longreach.rules.edit import Edit
from longreach.rules.finding import Finding
from longreach.rules.remedy import apply_remedy
from longreach.rules.written import WrittenCommand

_MOST_EDITS = 60  # more than any command has flags that are wrong


def fix_command(command: ServeCommand, release: Release, around: Surroundings = UNKNOWN) -> FixedCommand:
    """Mend what fails or does nothing in this release, gravest first; what runs as it says is left to the reader."""
    report = lint_command(command, release, around)
    mends: list[Mend] = []
    while len(mends) < _MOST_EDITS:
        step = _step(report, release, around)
        if step is None:
            break
        finding, after = step
        before, now = _words(report.command), _words(after.command)
        mends.append(Mend(finding, gone=_without(before, now), come=_without(now, before)))
        report, around = after, with_command(around, after.command)
    return FixedCommand(report, tuple(mends))


def _words(command: ServeCommand) -> tuple[str, ...]:
    return (*(f"{name}={value}" for name, value in command.env), *command.argv)


def _without(words: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    """The words that the others do not have, each as often as it stands there more often."""
    left = Counter(words) - Counter(others)
    kept = []
    for word in reversed(words):  # of equal words the last ones changed
        if left[word] > 0:
            left[word] -= 1
            kept.append(word)
    return tuple(reversed(kept))


def _step(report: LintReport, release: Release, around: Surroundings) -> tuple[Finding, LintReport] | None:
    """The next finding that can be mended and the report after it; what rules offer comes before what gives something up."""
    written = read_written(report.command, release, around)
    for edits_of in (_own_edits, other_edits):
        for finding in report.findings:
            for edit in edits_of(finding, written):
                after = _mended(report, finding, apply_edit(report.command, written.parsed, edit), release, around)
                if after is not None:
                    return finding, after
    return None


def _mended(
    report: LintReport, finding: Finding, command: ServeCommand, release: Release, around: Surroundings
) -> LintReport | None:
    """The edited command's report, or None when the finding outlives the edit or a new error takes its place."""
    after = lint_command(command, release, with_command(around, command))
    if (finding.code, finding.what) in {(left.code, left.what) for left in after.findings}:
        return None
    return None if _count_errors(after) > _count_errors(report) else after


def _own_edits(finding: Finding, written: WrittenCommand) -> tuple[Edit, ...]:
    """None for what runs as the user asked and could be better: that choice is theirs."""
    fails = finding.severity == "error" or (finding.severity == "warning" and finding.outcome is not None)
    edit = finding.edit or _edit_of(finding, written) if fails else None
    return () if edit is None else (edit,)


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
