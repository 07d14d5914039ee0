import mmap
import multiprocessing
import os
from pathlib import Path

import pytest

from longreach.host.shared_memory import SHARED_MEMORY, read_shared_memory_files, remove_unused_files


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


def test_a_segment_is_known_after_it_was_renamed(segment: Path) -> None:
    with segment.open("rb"):
        renamed = segment.rename(segment.with_name("psm_renamed"))
        assert read_shared_memory_files([os.getpid()], segment.parent) == {renamed}


def test_a_semaphore_is_known_to_its_creator() -> None:
    before = set(SHARED_MEMORY.iterdir())
    lock = multiprocessing.get_context("spawn").Lock()
    mine = read_shared_memory_files([os.getpid()]) - before
    assert [path.name.startswith("sem.mp-") for path in mine] == [True]
    assert remove_unused_files(mine) == ()
    assert lock.acquire(block=False)


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
