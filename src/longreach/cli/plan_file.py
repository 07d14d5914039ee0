"""plan.yaml on disk."""

from pathlib import Path
from typing import Any

import yaml

from longreach.errors import InputFileError
from longreach.host.files import write_text_atomically
from longreach.plan.document import plan_from_document, plan_to_document
from longreach.plan.values import Plan

_MAX_BYTES = 16 * 2**20
_MAX_VALUES = 1_000_000
_RESULTS = '{"kind":"header"'
_HEADER = "# Made by `longreach plan`. argv and env are what runs; everything else is what it should do.\n"


def write_plan(path: Path, plan: Plan) -> None:
    """Whole or not at all."""
    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text = yaml.dump(plan_to_document(plan), Dumper=dumper, sort_keys=False, allow_unicode=True, width=140)
    write_text_atomically(path, _HEADER + text)


def read_plan(path: Path) -> Plan:
    """InputFileError says what is wrong with the file and how to make a good one."""
    fix = f"make one: longreach plan MODEL ... -o {path}"
    try:
        if path.exists() and not path.is_file():
            kind = "a folder" if path.is_dir() else "a pipe or a device"
            raise InputFileError(f"{path} is no file", f"it is {kind}", fix)
        if path.stat().st_size > _MAX_BYTES:
            raise InputFileError(f"{path} is too large for a plan", f"{path.stat().st_size:,} bytes", fix)
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputFileError(f"cannot read the plan {path}", error.strerror or str(error), fix) from error
    except UnicodeDecodeError as error:
        raise InputFileError(f"{path} is not a text file", str(error), fix) from error
    if text.startswith(_RESULTS):
        raise InputFileError(
            f"{path} holds results, not a plan", "it begins as `bench` writes them", f"longreach bench report {path}"
        )
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        document = yaml.load(text, Loader=loader)  # noqa: S506 - the safe loader, in C where it exists
    except (yaml.YAMLError, RecursionError) as error:
        raise InputFileError(f"{path} is not YAML", " ".join(str(error).split()), fix) from error
    _check_size(document, path, fix)
    return plan_from_document(document, str(path))


def _check_size(document: object, path: Path, fix: str) -> None:
    """A short file may stand for endless values: YAML's aliases repeat a value, and may repeat the one they are in."""
    waiting, num_values = [document], 0
    while waiting:
        value = waiting.pop()
        num_values += 1
        if num_values > _MAX_VALUES:
            raise InputFileError(f"{path} is too large for a plan", f"more than {_MAX_VALUES:,} values in it", fix)
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
