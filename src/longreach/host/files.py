"""Files written whole or not at all."""

import contextlib
import errno
import os
import shutil
import tempfile
from pathlib import Path

from longreach.errors import InputFileError
from longreach.units import format_bytes


def write_text_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """As `write_bytes_atomically`, in UTF-8."""
    write_bytes_atomically(path, text.encode(), mode)


def write_bytes_atomically(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write beside the target and rename over it, so that a reader or a crash never sees half a file.

    A link is followed. Raises InputFileError when the folder is missing or may not be written, and for a target that a rename
    would destroy: a device, a pipe, a file that may not be written.
    """
    path = _target(path)
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        why = f"{error.strerror}: {path.parent}"
        raise InputFileError(
            f"cannot write {path}", why, "name a file in a folder that exists and may be written"
        ) from error
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(content)
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except OSError as error:
        raise InputFileError(f"cannot write {path}", error.strerror or str(error), _advice(error)) from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(temporary).unlink()


def _advice(error: OSError) -> str:
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return "make room on that disk, then run the same command again" if is_full else "name a file that may be written"


def read_free_bytes(folder: Path) -> int | None:
    """What an ordinary user may still write on the disk of `folder`; None when the system does not tell."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def read_bytes_up_to(path: Path, max_bytes: int) -> bytes:
    """All of a file, pipe or device. OSError with the system's reason when it cannot be read, or is larger."""
    with path.open("rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {format_bytes(max_bytes)}", str(path))
    return content


def _target(path: Path) -> Path:
    try:
        target = path.resolve()
        is_there, is_file = target.exists(), target.is_file()
    except (OSError, RuntimeError) as error:  # links in a circle are a RuntimeError before Python 3.13
        raise InputFileError(f"cannot write {path}", str(error), "name a file that may be written") from error
    if is_there and not is_file:
        kind = "a folder" if target.is_dir() else "a device or a pipe"
        raise InputFileError(f"cannot write {path}", f"it is {kind}", "name a file")
    if is_there and not os.access(target, os.W_OK):
        raise InputFileError(f"cannot write {path}", "it is read-only", "name a file that may be written")
    return target
