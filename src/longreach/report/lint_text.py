"""What lint says, as people read it: what was judged with what, the findings, where the line works, the mended command."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from longreach.engine.options import ServeCommand
from longreach.lint.values import JudgedCommand, LintReport
from longreach.report.findings_text import render_findings
from longreach.report.style import Paint, printable
from longreach.rules.finding import Finding

_OUTCOMES = {
    "refused_by_parser": "vLLM refuses the line at once",
    "refused_at_start": "vLLM parses it and then fails to start",
    "no_effect": "vLLM accepts it, and it does not do what it says",
}
_OPEN = re.compile(r"\$(?:\w+|\{[^}]*\}|\([^)]*\))")
_IN_DOUBLE_QUOTES = re.compile(r'([\\"`])')


def render_judged(judged: JudgedCommand, paint: Paint, *, verbose: bool = False) -> str:
    """The findings of one command, what vLLM makes of them, and the releases on which it works."""
    report = judged.report
    lines = [_heading(report, judged.where, paint)]
    lines += render_findings(report.findings, paint, brief_advice=not verbose)
    outcomes = dict.fromkeys(finding.outcome for finding in report.findings if finding.outcome is not None)
    lines += [paint(f"  {_OUTCOMES[outcome]}: {_codes(report.findings, outcome)}", "dim") for outcome in outcomes]
    capacity = report.kv_cache
    if capacity is not None and capacity.starts:
        held = f"{capacity.kv_capacity_tokens:,} tokens, {capacity.max_concurrency:.2f}x of max-model-len"
        lines.append(f"KV cache: {held} ({capacity.certainty})")
    if judged.releases:
        lines.append(_spans(judged))
    return "\n".join(lines)


def _heading(report: LintReport, where: str, paint: Paint) -> str:
    judged = [f"vLLM {report.release}", report.model or "model not known", report.gpus or "GPUs not known"]
    place = f"{printable(where)}: " if where else ""
    return paint(f"{place}{', '.join(judged)}", "bold")


def _codes(findings: Sequence[Finding], outcome: str) -> str:
    return ", ".join(dict.fromkeys(finding.code for finding in findings if finding.outcome == outcome))


def _spans(judged: JudgedCommand) -> str:
    """`free of errors on vLLM 0.10.2 to 0.27.1` in one line."""
    spans, newest = judged.working_spans, judged.releases[-1].release
    if not spans:
        return "no known vLLM release starts this line without an error"
    texts = [
        first if first == last else f"{first} and later" if last == newest else f"{first} to {last}"
        for first, last in spans
    ]
    return f"free of errors on vLLM {', '.join(texts)}"


def render_fixed(judged: JudgedCommand) -> str:
    """A script: what was mended and what is left as comments, then the command."""
    fixed = judged.fixed
    assert fixed is not None
    where = f" of {printable(judged.where)}" if judged.where else ""
    lines = [f"# for vLLM {fixed.report.release}{where}"]
    lines += [f"# mended {finding.code}: {printable(finding.what)}" for finding in fixed.mended]
    lines += [f"# left   {finding.code}: {printable(finding.what)}; {printable(finding.fix)}" for finding in fixed.left]
    return "\n".join([*lines, render_open_shell(fixed.report.command)])


def lint_document(judged: Sequence[JudgedCommand]) -> dict[str, Any]:
    """The JSON contract: the findings of all commands together, and each command with its own."""
    commands = [_command_document(item) for item in judged]
    first = commands[0]
    findings = [finding for command in commands for finding in command["findings"]]
    shared = {"release": first["release"], "kv_cache": first["kv_cache"]} if len(commands) == 1 else {}
    return {"findings": findings, **shared, "commands": commands}


def _command_document(judged: JudgedCommand) -> dict[str, Any]:
    report = judged.report
    document: dict[str, Any] = {
        "where": judged.where,
        "argv": report.command.argv,
        "env": dict(report.command.env),
        "release": report.release,
        "model": report.model,
        "gpus": report.gpus,
        "findings": [finding_document(finding) for finding in report.findings],
        "kv_cache": None if report.kv_cache is None else asdict(report.kv_cache),
        "works_on": [list(span) for span in judged.working_spans] if judged.releases else None,
    }
    if judged.fixed is not None:
        document["fixed"] = {
            "argv": judged.fixed.report.command.argv,
            "env": dict(judged.fixed.report.command.env),
            "shell": render_open_shell(judged.fixed.report.command),
            "mended": [finding_document(finding) for finding in judged.fixed.mended],
            "left": [finding_document(finding) for finding in judged.fixed.left],
        }
    return document


def finding_document(finding: Finding) -> dict[str, Any]:
    """A finding as the JSON contract names its keys."""
    names = ("code", "severity", "what", "why", "fix", "cause", "outcome")
    return {name: getattr(finding, name) for name in names}


def render_open_shell(command: ServeCommand) -> str:
    """The command as `engine.shell` writes it, but variables of the shell stay open."""
    lines = [f"{name}={_quote(value)}" for name, value in command.env]
    lines.append(" ".join(_quote(word) for word in command.argv[:3]))
    for word in command.argv[3:]:
        if word.startswith("-"):
            lines.append(f"  {_quote(word)}")
        else:
            lines[-1] += f" {_quote(word)}"
    return " \\\n".join(lines)


def _quote(word: str) -> str:
    if _OPEN.search(word):
        return '"' + _IN_DOUBLE_QUOTES.sub(r"\\\1", word) + '"'
    return shlex.quote(word)
