"""Every release is judged, and those before the first known one by its rules."""

import pytest
from tests.rules.commands import command

from longreach.engine.release import RELEASES
from longreach.errors import UsageError
from longreach.lint.releases import judge_releases, release_for
from longreach.lint.values import JudgedCommand, LintReport


@pytest.mark.parametrize(
    ("version", "judged"),
    [("0.7.2", "0.8.5.post1"), ("0.6.6.post1", "0.8.5.post1"), ("0.8.5", "0.8.5.post1"), ("v0.28", "0.28.0")],
)
def test_old_release_is_judged_by_the_oldest_rules(version: str, judged: str) -> None:
    assert release_for(version).version == judged


@pytest.mark.parametrize("version", ["0.99.0", "1.0", "latest", ""])
def test_unknown_release_is_refused(version: str) -> None:
    with pytest.raises(UsageError):
        release_for(version)


def test_working_releases_are_told_as_spans() -> None:
    flag_of_some = command("m --swap-space 4")
    judged = JudgedCommand(LintReport(flag_of_some, "0.33.0", ()), releases=judge_releases(flag_of_some))
    assert [verdict.release for verdict in judged.releases] == [release.version for release in RELEASES]
    assert judged.working_spans == (("0.8.5.post1", "0.17.1"),)
