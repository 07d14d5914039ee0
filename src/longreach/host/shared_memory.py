"""Files in /dev/shm that belong to certain processes. An engine that dies leaves them behind, and they hold RAM until a reboot.

Files are matched by inode. By name would miss semaphores: sem_open(3) makes a file under a passing name, maps it, and links it
to its own name, so that the creator's /proc/PID/maps shows a deleted file.
"""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the kernel's own place, not a temporary folder of ours
_PROC = Path("/proc")


def read_shared_memory_files(pids: Iterable[int], root: Path = SHARED_MEMORY) -> frozenset[Path]:
    """The existing files under `root` that these processes have mapped or open. Processes we may not read add nothing."""
    used = {inode for pid in pids for inode in (*_mapped_inodes(pid, root), *_open_inodes(pid, root))}
    return frozenset(path for path, inode in _files(root) if inode in used) if used else frozenset()


def _files(root: Path) -> Iterator[tuple[Path, int]]:
    """The regular files under `root` and their inodes."""
    with contextlib.suppress(FileNotFoundError):
        for path in root.iterdir():
            with contextlib.suppress(FileNotFoundError):
                if path.is_file() and not path.is_symlink():
                    yield path, path.stat().st_ino


def _mapped_inodes(pid: int, root: Path) -> Iterator[int]:
    with contextlib.suppress(OSError), (_PROC / str(pid) / "maps").open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if f" {root}/" in line:
                yield int(line.split(maxsplit=5)[4])  # address perms offset device inode path, proc(5)


def _open_inodes(pid: int, root: Path) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for link in (_PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                if str(link.readlink()).startswith(f"{root}/"):
                    yield link.stat().st_ino


def remove_unused_files(files: Iterable[Path], root: Path = SHARED_MEMORY) -> tuple[Path, ...]:
    """Remove those of the files that still exist under `root` and that no living process uses; returns what was removed."""
    wanted = set(files)
    candidates = {path for path, _ in _files(root) if path in wanted}
    if not candidates:
        return ()
    pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())
    removed = []
    for path in sorted(candidates - read_shared_memory_files(pids, root)):
        with contextlib.suppress(OSError):  # another user's, or gone this very moment
            path.unlink()
            removed.append(path)
    return tuple(removed)
