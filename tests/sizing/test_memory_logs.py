"""Published starts: the KV memory they logged against the range and the best guess."""

from pathlib import Path
from statistics import median

from tests.accuracy.memory import forecasts, section, stated

FOUND = forecasts()


def test_the_range_holds_what_most_starts_printed() -> None:
    assert sum(item.inside for item in FOUND) >= 0.8 * len(FOUND)
    assert len(FOUND) == 38


def test_the_best_guess_is_near_what_was_printed() -> None:
    assert median(abs(item.error) for item in FOUND) < 0.04
    assert median(abs(item.error) for item in stated(FOUND)) < 0.025


def test_the_range_says_something() -> None:
    assert median(item.width for item in FOUND) < 0.25
    assert median(item.width for item in stated(FOUND)) < 0.16


def test_no_guess_is_far_off_where_every_setting_is_shown() -> None:
    assert max(abs(item.error) for item in stated(FOUND)) < 0.2
    assert len(stated(FOUND)) == 14


def test_the_page_lists_every_start() -> None:
    page = section()
    assert page.count("\n| ") == len(FOUND) + 1  # the header
    assert "44 more starts print the figure and are not counted" in page


def test_the_rooms_page_says_what_comes_out() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs/sizing.md").read_text(encoding="utf-8").split())
    share = sum(item.inside for item in FOUND) / len(FOUND)
    every, known = (median(abs(item.error) for item in items) for items in (FOUND, stated(FOUND)))
    assert f"sets {len(FOUND)} published starts against it: {share:.0%}".replace("%", " %") in page
    assert f"off by {100 * every:.1f} % in the median ({100 * known:.1f} % where" in page
