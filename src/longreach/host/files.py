"""Files written whole or not at all."""

import contextlib
import os
import tempfile
from pathlib import Path

from longreach.errors import InputFileError


def write_text_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """Write beside the target and rename over it, so that a reader or a crash never sees half a file.

    Raises InputFileError when the folder is missing or may not be written.
    """
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        why = f"{error.strerror}: {path.parent}"
        raise InputFileError(
            f"cannot write {path}", why, "name a file in a folder that exists and may be written"
        ) from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
            handle.write(text)
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except OSError as error:
        raise InputFileError(f"cannot write {path}", str(error), "name a file that may be written") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(temporary).unlink()
