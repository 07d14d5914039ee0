"""The part of docs/accuracy.md about lint: how many failing lines it flags for the right cause, and which it misses."""

from collections.abc import Sequence

from tests.accuracy.commands import read_lines
from tests.accuracy.judging import Verdict, false_errors, verdicts
from tests.accuracy.mending import mended

NEEDS = {"command": 0.95, "model_config": 0.85, "hardware": 0.75}
"""What shows a failure before a start, and the share of such lines that must be flagged."""

_WHY = {  # what stands in the way of the lines that are missed
    "line-130": "the model is not in the catalogue",
    "line-088": "its release is older than the registry, and later ones refuse its flags before they count memory",
    "line-148": "the card is not named",
    "line-254": "neither the model nor the release is named",
    "line-329": "the registry's nearest release, 0.9.2, knows the model",
}

_INTRODUCTION = """## Lint

`longreach lint` over the launch lines of `tests/corpus/commands.jsonl`: with the release that is stated of a line (the first and
the last of a range, both must be right; the newest where none is stated, and for releases before 0.8.5
the rules of 0.8.5), its model where the catalogue knows it,
and its machine where the text names one. A failing line counts as flagged when a finding has the right cause;
`tests/accuracy/causes.py` says which causes are right for which label. Lines that nothing before a start could show are left out.
"""


def section() -> str:
    """Markdown, from the heading on."""
    lines = [line for line in read_lines() if line.works]
    errors = [error for line in lines for error in false_errors(line)]
    heads = ["what shows it", "lines", "flagged", "share", "asked", "of a release in the registry"]
    rows = [heads, ["---"] * len(heads), *(_row(need, asked) for need, asked in NEEDS.items())]
    table = [f"| {' | '.join(row)} |" for row in rows]
    missed = [verdict for verdict in verdicts() if not verdict.flagged]
    wrong = [f"- {error.line}, {error.release}: {error.finding.code} {error.finding.what}" for error in errors]
    checked = sum(bool(line.works_in) for line in lines)
    said = (
        f"{checked} lines that work, in the first and last release of `works_in`, with and without model and machine:"
    )
    return "\n".join(
        [
            _INTRODUCTION,
            *table,
            "",
            _counts(),
            "",
            "Not flagged:",
            "",
            *map(_missed, missed),
            "",
            f"{said} {len(errors)} errors.",
            "",
            *wrong,
            f"`lint --fix`: of {len(mended())} pairs of a line and a release with an error {sum(mended())} have none afterwards.",
            "",
        ]
    )


def _counts() -> str:
    every = read_lines()
    scored = len(verdicts())
    unseen = sum(line.fails for line in every) - scored
    checked = sum(bool(line.works and line.works_in) for line in every)
    other = len(every) - scored - unseen - checked
    return (
        f"Of {len(every)} lines {scored} fail and are scored here, {unseen} fail where nothing before a start could show it, "
        f"{checked} work in stated\nreleases, and of {other} the release or the outcome is not known. The rules were written with "
        "these lines at hand: the score says that\nthey are met, not how lint does on lines that nobody looked at."
    )


def flagged(need: str, *, registry_only: bool) -> tuple[Verdict, ...]:
    """Verdicts on the lines of one kind."""
    found = (verdict for verdict in verdicts() if verdict.line.lint_needs == need)
    return tuple(verdict for verdict in found if verdict.release_known or not registry_only)


def share(found: Sequence[Verdict]) -> float:
    """Share that is flagged for the right cause."""
    return sum(verdict.flagged for verdict in found) / len(found)


def _row(need: str, asked: float) -> list[str]:
    every, known = flagged(need, registry_only=False), flagged(need, registry_only=True)
    hits = sum(verdict.flagged for verdict in every)
    of_known = f"{sum(verdict.flagged for verdict in known)} of {len(known)}, {share(known):.0%}"
    return [f"`{need}`", str(len(every)), str(hits), f"{share(every):.0%}", f"{asked:.0%}", of_known]


def _missed(verdict: Verdict) -> str:
    why = _WHY.get(verdict.line.id, "no rule says it")
    return f"- {verdict.line.id}, {verdict.line.label}: {why}"
