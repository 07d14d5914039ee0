"""The published lines of the corpus: found in their format, word for word."""

import pytest
from tests.accuracy.commands import CommandLine, read_lines

from longreach.engine.launchfiles.found import FoundCommand
from longreach.engine.launchfiles.recognise import find_commands

LINES = read_lines()
LOST_COMMANDS = [line for line in LINES if line.argv is None]


def arguments(found: FoundCommand) -> tuple[str, ...]:
    """What vLLM gets behind `vllm serve` or the module."""
    words = found.received or found.argv
    return words[2:] if words[:2] == ("vllm", "serve") else words[3:]


@pytest.mark.parametrize("line", [line for line in LINES if line.argv is not None], ids=lambda line: line.id)
def test_a_published_line_is_found_word_for_word(line: CommandLine) -> None:
    found = find_commands(line.command)
    assert [arguments(command) for command in found] == [line.argv]


@pytest.mark.parametrize("line", [line for line in LINES if line.works], ids=lambda line: line.id)
def test_the_text_of_a_line_that_works_has_no_mistake(line: CommandLine) -> None:
    assert [command.problems for command in find_commands(line.command)] == [()]


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("stray_serve_in_image_args", {"stray_serve_in_image_args", "serve_after_unknown_image"}),
        ("folded_yaml_backslash", {"folded_yaml_backslash"}),
    ],
)
def test_mistakes_of_the_text_are_told(label: str, kind: set[str]) -> None:
    told = [
        problem.kind for line in LINES if line.label == label for problem in find_commands(line.command)[0].problems
    ]
    assert told
    assert set(told) <= kind


@pytest.mark.parametrize("line", LOST_COMMANDS, ids=lambda line: line.id)
def test_a_broken_text_still_tells_its_command(line: CommandLine) -> None:
    (found,) = find_commands(line.command)
    assert found.argv[:2] == ("vllm", "serve")
    assert len(found.argv) > 5
    assert found.problems
