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
        raise UsageError(
            f"unknown code '{code}'",
            f"pages exist for {len(known)} codes from {known[0]} to {known[-1]}",
            did_you_mean(wanted, known) or f"longreach explain {known[0]}",
        )
    return files("longreach.rules").joinpath("pages", f"{wanted}.md").read_text(encoding="utf-8")
