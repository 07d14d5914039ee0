"""A folder of its own for every start with a disk tier: empty at first, gone afterwards, and nothing else is touched."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from longreach.errors import InputFileError
from longreach.host.files import read_free_bytes
from longreach.units import format_bytes

MARKER = ".longreach-tiers"
"""The file by which a folder is known to be ours; one without it is never removed."""

_PREFIX = "longreach-tiers-"


@contextlib.contextmanager
def fresh_folder(root: Path, name: str, *, wanted_bytes: int | None = None, keep: bool = False) -> Iterator[Path]:
    """An empty folder below `root`. InputFileError when it cannot be made, is there already, or its disk is too small."""
    check_room(root, wanted_bytes)
    folder = root / f"{_PREFIX}{name}"
    made = _make(folder)
    try:
        yield folder
    finally:
        if not keep:
            _remove(folder)
            for parent in made:
                with contextlib.suppress(OSError):  # somebody else's files are in it by now
                    parent.rmdir()


def check_room(root: Path, wanted_bytes: int | None) -> None:
    """InputFileError when the disk that `root` is on, or will be, has less room than wanted."""
    place = next((path for path in (root, *root.absolute().parents) if path.is_dir()), None)
    free = None if place is None else read_free_bytes(place)
    if wanted_bytes is None or free is None or free >= wanted_bytes:
        return
    raise InputFileError(
        f"the disk of {root} is too small for this comparison",
        f"every start writes up to {format_bytes(wanted_bytes)} there, and {format_bytes(free)} are free",
        "make room, plan the disk tier elsewhere, or send fewer prompts: --prompts N",
    )


def _make(folder: Path) -> list[Path]:
    """The parents that had to be made, innermost first."""
    missing = [parent for parent in folder.parents if not parent.exists()]
    _remove(folder)  # ours, from a run that was killed
    try:
        folder.mkdir(parents=True)
        (folder / MARKER).write_text("made by longreach tiers, and removed by it\n", encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputFileError(
            f"no folder for the disk tier at {folder}",
            reason,
            "remove what stands there if it is nobody's, or plan the disk tier elsewhere",
        ) from error
    return missing


def _remove(folder: Path) -> None:
    """The marker last, so that a folder that was not wholly removed is still known to be ours."""
    if not (folder / MARKER).exists():
        return
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != MARKER:
            path.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
