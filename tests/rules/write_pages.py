"""Bring the generated parts of the pages and of docs/rules.md up to date: `python -m tests.rules.write_pages`.

A page's heading, its line of facts and its example are made from the rule and its case; the prose between is written.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.rules.case import render
from tests.rules.cases import CASES, COMMAND_CASES
from tests.rules.observed_examples import EXAMPLES

from longreach.rules.finding import FindingKind
from longreach.rules.registry import COMMAND_RULES, KINDS, RULES

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "src/longreach/rules/pages"
DOC = ROOT / "docs/rules.md"
_MARK = "<!-- codes -->\n"


def examples() -> dict[str, str]:
    """The example finding of each code as a terminal shows it: the first that its case gives."""
    found = [
        *EXAMPLES,
        *(finding for case in CASES for finding in case.rule.check(case.fires)),
        *(finding for case in COMMAND_CASES for finding in case.rule.check(case.fires)),
    ]
    return {finding.code: render(finding) for finding in reversed(found)}


def heading_of(kind: FindingKind) -> str:
    """The generated top of a page."""
    return f"# {kind.code}: {kind.title}\n\n{kind.severity} · cause `{kind.cause}` · {releases_of(kind.code)}\n"


def releases_of(code: str) -> str:
    """Which vLLM releases the rule holds for, in words."""
    spans = {rule.kind.code: (rule.first_release, rule.last_release) for rule in RULES}
    spans |= {rule.kind.code: (rule.first_release, rule.last_release) for rule in COMMAND_RULES}
    first, last = spans.get(code, (None, None))
    if first is None and last is None:
        return "every known vLLM release"
    return (
        f"vLLM {first} and later"
        if last is None
        else f"vLLM up to {last}"
        if first is None
        else f"vLLM {first} to {last}"
    )


def render_page(kind: FindingKind, old: str, example: str) -> str:
    """The page with its generated parts made anew and its prose kept."""
    prose = re.search(r"## What it means\n.*?(?=\n## Example)", old, re.DOTALL)
    assert prose is not None, f"the page of {kind.code} has no prose between 'What it means' and 'Example'"
    return f"{heading_of(kind)}\n{prose[0]}\n## Example\n\n```\n{example}\n```\n"


def render_table() -> str:
    """The table of codes in docs/rules.md."""
    rows = [f"| {kind.code} | {kind.severity} | `{kind.cause}` | {kind.title} |" for kind in KINDS]
    return "\n".join(["| code | severity | cause | says |", "|---|---|---|---|", *rows, ""])


def outdated() -> Iterator[tuple[Path, str]]:
    """Files whose generated parts are out of date, with what they should hold."""
    shown = examples()
    for kind in KINDS:
        path = PAGES / f"{kind.code}.md"
        old = path.read_text(encoding="utf-8")
        if old != (new := render_page(kind, old, shown[kind.code])):
            yield path, new
    old = DOC.read_text(encoding="utf-8")
    before, mark, rest = old.partition(_MARK)
    _, end, after = rest.partition(_MARK)
    if old != (new := f"{before}{mark}{render_table()}{end}{after}"):
        yield DOC, new


if __name__ == "__main__":
    for path, text in outdated():
        path.write_text(text, encoding="utf-8")
