"""Lint over real launch lines: no error where a line works, the right cause where it fails."""

import pytest
from tests.accuracy.causes import RIGHT_CAUSES
from tests.accuracy.commands import CommandLine, expanded, read_lines
from tests.accuracy.judging import false_errors, verdicts
from tests.accuracy.lint import NEEDS, flagged, share
from tests.accuracy.mending import mended

from longreach.rules.registry import KINDS

LINES = read_lines()


@pytest.mark.parametrize("line", [line for line in LINES if line.works and line.works_in], ids=lambda line: line.id)
def test_a_line_that_works_gets_no_error(line: CommandLine) -> None:
    assert [f"{error.release}: {error.finding.what}" for error in false_errors(line)] == []


@pytest.mark.parametrize(("need", "asked"), NEEDS.items())
def test_failing_lines_are_flagged_for_the_right_cause(need: str, asked: float) -> None:
    assert share(flagged(need, registry_only=True)) >= asked


def test_most_lines_with_an_error_are_mended() -> None:
    assert sum(mended()) / len(mended()) >= 0.85


def test_every_cause_that_counts_as_right_is_one_of_ours() -> None:
    assert set().union(*RIGHT_CAUSES.values()) <= {kind.cause for kind in KINDS}


def test_every_label_of_a_failing_line_has_its_causes() -> None:
    causes = {kind.cause for kind in KINDS}
    labels = {verdict.line.label for verdict in verdicts()}
    assert labels <= RIGHT_CAUSES.keys() | causes


def test_the_corpus_is_whole() -> None:
    assert len(LINES) == 240
    assert sum(line.works for line in LINES) == 143
    assert sum(line.fails for line in LINES) == 93


def test_a_range_of_releases_is_expanded() -> None:
    versions = ("0.9.2", "0.10.0", "0.11.0", "0.12.0")
    assert expanded(("0.9.2..0.10.0", "0.12.0"), versions) == ("0.9.2", "0.10.0", "0.12.0")
    assert expanded((), versions) == ()
