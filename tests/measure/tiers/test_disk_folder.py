from pathlib import Path

import pytest

from longreach.errors import InputFileError
from longreach.measure.tiers.disk_folder import MARKER, fresh_folder


def test_a_fresh_folder_is_gone_afterwards_with_all_that_was_made_for_it(tmp_path: Path) -> None:
    with fresh_folder(tmp_path / "kv" / "here", "a") as folder:
        assert folder.parent == tmp_path / "kv" / "here"
        (folder / "block.bin").write_bytes(b"1")
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_before_stays(tmp_path: Path) -> None:
    (tmp_path / "foreign").write_text("mine", encoding="utf-8")
    with fresh_folder(tmp_path, "a"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["foreign"]


def test_it_is_kept_when_asked_and_emptied_at_the_next_start(tmp_path: Path) -> None:
    with fresh_folder(tmp_path, "a", keep=True) as folder:
        (folder / "block.bin").write_bytes(b"1")
    assert (folder / "block.bin").exists()
    with fresh_folder(tmp_path, "a") as again:
        assert [path.name for path in again.iterdir()] == [MARKER]


def test_a_folder_that_was_removed_in_part_is_still_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_path: object, **_how: object) -> None:
        raise KeyboardInterrupt

    with fresh_folder(tmp_path, "a", keep=True) as folder:
        (folder / "blocks").mkdir()
        (folder / "block.bin").write_bytes(b"1")
    with monkeypatch.context() as patched:
        patched.setattr("shutil.rmtree", stop)
        with pytest.raises(KeyboardInterrupt), fresh_folder(tmp_path, "a"):
            pass
    assert (folder / MARKER).exists()
    with fresh_folder(tmp_path, "a") as again:
        assert [path.name for path in again.iterdir()] == [MARKER]


def test_a_folder_of_somebody_else_is_neither_used_nor_removed(tmp_path: Path) -> None:
    (tmp_path / "longreach-tiers-a").mkdir()
    (tmp_path / "longreach-tiers-a" / "data").write_text("mine", encoding="utf-8")
    with pytest.raises(InputFileError, match="no folder for the disk tier"), fresh_folder(tmp_path, "a"):
        pass
    assert (tmp_path / "longreach-tiers-a" / "data").read_text(encoding="utf-8") == "mine"


def test_a_disk_without_the_room_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with (
        pytest.raises(InputFileError, match="too small for this comparison"),
        fresh_folder(tmp_path / "kv", "a", wanted_bytes=10**18),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
