"""The files that `bench` is to write, looked at before anything is sent: each must be a file of its own in a folder to write in."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longreach.errors import InputFileError, UsageError

_READ = ("workload", "trace", "text", "tokenizer")
_WRITTEN = ("output", "html", "save_answers", "save_workload")
_MAKES_FOLDERS = frozenset({"output"})


def check_outputs(values: Mapping[str, Any], journal: Path) -> None:
    """`journal` is where the results go, named or not. UsageError for one file in two roles, InputFileError for a place that
    cannot be written.
    """
    files = {name: Path(values[name]) for name in (*_READ, *_WRITTEN) if values[name] is not None}
    files["output"] = journal
    roles: dict[Path, str] = {}
    for name, path in files.items():
        other = roles.setdefault(path.absolute(), name)
        if other != name and name in _WRITTEN:
            raise UsageError(
                f"{_option(other)} and {_option(name)} name the same file", f"{path} cannot hold both", "name two files"
            )
    for name in _WRITTEN:
        if name in files:
            check_folder(name, files[name])
    if "save_answers" in files and not values["resume"] and os.path.lexists(files["save_answers"]):
        raise UsageError(
            f"{files['save_answers']} exists", "answers are never overwritten", "--save-answers FILE.jsonl"
        )


def _option(name: str) -> str:
    return "-o" if name == "output" else f"--{name.replace('_', '-')}"


def check_folder(name: str, path: Path) -> None:
    """InputFileError where the file of option `name` cannot be written."""
    folder = path.absolute().parent
    if name in _MAKES_FOLDERS:
        while not folder.exists():
            folder = folder.parent
    reason = None
    if path.is_dir():
        reason = "it is a folder"
    elif not folder.is_dir():
        reason = f"there is no folder {folder}"
    elif not os.access(folder, os.W_OK | os.X_OK):
        reason = f"the folder {folder} may not be written"
    if reason is not None:
        raise InputFileError(f"{path} cannot be written", reason, f"{_option(name)} FILE elsewhere")
