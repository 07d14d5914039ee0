"""A checklist with its evidence, as `verify` and `bench` end with it."""

import textwrap
from collections.abc import Sequence

from longreach.measure.verify_report import ChecklistItem
from longreach.report.style import Paint, printable

_MARK = {"pass": ("pass", "green"), "fail": ("FAIL", "red"), "cannot_tell": ("cannot tell", "yellow")}
_INDENT = " " * 13


def render_checklist(items: Sequence[ChecklistItem], paint: Paint, *, interrupted: bool) -> list[str]:
    """Every promise with its verdict, then how many of each."""
    return [*(line for item in items for line in _item(item, paint)), "", _verdict(items, paint, interrupted)]


def _item(item: ChecklistItem, paint: Paint) -> list[str]:
    word, colour = _MARK[item.verdict]
    first, *rest = _wrapped(f"{item.title}: {item.evidence}", paint)
    advice = _wrapped(f"fix: {item.fix}", paint) if item.fix else []
    return [f"{paint(f'{word:>11}', colour)}  {first.strip()}", *rest, *advice]


def _wrapped(text: str, paint: Paint) -> list[str]:
    words = " ".join(printable(text).split())
    return textwrap.wrap(words, paint.width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False)


def _verdict(items: Sequence[ChecklistItem], paint: Paint, interrupted: bool) -> str:
    counts = {verdict: sum(item.verdict == verdict for item in items) for verdict in _MARK}
    text = f"{counts['pass']} passed, {counts['fail']} failed, {counts['cannot_tell']} cannot be told"
    text = f"stopped early; {text}" if interrupted else text
    return paint(text, "bold", "red" if counts["fail"] or interrupted else "green")
