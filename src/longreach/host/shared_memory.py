"""Files in /dev/shm that belong to certain processes. An engine that dies leaves them behind, and they hold RAM until a reboot."""

import contextlib
from collections.abc import Iterable
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the kernel's own place, not a temporary folder of ours
_PROC = Path("/proc")
_DELETED = " (deleted)"


def read_shared_memory_files(pids: Iterable[int], root: Path = SHARED_MEMORY) -> frozenset[Path]:
    """The existing files under `root` that these processes have mapped or open. Processes we may not read add nothing."""
    found: set[str] = set()
    for pid in pids:
        found |= _mapped_files(pid, root) | _open_files(pid, root)
    return frozenset(Path(name) for name in found if not name.endswith(_DELETED))


def _mapped_files(pid: int, root: Path) -> set[str]:
    try:
        with (_PROC / str(pid) / "maps").open(encoding="utf-8", errors="replace") as lines:
            # address perms offset device inode path, proc(5)
            return {line.split(maxsplit=5)[5].rstrip("\n") for line in lines if f" {root}/" in line}
    except OSError:
        return set()


def _open_files(pid: int, root: Path) -> set[str]:
    found: set[str] = set()
    with contextlib.suppress(OSError):
        for link in (_PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                target = str(link.readlink())
                if target.startswith(f"{root}/"):
                    found.add(target)
    return found


def remove_unused_files(files: Iterable[Path], root: Path = SHARED_MEMORY) -> tuple[Path, ...]:
    """Remove those of the files that still exist under `root` and that no living process uses; returns what was removed."""
    candidates = {path for path in files if path.parent == root and path.is_file() and not path.is_symlink()}
    if not candidates:
        return ()
    pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())
    removed = []
    for path in sorted(candidates - read_shared_memory_files(pids, root)):
        with contextlib.suppress(OSError):  # another user's, or gone this very moment
            path.unlink()
            removed.append(path)
    return tuple(removed)
