"""Fetch the Python source of a vLLM release from the package index that pip is configured with.

A release's source archive is read as it streams in, and only `vllm/**/*.py` is kept. Where only a wheel was published
(0.15), its `.py` members are read by range requests, since most of the half gigabyte is compiled code.
"""

import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path, PurePosixPath
from urllib.parse import urljoin

from tools.uv import parse_pip_settings

_JSON_INDEX = "application/vnd.pypi.simple.v1+json"
_WINDOW_BYTES = 512 * 1024  # one range request of a wheel
_TIMEOUT_S = 180.0


class NotPublishedError(LookupError):
    """The index has no file of a release that could be read."""


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """One file of a release on the index."""

    name: str  # "vllm-0.33.0.tar.gz"
    address: str

    @property
    def is_source(self) -> bool:
        return self.name.endswith(".tar.gz")


def find_index() -> str:
    """The address pip takes packages from: its configuration, else its own default."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], check=True, capture_output=True, text=True
    )
    configured = parse_pip_settings(listing.stdout).get("index-url")
    if configured:
        return configured
    from pip._internal.models.index import PyPI

    return str(PyPI.simple_url)


def list_files() -> tuple[PublishedFile, ...]:
    """Every file of vLLM that the index offers."""
    address = urljoin(find_index().rstrip("/") + "/", "vllm/")
    with _open(address, {"Accept": _JSON_INDEX}) as answer:
        page = json.load(answer)
    return tuple(PublishedFile(str(row["filename"]), urljoin(address, str(row["url"]))) for row in page["files"])


def choose_file(files: Iterable[PublishedFile], version: str) -> PublishedFile:
    """The source archive of a release, else a wheel for x86-64 Linux. NotPublishedError when there is neither."""
    own = [file for file in files if re.match(rf"vllm-{re.escape(version)}(\.tar\.gz$|-.*x86_64\.whl$)", file.name)]
    if not own:
        raise NotPublishedError(f"the package index offers neither source nor an x86-64 wheel of vLLM {version}")
    return max(own, key=lambda file: file.is_source)


def fetch_sources(version: str, cache: Path) -> Path:
    """The folder that holds the package `vllm` of this release: `cache/VERSION`, filled when it is not there yet."""
    folder = cache / version
    if folder.exists():
        return folder
    partial = cache / f"{version}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    file = choose_file(list_files(), version)
    for name, text in read_source_archive(file) if file.is_source else read_wheel(file):
        path = partial / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    partial.rename(folder)
    return folder


def read_source_archive(file: PublishedFile) -> Iterator[tuple[str, bytes]]:
    """(path from the package on, content) of each module, while the archive streams in."""
    with _open(file.address) as answer, tarfile.open(fileobj=answer, mode="r|gz") as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            content = archive.extractfile(member) if member.isfile() and _is_module(path.parts[1:]) else None
            if content is not None:
                yield "/".join(path.parts[1:]), content.read()


def read_wheel(file: PublishedFile) -> Iterator[tuple[str, bytes]]:
    """(path, content) of each module of a wheel, read in the order in which they lie in it."""
    with zipfile.ZipFile(io.BufferedReader(_RemoteFile(file.address), _WINDOW_BYTES)) as archive:
        members = [member for member in archive.infolist() if _is_module(PurePosixPath(member.filename).parts)]
        for member in sorted(members, key=lambda member: member.header_offset):
            yield member.filename, archive.read(member)


def _is_module(parts: tuple[str, ...]) -> bool:
    return parts[:1] == ("vllm",) and parts[-1].endswith(".py") and ".." not in parts


class _RemoteFile(io.RawIOBase):
    """A file on a server, read by ranges."""

    def __init__(self, address: str) -> None:
        with _open(address, {"Range": "bytes=0-0"}) as answer:
            self._length = int(answer.headers["Content-Range"].rpartition("/")[2])
        self._address, self._position = address, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._length}[whence]
        self._position = start + offset
        return self._position

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        last = min(self._position + len(buffer), self._length) - 1
        if last < self._position:
            return 0
        with _open(self._address, {"Range": f"bytes={self._position}-{last}"}) as answer:
            content = answer.read()
        buffer[: len(content)] = content
        self._position += len(content)
        return len(content)


def _open(address: str, headers: dict[str, str] | None = None) -> HTTPResponse:
    request = urllib.request.Request(address, headers=headers or {})  # noqa: S310 - an address of pip's configuration
    answer = urllib.request.urlopen(request, timeout=_TIMEOUT_S)  # noqa: S310 - same
    assert isinstance(answer, HTTPResponse), "package indexes are reached over HTTP"
    return answer
