"""The colours of the page: hues of Okabe and Ito, which colour-blind people tell apart, in a light and a dark variant.

matplotlib draws in the light variant; `themed` turns each colour it wrote into the CSS variable of that name.
"""

import re
from dataclasses import dataclass

from longreach.measure.bench.values import CacheState


@dataclass(frozen=True, slots=True)
class Colour:
    """One role of the page. `light` tells it from all others; marks differ in shape as well."""

    name: str
    light: str
    dark: str
    marker: str = "o"


PAPER = Colour("paper", "#f4f6f8", "#0f1216")
CARD = Colour("card", "#ffffff", "#181d23")
INK = Colour("ink", "#1a1f26", "#e8ecf1")
MUTED = Colour("muted", "#57606b", "#a5b0bd")
LINE = Colour("line", "#d5dbe2", "#333c47")
GOOD = Colour("good", "#00704f", "#3ecb9e")
BAD = Colour("bad", "#b3261e", "#ff8f85")
DOUBT = Colour("doubt", "#8a5a00", "#f0b64a")
ACCENT = Colour("accent", "#005f96", "#6cc0ee")
FORECAST = Colour("forecast", "#8b949f", "#8d98a5")

STATES: dict[CacheState, Colour] = {
    "cold": Colour("cold", "#0072b2", "#56b4e9"),
    "warm": Colour("warm", "#b84f00", "#f08a3c", "^"),
    "evicted": Colour("evicted", "#a64f82", "#cc79a7", "s"),
    "as_it_comes": Colour("as-it-comes", "#4a5563", "#b4bec9", "D"),
    "flood": Colour("flood", "#9aa4ae", "#6d7884", "v"),
}

SERIES = (STATES["as_it_comes"], STATES["cold"], STATES["warm"], STATES["evicted"])
"""For what has no colour of its own, in order."""

ON_TIER = "#101418"
"""Text on a bar of a tier, in both themes."""

TIERS: dict[str, Colour] = {
    "computed": Colour("computed", "#b4bcc5", "#8f9aa6"),
    "device": Colour("device", "#009e73", "#12ad82"),
    "host": Colour("host", "#e69f00", "#e8a317"),
    "disk": Colour("disk", "#56b4e9", "#57b5ea"),
    "elsewhere": Colour("elsewhere", "#f0e442", "#f1e544"),
    "unattributed": Colour("unattributed", "#cc79a7", "#cd7aa8"),
    "unknown": Colour("unknown", "#dfe4e9", "#808b97"),
}

ALL = (PAPER, CARD, INK, MUTED, LINE, GOOD, BAD, DOUBT, ACCENT, FORECAST, *STATES.values(), *TIERS.values())
_NAMES = {colour.light: colour.name for colour in ALL}
_HEX = re.compile(r"#[0-9a-f]{6}\b")


def themed(style: str) -> str:
    """A style attribute as matplotlib wrote it, each known colour as a variable."""
    return _HEX.sub(lambda match: f"var(--{_NAMES[match[0]]})" if match[0] in _NAMES else match[0], style)


def stylesheet_variables() -> str:
    """The variables of both themes. Paper is printed in the light one."""
    light = "".join(f"--{colour.name}:{colour.light};" for colour in ALL)
    dark = "".join(f"--{colour.name}:{colour.dark};" for colour in ALL)
    return (
        f":root{{color-scheme:light dark;{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
    )
