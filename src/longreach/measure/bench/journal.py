"""The results file: one JSON object a line, written as things happen, so that a run that ends in any way leaves a file that
can be read and continued.
"""

import os
import sys
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import orjson

from longreach.errors import InputFileError, UsageError
from longreach.host.files import read_bytes_up_to
from longreach.measure.bench.log import Entry, Resumption, RunEnd, RunLog
from longreach.measure.bench.reach import UNNAMED_MODEL
from longreach.measure.bench.values import (
    SCHEMA,
    BenchHeader,
    BenchResult,
    Load,
    PhaseReport,
    RequestRecord,
    ServerSample,
)
from longreach.measure.structuring import structure

_SHAPES: Mapping[str, type[Entry]] = {
    "header": BenchHeader,
    "resume": Resumption,
    "request": RequestRecord,
    "phase": PhaseReport,
    "sample": ServerSample,
    "end": RunEnd,
}
_KINDS = {shape: kind for kind, shape in _SHAPES.items()}
_MAX_BYTES = 4 * 2**30  # five million requests
_NAME_IT = "name the file that `bench -o` wrote, or that it named on stderr"
_AGAIN = "measure again: longreach bench TARGET -o FILE.jsonl"


class Journal:
    """A results file that is being written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, entry: Entry) -> None:
        """Append one line; it is with the system when this returns."""
        line = {"kind": _KINDS[type(entry)], **{field.name: getattr(entry, field.name) for field in fields(entry)}}
        try:
            self._file.write(orjson.dumps(line) + b"\n")
            self._file.flush()
        except OSError as error:
            raise InputFileError(
                f"{self._file.name} cannot be written any more",
                error.strerror or str(error),
                f"make room, then go on: the same options with --resume -o {self._file.name}",
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # of a line that did not fit: it is known to be torn
            self._file.close()


def refuse_existing(path: Path) -> None:
    """UsageError when there is such a file: results are never overwritten."""
    if os.path.lexists(path):
        fix = f"--resume to continue it, or another name: -o {path.with_name(f'{path.stem}-2.jsonl')}"
        raise UsageError(f"{path} exists", "results are never overwritten", fix)


def open_journal(path: Path, header: BenchHeader) -> Journal:
    """Begin a results file. UsageError when there is one already."""
    refuse_existing(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("xb")
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputFileError(f"{path} cannot be written", reason, "-o FILE.jsonl elsewhere") from error
    _lock(file)
    journal = Journal(file)
    journal.write(header)
    return journal


def continue_journal(path: Path) -> Journal:
    """Go on after the last whole line of a results file."""
    try:
        file = path.open("r+b")
        _lock(file)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.seek(0, 2)
    except OSError as error:
        raise InputFileError(f"{path} cannot be continued", error.strerror or str(error), _AGAIN) from error
    return Journal(file)


def _lock(file: BinaryIO) -> None:
    """Keep it to this process until it is closed. InputFileError when another one has it."""
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        what, why = f"{file.name} is being written by another run", "two runs would mix their lines"
        raise InputFileError(what, why, "wait until it has ended, or -o FILE.jsonl elsewhere") from error
    except OSError:
        pass  # some network file systems have no locks


def read_journal(path: Path) -> BenchResult:
    """A run from its results file; a torn last line is left out. InputFileError when it is none."""
    return read_log(path).result()


def read_log(path: Path) -> RunLog:
    """As `read_journal`, with what a continuation needs."""
    try:
        *lines, torn = read_bytes_up_to(path, _MAX_BYTES).split(b"\n")
    except OSError as error:
        raise InputFileError(f"cannot read the results {path}", error.strerror or str(error), _NAME_IT) from error
    if not lines:
        raise InputFileError(f"{path} holds no results", f"it has no whole line ({len(torn)} bytes)", _AGAIN)
    first = _parse(lines[0], path, 1)
    if not isinstance(first, BenchHeader):
        raise InputFileError(f"{path} holds no results of a benchmark", "its first line is no header", _AGAIN)
    log = RunLog(first)
    for number, line in enumerate(lines[1:], 2):
        entry = _parse(line, path, number)
        if isinstance(entry, BenchHeader) and log.header.workload_digest and entry.started_at != log.header.started_at:
            raise InputFileError(
                f"{path} holds two runs", f"the second begins on line {number}", "keep each in its own file"
            )
        log.take(entry)
    return log


def _parse(line: bytes, path: Path, number: int) -> Entry:
    try:
        document = orjson.loads(line)
        shape = _SHAPES[document.pop("kind")]
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        what = f"{path} holds no results of a benchmark"
        raise InputFileError(what, f"line {number} is none of its lines", _AGAIN) from error
    if shape is BenchHeader:
        _check_header(document, path)
    try:
        return structure(document, shape)
    except ValueError as error:
        raise InputFileError(f"{path} cannot be understood", f"line {number}: {error}", _AGAIN) from error


def _check_header(document: Mapping[str, object], path: Path) -> None:
    schema = document.get("schema")
    if not str(schema).startswith(SCHEMA.rpartition("/")[0]):
        raise InputFileError(f"{path} holds no results of a benchmark", f"its schema is {schema!r:.40}", _NAME_IT)
    if schema != SCHEMA:
        why = f"its schema is {schema!r:.40}, not {SCHEMA!r}"
        raise InputFileError(
            f"{path} is of a version that is not read", why, f"{_AGAIN}, or read it with the longreach that wrote it"
        )
    if not document.get("phases"):
        raise InputFileError(f"{path} cannot be understood", "its header names no phase", _AGAIN)


_MUST_AGREE = ("base_url", "model", "num_requests", "workload_digest", "api", "load")


def check_continues(held: BenchHeader, wanted: BenchHeader, path: Path) -> None:
    """UsageError, naming the field, when a run is not the one that the results file began. What was not known because
    nothing answered may differ.
    """
    old, new = _identity(held), _identity(wanted)
    for name in old:
        if old[name] != new[name] and not {old[name], new[name]} & {"", UNNAMED_MODEL}:
            raise UsageError(
                f"{path} is not continued: {name.replace('_', ' ')} changed",
                f"it holds {_say(old[name])}, and this run has {_say(new[name])}",
                "run it with the options it was begun with, or write to another file with -o",
            )


def _say(value: Hashable) -> str:
    if isinstance(value, Load):
        at_once = f", {value.concurrency} at once" if value.concurrency else ""
        rate = f", {value.rate_per_s:g} a second" if value.rate_per_s else ""
        stretched = f", times x{value.time_scale:g}" if value.time_scale != 1 else ""
        return f"{value.arrivals}{at_once}{rate}{stretched}"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _identity(header: BenchHeader) -> dict[str, Hashable]:
    states = tuple(dict.fromkeys(phase.state for phase in header.phases))  # a second pass may have been added
    return {**{name: getattr(header, name) for name in _MUST_AGREE}, "states": states}
