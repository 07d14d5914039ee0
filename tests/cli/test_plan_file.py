import os
from pathlib import Path

import pytest

from longreach.cli.plan_file import read_plan
from longreach.errors import InputFileError

PLAN = (Path(__file__).parents[2] / "examples/dense.yaml").read_text(encoding="utf-8")
BOMB = "\n".join(
    ["a0: &a0 [0, 0, 0, 0, 0, 0, 0, 0, 0]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9))]
)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "not a plan"),
        (b"\xff\xfe", "not a text file"),
        (b"a: [", "not YAML"),
        (b"[" * 100_000, "not YAML"),
        (b"a: &a [*a]", "too large"),
        ((BOMB + "\nverdict: *a8\n").encode(), "too large"),
        (b"x: " + b"y" * (17 * 2**20), "too large"),
        (PLAN.replace("\n", "\n\0", 1).encode(), "not YAML"),
    ],
    ids=["empty", "no text", "cut", "deep", "holds itself", "aliases of aliases", "huge", "NUL"],
)
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, content: bytes, word: str) -> None:
    path = tmp_path / "plan.yaml"
    path.write_bytes(content)
    with pytest.raises(InputFileError, match=word) as caught:
        read_plan(path)
    assert "longreach plan" in caught.value.fix


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, kind in ((pipe, "a pipe or a device"), (tmp_path, "a folder"), (tmp_path / "none", "No such file")):
        with pytest.raises(InputFileError) as caught:
            read_plan(path)
        assert kind in caught.value.why
