import mmap
import os
from pathlib import Path

import pytest

from longreach.host.shared_memory import read_shared_memory_files, remove_unused_files


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    path = tmp_path / "psm_0f1e2d3c"
    path.write_bytes(b"x" * mmap.PAGESIZE)
    return path


def test_a_mapped_segment_is_found_and_kept(segment: Path) -> None:
    with segment.open("r+b") as handle:
        mapping = mmap.mmap(handle.fileno(), 0)
    with mapping:
        assert read_shared_memory_files([os.getpid()], segment.parent) == {segment}
        assert remove_unused_files([segment], segment.parent) == ()
    assert segment.exists()


def test_an_open_segment_is_found(segment: Path) -> None:
    with segment.open("rb"):
        assert read_shared_memory_files([os.getpid()], segment.parent) == {segment}


def test_an_abandoned_segment_is_removed(segment: Path) -> None:
    assert read_shared_memory_files([os.getpid()], segment.parent) == frozenset()
    assert remove_unused_files([segment], segment.parent) == (segment,)
    assert not segment.exists()


def test_nothing_outside_shared_memory_is_removed(segment: Path) -> None:
    link = segment.parent / "psm_link"
    link.symlink_to(segment)
    assert remove_unused_files([segment], segment.parent / "elsewhere") == ()
    assert remove_unused_files([link], segment.parent) == ()
    assert segment.exists()


def test_a_process_that_is_gone_adds_nothing(tmp_path: Path) -> None:
    assert read_shared_memory_files([2**22 + 1], tmp_path) == frozenset()
