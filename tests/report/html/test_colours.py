import re

import pytest
from tests.report.html.contrast import contrast

from longreach.report.html.colours import (
    ACCENT,
    ALL,
    BAD,
    CARD,
    DOUBT,
    GOOD,
    INK,
    MUTED,
    ON_TIER,
    PAPER,
    STATES,
    TIERS,
    Colour,
    stylesheet_variables,
    themed,
)

WORDS = [INK, MUTED, ACCENT, GOOD, BAD, DOUBT, *(colour for state, colour in STATES.items() if state != "flood")]


def _name(colour: Colour) -> str:
    return colour.name


@pytest.mark.parametrize("colour", WORDS, ids=_name)
def test_words_are_readable_in_both_themes(colour: Colour) -> None:
    for behind in (CARD, PAPER):
        assert contrast(colour.light, behind.light) >= 4.5
        assert contrast(colour.dark, behind.dark) >= 4.5


@pytest.mark.parametrize("colour", TIERS.values(), ids=_name)
def test_shares_are_readable_on_their_bars(colour: Colour) -> None:
    assert contrast(ON_TIER, colour.light) >= 4.5
    assert contrast(ON_TIER, colour.dark) >= 4.5


def test_every_light_colour_tells_its_name() -> None:
    assert len({colour.light for colour in ALL}) == len(ALL) == len({colour.name for colour in ALL})
    assert all(re.fullmatch(r"#[0-9a-f]{6}", shade) for colour in ALL for shade in (colour.light, colour.dark))


def test_known_colours_become_variables_and_others_stay() -> None:
    style = f"fill: {INK.light}; stroke: {STATES['as_it_comes'].light}; color: #abcdef"
    assert themed(style) == "fill: var(--ink); stroke: var(--as-it-comes); color: #abcdef"


def test_print_has_the_light_theme() -> None:
    light, dark = stylesheet_variables().splitlines()
    assert f"--ink:{INK.light};" in light
    assert dark.startswith("@media screen and (prefers-color-scheme:dark)")
    assert f"--ink:{INK.dark};" in dark
