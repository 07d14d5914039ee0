"""Every release is judged, and those before the first known one by its rules."""

import pytest
from tests.rules.commands import command

from longreach.engine.launchfiles.recognise import find_commands
from longreach.engine.options import ServeCommand
from longreach.engine.release import RELEASES, get_release
from longreach.errors import UsageError
from longreach.lint.check import Surroundings
from longreach.lint.releases import command_for, judge_releases, release_for
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


@pytest.mark.parametrize(
    ("image", "arguments", "first"),
    [
        ("vllm/vllm-openai", "--model m", "0.8.5.post1"),
        ("vllm/vllm-openai", "m", "0.11.2"),
        ("mine/vllm", "m --max-model-len 4096", "0.8.5.post1"),
    ],
    ids=["flag of both", "word that only vllm serve reads", "either entry point"],
)
def test_an_image_is_judged_by_the_entry_point_of_each_release(image: str, arguments: str, first: str) -> None:
    (found,) = find_commands(f"docker run {image} {arguments}")
    releases = judge_releases(ServeCommand(found.argv, found.env), Surroundings(found=found))
    judged = JudgedCommand(LintReport(ServeCommand(found.argv), "0.33.0", ()), releases=releases)
    assert judged.working_spans[0][0] == first


def test_an_image_without_a_tag_starts_what_its_release_starts() -> None:
    (found,) = find_commands("docker run vllm/vllm-openai --model m")
    starts = [
        command_for(ServeCommand(found.argv), found, get_release(version)).argv[1] for version in ("0.11.0", "0.12")
    ]
    assert starts == ["-m", "serve"]
