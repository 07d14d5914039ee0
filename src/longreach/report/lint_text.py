"""What lint says, as people read it: what was judged with what, the findings, where the line works, the mended command."""

from collections.abc import Sequence
from dataclasses import asdict
from difflib import SequenceMatcher
from typing import Any

from longreach.engine.launchfiles.spelling import NO_SOURCE, SourceLine, quote_open
from longreach.engine.options import ServeCommand
from longreach.lint.values import JudgedCommand, LintReport, Mend
from longreach.report.findings_text import render_findings
from longreach.report.style import Paint, printable
from longreach.rules.finding import Finding

_OUTCOMES = {
    "refused_by_parser": "vLLM refuses the line at once",
    "refused_at_start": "vLLM parses it and then fails to start",
    "no_effect": "vLLM accepts it, and it does not do what it says",
}
_MOST_SHOWN = 160
_MOST_ALIKE = 60


def render_judged(judged: JudgedCommand, paint: Paint, *, verbose: bool = False) -> str:
    """The findings of one command, what vLLM makes of them, and the releases on which it works."""
    report = judged.report
    lines = [_heading(report, judged.where, paint)]
    lines += render_findings(report.findings, paint, brief_advice=not verbose)
    sure = [item for item in report.findings if item.severity == "error" or item.outcome == "no_effect"]
    outcomes = dict.fromkeys(finding.outcome for finding in sure if finding.outcome is not None)
    lines += [paint(f"  {_OUTCOMES[outcome]}: {_codes(sure, outcome)}", "dim") for outcome in outcomes]
    lines += _memory(report)
    lines += [f"not read: {printable(name)}; what it sets is not judged" for name in judged.unread]
    lines.append(_spans(judged) if judged.releases else _verdict(judged))
    if any(finding.edit is not None or finding.remedy is not None for finding in sure):
        lines.append(paint("to see the command that works: the same with --fix", "dim"))
    return "\n".join(lines)


def _memory(report: LintReport) -> list[str]:
    """The KV capacity, or why it was not counted: silence would read as praise."""
    capacity = report.kv_cache
    if capacity is None:
        unknown = [name for name, known in (("the model", report.model), ("the GPUs", report.gpus)) if known is None]
        why = f"{' and '.join(unknown)} {'are' if len(unknown) > 1 or 'the GPUs' in unknown else 'is'} not known"
        return [f"KV cache: not counted, as {why if unknown else 'something that this line sets is not counted here'}"]
    if not capacity.starts:
        return []
    held = f"{capacity.kv_capacity_tokens:,} tokens, {capacity.max_concurrency:.2f}x of max-model-len"
    return [f"KV cache: {held} ({capacity.certainty})"]


def _verdict(judged: JudgedCommand) -> str:
    release = judged.report.release
    return f"vLLM {release} does not run it" if judged.report.has_errors else _free(judged, release)


def _free(judged: JudgedCommand, releases: str) -> str:
    """`free of errors on vLLM 0.32.0`, and what was not looked at."""
    unseen = ["what was not read"] if judged.unread else []
    unseen += ["memory"] if judged.report.kv_cache is None else []
    but = f" ({' and '.join(unseen)} not judged)" if unseen else ""
    return f"free of errors on vLLM {releases}{but}"


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
    return _free(judged, ", ".join(texts))


def render_fixed(judged: JudgedCommand) -> str:
    """A script: what was mended and what is left as comments, then the command."""
    fixed = judged.fixed
    assert fixed is not None
    where = f" of {printable(judged.where)}" if judged.where else ""
    lines = [f"# for vLLM {fixed.report.release}{where}"]
    for mend in fixed.mends:
        lines.append(f"# mended {mend.finding.code}: {printable(mend.finding.what)}")
        lines += [f"#          {sign} {_one_line(words)}" for sign, words in _changes(mend) if words]
    lines += [f"# left   {finding.code}: {printable(finding.what)}; {printable(finding.fix)}" for finding in fixed.left]
    source = _source(judged)
    lines += [f"# not read: {printable(name)}; what it sets is not judged" for name in judged.unread]
    lines += [f"# stands around it, not repeated here: {_one_line(part)}" for part in source.left_out]
    return "\n".join([*lines, render_open_shell(fixed.report.command, source)])


def _changes(mend: Mend) -> tuple[tuple[str, str], ...]:
    """What went and what came; of long words that begin alike the part that differs."""
    gone, come = " ".join(mend.gone), " ".join(mend.come)
    alike = next((place for place, (old, new) in enumerate(zip(gone, come, strict=False)) if old != new), 0)
    if alike > _MOST_ALIKE:
        gone, come = (f"... {text[alike - _MOST_ALIKE // 2 :]}" for text in (gone, come))
    return ("-", gone), ("+", come)


def _source(judged: JudgedCommand) -> SourceLine:
    return judged.found.source if judged.found is not None else NO_SOURCE


def _one_line(text: str) -> str:
    shown = printable(" ".join(text.split()))
    return shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]} ..."


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
        "not_read": judged.unread,
        "works_on": [list(span) for span in judged.working_spans] if judged.releases else None,
    }
    if judged.fixed is not None:
        document["fixed"] = {
            "argv": judged.fixed.report.command.argv,
            "env": dict(judged.fixed.report.command.env),
            "shell": render_open_shell(judged.fixed.report.command, _source(judged)),
            "left_out": _source(judged).left_out,
            "mended": [
                finding_document(mend.finding) | {"gone": mend.gone, "come": mend.come} for mend in judged.fixed.mends
            ],
            "left": [finding_document(finding) for finding in judged.fixed.left],
        }
    return document


def finding_document(finding: Finding) -> dict[str, Any]:
    """A finding as the JSON contract names its keys."""
    names = ("code", "severity", "what", "why", "fix", "cause", "outcome")
    return {name: getattr(finding, name) for name in names}


def render_open_shell(command: ServeCommand, source: SourceLine = NO_SOURCE) -> str:
    """The command as `engine.shell` writes it, but words of the source keep their spelling, and variables stay open."""
    spelled = {(name, value): spelling for name, value, spelling in source.env}
    env = [f"{name}={_spelled(value, spelled.get((name, value)))}" for name, value in command.env]
    words = _spellings(command.argv, source)
    runs_time = source.before[:1] == ("time",)  # a word of the shell, which must stay the first
    env_at = max(source.env_at, 1 if runs_time else 0)
    lines = [" ".join(source.before[:env_at])] if env_at else []
    lines += [*env, " ".join([*source.before[env_at:], *words[:3]])]
    for word, spelling in zip(command.argv[3:], words[3:], strict=True):
        if word.startswith("-"):
            lines.append(f"  {spelling}")
        else:
            lines[-1] += f" {spelling}"
    return " \\\n".join(lines) + source.after


def _spellings(argv: Sequence[str], source: SourceLine) -> list[str]:
    """Each word as the source spells it; what is new or changed is quoted."""
    before = [word for word, _ in source.words]
    spelled = list(map(quote_open, argv))
    for match in SequenceMatcher(None, before, list(argv), autojunk=False).get_matching_blocks():
        for offset in range(match.size):
            spelling = source.words[match.a + offset][1]
            spelled[match.b + offset] = _spelled(argv[match.b + offset], spelling)
    return spelled


def _spelled(word: str, spelling: str | None) -> str:
    return quote_open(word) if spelling is None else spelling
