import errno
import os
from pathlib import Path

import pytest

from longreach.errors import InputFileError
from longreach.host.files import read_free_bytes, write_text_atomically


def test_a_file_is_replaced_whole_with_the_mode_asked_for(tmp_path: Path) -> None:
    target = tmp_path / "plan.yaml"
    target.write_text("old")
    write_text_atomically(target, "new", mode=0o600)
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("new", 0o600)
    assert list(tmp_path.iterdir()) == [target]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="cannot write") as caught:
        write_text_atomically(tmp_path / "nowhere" / "plan.yaml", "text")
    assert str(tmp_path / "nowhere") in caught.value.why


def test_a_failed_replacement_leaves_nothing_behind(tmp_path: Path) -> None:
    target = tmp_path / "plan.yaml"
    (target / "a folder with something in it").mkdir(parents=True)
    with pytest.raises(InputFileError):
        write_text_atomically(target, "text")
    assert list(tmp_path.iterdir()) == [target]


def test_what_is_no_file_is_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for name in ("pipe", "link", "circle", "."):
        with pytest.raises(InputFileError, match="cannot write"):
            write_text_atomically(tmp_path / name, "text")
    assert pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["circle", "link", "pipe"]


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "plan.yaml")
    write_text_atomically(tmp_path / "link", "text")
    assert (tmp_path / "plan.yaml").read_text() == "text"
    assert (tmp_path / "link").is_symlink()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write every file")
def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "plan.yaml"
    target.write_text("old")
    target.chmod(0o400)
    with pytest.raises(InputFileError, match="cannot write"):
        write_text_atomically(target, "new")
    assert target.read_text() == "old"


def test_a_full_disk_is_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: Path, _target: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(InputFileError) as caught:
        write_text_atomically(tmp_path / "plan.yaml", "text")
    assert (caught.value.why, caught.value.fix[:9]) == ("No space left on device", "make room")


def test_free_space_is_unknown_where_no_folder_is(tmp_path: Path) -> None:
    assert (read_free_bytes(tmp_path) or 0) > 0
    assert read_free_bytes(tmp_path / "nowhere") is None
