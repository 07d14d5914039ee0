import os
import subprocess
import sys
from pathlib import Path

import pytest

from longreach.errors import InputFileError
from longreach.launch.lock import LockHeldError, hold_lock

HOLD_IN_ANOTHER_PROCESS = """
import sys
from pathlib import Path
from longreach.launch.lock import hold_lock
with hold_lock(Path(sys.argv[1]), "down"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_is_held_once_and_names_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "box.lock"
    with hold_lock(path, "up"), pytest.raises(LockHeldError) as caught, hold_lock(path, "up"):
        pytest.fail("the lock was given twice")
    assert caught.value.holder is not None
    assert caught.value.holder.pid == os.getpid()
    with hold_lock(path, "up"):
        pass


def test_a_dead_holder_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "box.lock"
    argv = [sys.executable, "-c", HOLD_IN_ANOTHER_PROCESS, str(path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(LockHeldError, match=f"held by `longreach down`, pid {other.pid}"), hold_lock(path, "up"):
            pytest.fail("the lock was given twice")
        other.kill()
        other.wait()
        with hold_lock(path, "up"):
            pass


def test_an_unreadable_holder_is_still_a_holder(tmp_path: Path) -> None:
    path = tmp_path / "box.lock"
    with hold_lock(path, "up"):
        path.write_text("half a li")
        with pytest.raises(LockHeldError, match="another process"), hold_lock(path, "up"):
            pytest.fail("the lock was given twice")


def test_a_lock_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "box.lock").mkdir()
    with pytest.raises(InputFileError, match="lock cannot be used"), hold_lock(tmp_path / "box.lock", "up"):
        pass


def test_on_a_full_disk_nothing_starts_but_everything_can_be_ended() -> None:
    full = Path("/dev/full")  # every write fails as on a full disk
    with pytest.raises(InputFileError, match="full cannot be used"), hold_lock(full, "up"):
        pass
    with hold_lock(full, "down"):
        pass
