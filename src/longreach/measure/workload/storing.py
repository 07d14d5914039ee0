"""A workload in a file: a header, the segments, the requests, one JSON line each. What is read is what was written."""

import gzip
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from longreach.errors import InputFileError, LongreachError
from longreach.host.files import read_bytes_up_to, write_bytes_atomically
from longreach.measure.structuring import structure
from longreach.measure.workload.digest import digest_workload
from longreach.measure.workload.values import Workload, WorkloadRequest
from longreach.units import format_bytes

SCHEMA = "longreach/workload/1"
_MAX_BYTES = 2 * 2**30  # unpacked
_HEADER_FIELDS = ("source", "seed", "tokenizer", "template_tokens", "digest", "notes")
_REQUEST_FIELDS = (
    "index",
    "segments",
    "tail",
    "prompt_tokens",
    "output_tokens",
    "session",
    "arrival_s",
    "reusable_tokens",
)


@dataclass(frozen=True, slots=True)
class _Segment:
    name: str
    text: str


def write_workload(path: Path, workload: Workload) -> None:
    """Write it whole or not at all; a name that ends in .gz is compressed. InputFileError when the file cannot be written."""
    text = b"".join(orjson.dumps(line) + b"\n" for line in _render_lines(workload))
    if len(text) > _MAX_BYTES:
        raise InputFileError(
            f"the workload is too large to write: {format_bytes(len(text))}",
            f"a file holds at most {format_bytes(_MAX_BYTES)}",
            "fewer requests, or a smaller share of the trace's sessions",
        )
    # Without a time in it, the same workload is the same file.
    write_bytes_atomically(path, gzip.compress(text, compresslevel=6, mtime=0) if path.suffix == ".gz" else text)


def _render_lines(workload: Workload) -> Iterator[Mapping[str, object]]:
    header = {name: getattr(workload, name) for name in _HEADER_FIELDS}
    counts = {"num_segments": len(workload.segments), "num_requests": len(workload.requests)}
    yield {"kind": "header", "schema": SCHEMA, **header, **counts}
    for name, text in workload.segments.items():
        yield {"kind": "segment", "name": name, "text": text}
    for request in workload.requests:
        yield {"kind": "request", **{name: getattr(request, name) for name in _REQUEST_FIELDS}}


def read_workload(path: Path) -> Workload:
    """The workload in `path`. InputFileError when it is another kind of file, torn, or was changed since."""
    lines = [_parse_line(path, number, line) for number, line in enumerate(_read_text(path).splitlines(), 1)]
    header = lines[0] if lines else {}
    if header.get("kind") != "header" or header.get("schema") != SCHEMA:
        raise _unreadable(path, f"it does not begin with a header of schema {SCHEMA}")
    workload = _assemble(path, header, lines)
    _check_whole(path, header, workload)
    return workload


def _read_text(path: Path) -> bytes:
    try:
        raw = read_bytes_up_to(path, _MAX_BYTES)
        if raw[:2] != b"\x1f\x8b":
            return raw
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as packed:
            text = packed.read(_MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:  # BadGzipFile is an OSError, a torn stream an EOFError
        raise _unreadable(path, getattr(error, "strerror", None) or str(error)) from error
    if len(text) > _MAX_BYTES:
        raise _unreadable(path, f"unpacked it is larger than {format_bytes(_MAX_BYTES)}")
    return text


def _parse_line(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        parsed = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _unreadable(path, f"line {number} is not JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise _unreadable(path, f"line {number} is not an object")
    return parsed


def _assemble(path: Path, header: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> Workload:
    segments: dict[str, str] = {}
    requests: list[WorkloadRequest] = []
    for number, line in enumerate(lines, 1):
        try:
            match line.get("kind"):
                case "segment":
                    segment = structure(line, _Segment)
                    segments[segment.name] = segment.text
                case "request":
                    requests.append(structure(line, WorkloadRequest))
        except ValueError as error:
            raise _unreadable(path, f"line {number}: {error}") from error
    try:
        workload = structure({**header, "segments": {}, "requests": []}, Workload)
    except ValueError as error:
        raise _unreadable(path, f"line 1: {error}") from error
    return replace(workload, segments=segments, requests=tuple(requests))


def _check_whole(path: Path, header: Mapping[str, Any], workload: Workload) -> None:
    if len(workload.requests) != header.get("num_requests") or len(workload.segments) != header.get("num_segments"):
        raise _unreadable(path, "it is torn: it holds fewer lines than its header says")
    if any(request.index != place for place, request in enumerate(workload.requests)):
        raise _unreadable(path, "its requests are not numbered in their order")
    missing = {name for request in workload.requests for name in request.segments} - set(workload.segments)
    if missing:
        raise _unreadable(path, f"a request names a segment that is not there: {min(missing)}")
    if digest_workload(workload) != workload.digest:
        raise _unreadable(path, "its digest does not agree with its text: it was changed after it was written")


def _unreadable(path: Path, why: str) -> LongreachError:
    return InputFileError(f"'{path}' is no workload file", why, "write a new one with bench --save-workload")
