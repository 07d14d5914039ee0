"""A workload in a file: a header, the segments, the requests, one JSON line each. What is read is what was written."""

import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from longreach.errors import InputFileError, LongreachError
from longreach.host.files import write_bytes_atomically
from longreach.measure.workload.digest import digest_workload
from longreach.measure.workload.values import Workload, WorkloadRequest

SCHEMA = "longreach/workload/1"
_MAX_TEXT_BYTES = 2 * 2**30
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


def write_workload(path: Path, workload: Workload) -> None:
    """Write it whole or not at all; a name that ends in .gz is compressed. InputFileError when the file cannot be written."""
    size = sum(map(len, workload.segments.values())) + sum(len(request.tail) for request in workload.requests)
    if size > _MAX_TEXT_BYTES:
        raise InputFileError(
            f"the workload is too large to write: {size:,} characters",
            f"a file holds at most {_MAX_TEXT_BYTES:,}",
            "fewer requests, or a smaller share of the trace's sessions",
        )
    text = b"".join(orjson.dumps(line) + b"\n" for line in _render_lines(workload))
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
    try:
        raw = path.read_bytes()
        text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except (OSError, EOFError) as error:  # BadGzipFile is an OSError, a torn stream an EOFError
        raise _unreadable(path, str(error)) from error
    lines = [_parse_line(path, number, line) for number, line in enumerate(text.splitlines(), 1)]
    header = lines[0] if lines else {}
    if header.get("kind") != "header" or header.get("schema") != SCHEMA:
        raise _unreadable(path, f"it does not begin with a header of schema {SCHEMA}")
    try:
        workload = _assemble(header, lines[1:])
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable(path, f"a line lacks or misuses the field {error}") from error
    _check_whole(path, header, workload)
    return workload


def _parse_line(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        parsed = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _unreadable(path, f"line {number} is not JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise _unreadable(path, f"line {number} is not an object")
    return parsed


def _assemble(header: Mapping[str, Any], lines: list[dict[str, Any]]) -> Workload:
    segments = {line["name"]: line["text"] for line in lines if line.get("kind") == "segment"}
    requests = tuple(
        WorkloadRequest(**{name: line[name] for name in _REQUEST_FIELDS} | {"segments": tuple(line["segments"])})
        for line in lines
        if line.get("kind") == "request"
    )
    fields = {name: header[name] for name in _HEADER_FIELDS} | {"notes": tuple(header["notes"])}
    return Workload(segments=segments, requests=requests, **fields)


def _check_whole(path: Path, header: Mapping[str, Any], workload: Workload) -> None:
    if len(workload.requests) != header.get("num_requests") or len(workload.segments) != header.get("num_segments"):
        raise _unreadable(path, "it is torn: it holds fewer lines than its header says")
    missing = {name for request in workload.requests for name in request.segments} - set(workload.segments)
    if missing:
        raise _unreadable(path, f"a request names a segment that is not there: {min(missing)}")
    if digest_workload(workload) != workload.digest:
        raise _unreadable(path, "its digest does not agree with its text: it was changed after it was written")


def _unreadable(path: Path, why: str) -> LongreachError:
    return InputFileError(f"'{path}' is no workload file", why, "write a new one with bench --save-workload")
