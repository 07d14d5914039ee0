"""The page of a finding: what it means, why, what to do, and an example. Package data in `pages/`."""

from importlib.resources import files

from longreach.errors import UsageError
from longreach.rules.registry import KINDS
from longreach.units import did_you_mean


def explain(code: str) -> str:
    """The Markdown page of a code such as `LR103` (case does not matter); UsageError names near codes."""
    known = [kind.code for kind in KINDS]
    wanted = code.strip().upper()
    if wanted not in known:
        before = max((other for other in known if other < wanted and other[:3] == wanted[:3]), default=None)
        after = min((other for other in known if other > wanted and other[:3] == wanted[:3]), default=None)
        is_gap = before is not None and after is not None and len(wanted) == len(known[0]) and wanted[2:].isdigit()
        raise UsageError(
            f"unknown code '{code}'",
            "a finding of that number does not exist any more, and its number is not given again"
            if is_gap
            else f"pages exist for {len(known)} codes from {known[0]} to {known[-1]}",
            f"the codes beside it are {before} and {after}"
            if is_gap
            else did_you_mean(wanted, known) or f"longreach explain {known[0]}",
        )
    return files("longreach.rules").joinpath("pages", f"{wanted}.md").read_text(encoding="utf-8")
