"""Edits change the words they name and no others."""

import pytest
from tests.rules.commands import command, written

from longreach.lint.edits import apply_edit
from longreach.rules.edit import Edit, remove_flag, set_flag

LINE = (
    "A=1 B=2 vllm serve m --tensor_parallel_size 4 --no-enable-prefix-caching --port=1 -cc.mode=3 -cc.level 2 --port 2 "
    "--max-model-l 5"
)

EDITS = (
    (
        "a flag is replaced where it first stood, later uses go",
        set_flag("--port", "9"),
        "--port 9",
        "--port=1 --port 2",
    ),
    (
        "other spellings are replaced",
        set_flag("--tensor-parallel-size", "2"),
        "--tensor-parallel-size 2",
        "--tensor_parallel_size 4",
    ),
    ("prefixes are replaced", set_flag("--max-model-len", "7"), "--max-model-len 7", "--max-model-l 5"),
    (
        "a half is removed by its own name",
        remove_flag("--no-enable-prefix-caching"),
        "",
        "--no-enable-prefix-caching",
    ),
    (
        "a half replaces the other half",
        set_flag("--enable-prefix-caching"),
        "--enable-prefix-caching",
        "--no-enable-prefix-caching",
    ),
    (
        "dotted keys go with their flag",
        set_flag("--compilation-config", "{}"),
        "--compilation-config {}",
        "-cc.mode=3 -cc.level 2",
    ),
    ("a new flag is added", set_flag("--seed", "1"), "--seed 1", ""),
    ("a leading dash stays a value", set_flag("--max-model-len", "-1"), "--max-model-len=-1", "--max-model-l 5"),
    (
        "flags are removed",
        remove_flag("--port", "--compilation-config"),
        "",
        "--port=1 -cc.mode=3 -cc.level 2 --port 2",
    ),
)


@pytest.mark.parametrize(("edit", "added", "gone"), [row[1:] for row in EDITS], ids=[row[0] for row in EDITS])
def test_edit_changes_its_words_only(edit: Edit, added: str, gone: str) -> None:
    before = command(LINE)
    after = apply_edit(before, written(LINE).parsed, edit)
    assert sorted(after.argv) == sorted((*_without(before.argv, gone.split()), *added.split()))
    assert after.env == before.env


def _without(words: tuple[str, ...], gone: list[str]) -> list[str]:
    left = list(words)
    for word in gone:
        left.remove(word)
    return left


def test_environment_is_set_and_unset() -> None:
    after = apply_edit(command(LINE), written(LINE).parsed, Edit(set_env=(("B", "3"), ("C", "4")), unset_env=("A",)))
    assert after.env == (("B", "3"), ("C", "4"))


def test_bare_words_are_removed_by_their_place() -> None:
    line = "m extra --port 1"
    after = apply_edit(command(line), written(line).parsed, Edit(remove_words=(3,)))
    assert after.argv == ("vllm", "serve", "m", "--port", "1")
