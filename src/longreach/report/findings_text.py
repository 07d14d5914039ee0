"""Findings and errors as people read them: what, why, fix."""

from collections.abc import Sequence
from textwrap import wrap

from longreach.errors import LongreachError
from longreach.report.style import Paint, printable
from longreach.rules.finding import Finding

_COLOUR = {"error": "red", "warning": "yellow", "advice": "cyan"}


def render_finding(finding: Finding, paint: Paint, *, brief: bool = False) -> list[str]:
    """`error[LR103]: what`, then why and fix, wrapped; `brief` leaves those two out."""
    head = paint(f"{finding.severity}[{finding.code}]", "bold", _COLOUR[finding.severity])
    where = f"{finding.instance}: " if finding.instance else ""
    rest = [] if brief else [*_clause("why", finding.why, paint), *_clause("fix", finding.fix, paint)]
    return [f"{head}: {where}{finding.what}", *rest]


def render_findings(findings: Sequence[Finding], paint: Paint, *, brief_advice: bool = False) -> list[str]:
    """All findings after a line that counts them by severity; `brief_advice` gives advice one line each."""
    if not findings:
        return [paint("No findings.", "green")]
    counts = [(word, sum(1 for item in findings if item.severity == word)) for word in ("error", "warning", "advice")]
    summary = ", ".join(
        f"{count} {word}{'s' if count != 1 and word != 'advice' else ''}" for word, count in counts if count
    )
    lines = [paint(f"Findings: {summary}", "bold")]
    for finding in findings:
        lines += render_finding(finding, paint, brief=brief_advice and finding.severity == "advice")
    if brief_advice and counts[2][1]:
        lines.append(paint("  more on any of them: longreach explain CODE, or the same with --verbose", "dim"))
    return lines


def render_error(error: LongreachError, paint: Paint) -> list[str]:
    """An error that ended a command."""
    head = paint("error", "bold", "red")
    return [f"{head}: {printable(error.what)}", *_clause("why", error.why, paint), *_clause("fix", error.fix, paint)]


def _clause(name: str, text: str, paint: Paint) -> list[str]:
    lines: list[str] = []
    for paragraph in text.splitlines() or [""]:
        indent = f"  {name}: " if not lines else " " * (len(name) + 4)
        wrapped = wrap(
            printable(paragraph),
            paint.width,
            initial_indent=indent,
            subsequent_indent=" " * (len(name) + 4),
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines += wrapped or [indent.rstrip()]
    return lines
