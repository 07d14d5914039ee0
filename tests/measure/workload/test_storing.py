"""A workload in a file is the workload, or an error."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from longreach.errors import InputFileError
from longreach.measure.workload import storing
from longreach.measure.workload.digest import digest_workload
from longreach.measure.workload.storing import read_workload, write_workload
from longreach.measure.workload.values import Workload, WorkloadRequest

REQUESTS = (
    WorkloadRequest(0, ("a", "b"), "first.\u2028 Größe 漢字 \x00", 40, 8, session=3, arrival_s=0.125),
    WorkloadRequest(1, ("a",), "second.", 30, 8, reusable_tokens=12),
)
UNSIGNED = Workload("two", "s", "a test", 7, {"a": "shared\n", "b": "more\n"}, REQUESTS, notes=("a note",))
WORKLOAD = replace(UNSIGNED, digest=digest_workload(UNSIGNED))


@pytest.mark.parametrize("name", ["w.jsonl", "w.jsonl.gz"])
def test_what_is_read_is_what_was_written(tmp_path: Path, name: str) -> None:
    write_workload(tmp_path / name, WORKLOAD)
    assert read_workload(tmp_path / name) == WORKLOAD
    assert list(tmp_path.iterdir()) == [tmp_path / name]


def test_the_same_workload_is_the_same_file(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        write_workload(tmp_path / name, WORKLOAD)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert len(gzip.decompress((tmp_path / "a.gz").read_bytes()).splitlines()) == 5


CHANGES = {
    "text": replace(WORKLOAD, segments={"a": "Shared\n", "b": "more\n"}),
    "tail": replace(WORKLOAD, requests=(REQUESTS[0], replace(REQUESTS[1], tail="other"))),
    "answer": replace(WORKLOAD, requests=(REQUESTS[0], replace(REQUESTS[1], output_tokens=9))),
    "clock": replace(WORKLOAD, requests=(replace(REQUESTS[0], arrival_s=0.25), REQUESTS[1])),
    "order": replace(WORKLOAD, requests=REQUESTS[::-1]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_digest_tells_every_change(name: str) -> None:
    assert digest_workload(CHANGES[name]) != WORKLOAD.digest


EDITS = {
    "changed": ("second", "sekond"),
    "type": ('"reusable_tokens":12', '"reusable_tokens":"12"'),
    "notes": ('["a note"]', '"a note"'),
    "index": ('"index":1', '"index":0'),
}


def broken(text: str, how: str) -> str:
    lines = text.splitlines(keepends=True)
    match how:
        case "torn":
            return text[:-40]
        case "short":
            return "".join(lines[:-1])
        case "foreign":
            return '{"kind": "header", "schema": "longreach/bench/1"}\n'
        case "no_json":
            return "hello\n"
        case "list":
            return "[]\n"
        case "empty":
            return ""
        case "field":
            header = json.loads(lines[0])
            del header["seed"]
            return json.dumps(header) + "\n" + "".join(lines[1:])
    return text.replace(*EDITS[how])


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("torn", "line 5 is not JSON"),
        ("short", "it is torn"),
        ("changed", "its digest does not agree"),
        ("foreign", "it does not begin with a header"),
        ("no_json", "line 1 is not JSON"),
        ("list", "line 1 is not an object"),
        ("empty", "it does not begin with a header"),
        ("field", "line 1: 'seed' is missing"),
        ("type", "line 5: expected a whole number, not '12' @ reusable_tokens"),
        ("notes", "line 1: expected a list, not 'a note' @ notes"),
        ("index", "not numbered in their order"),
    ],
)
def test_what_is_no_whole_workload_is_refused(tmp_path: Path, how: str, why: str) -> None:
    path = tmp_path / "w.jsonl"
    write_workload(path, WORKLOAD)
    path.write_text(broken(path.read_text(encoding="utf-8"), how), encoding="utf-8")
    with pytest.raises(InputFileError, match="is no workload file") as caught:
        read_workload(path)
    assert why in caught.value.why


FLIPPED = bytearray(gzip.compress(b"some text to be packed, packed, packed"))
FLIPPED[10] = 0xFF  # no such kind of block: zlib complains, not gzip


@pytest.mark.parametrize(
    "content", [b"\x1f\x8b\x08", b"\x1f\x8bnot gzip", bytes(FLIPPED)], ids=["torn", "bad", "flipped"]
)
def test_broken_compression_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "w.gz").write_bytes(content)
    with pytest.raises(InputFileError, match="is no workload file"):
        read_workload(tmp_path / "w.gz")


def test_file_that_grows_beyond_all_measure_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "_MAX_BYTES", 2**20)
    (tmp_path / "w.gz").write_bytes(gzip.compress(bytes(2**21)))
    with pytest.raises(InputFileError) as caught:
        read_workload(tmp_path / "w.gz")
    assert caught.value.why == "unpacked it is larger than 1 MiB"


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no endless file on this system")
def test_endless_file_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "_MAX_BYTES", 2**20)
    with pytest.raises(InputFileError) as caught:
        read_workload(Path("/dev/zero"))
    assert caught.value.why == "it is larger than 1 MiB"


def test_missing_file_and_request_without_its_segment_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputFileError) as caught:
        read_workload(tmp_path / "none.jsonl")
    assert "No such file" in caught.value.why
    write_workload(tmp_path / "w.jsonl", replace(WORKLOAD, segments={"a": "shared\n"}))
    with pytest.raises(InputFileError) as caught:
        read_workload(tmp_path / "w.jsonl")
    assert "a segment that is not there: b" in caught.value.why


def test_workload_too_large_for_a_file_is_refused_before_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storing, "_MAX_BYTES", 10)
    with pytest.raises(InputFileError, match="too large to write"):
        write_workload(tmp_path / "w.jsonl", WORKLOAD)
    assert not list(tmp_path.iterdir())
