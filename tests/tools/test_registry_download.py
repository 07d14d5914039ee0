import io
import json
import tarfile
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest
from tools.registry.download import (
    NotPublishedError,
    PublishedFile,
    choose_file,
    fetch_sources,
    read_source_archive,
    read_wheel,
)

FILES = {
    "vllm/engine/a.py": b"A = 1\n",
    "vllm/kernels/big.so": b"x" * 300_000,
    "vllm/z.py": b"Z = 2\n",
    "other/c.py": b"",
}


def pack_archive() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in FILES.items():
            member = tarfile.TarInfo(f"vllm-1.0/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def pack_wheel() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in FILES.items():
            archive.writestr(name, content)
    return buffer.getvalue()


INDEX = json.dumps(
    {
        "files": [
            {"filename": "vllm-1.0.tar.gz", "url": "../../vllm.tar.gz"},
            {"filename": "vllm-1.1-cp38-abi3-manylinux1_x86_64.whl", "url": "../../vllm.whl"},
        ]
    }
).encode()


class RangeServer(ThreadingHTTPServer):
    """Serves two packed files, whole or by range, and an index that lists them."""

    files: ClassVar = {"/vllm.tar.gz": pack_archive(), "/vllm.whl": pack_wheel(), "/simple/vllm/": INDEX}


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        content = RangeServer.files[self.path]
        wanted = self.headers["Range"]
        first, last = map(int, wanted.removeprefix("bytes=").split("-")) if wanted else (0, len(content) - 1)
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.end_headers()
        self.wfile.write(content[first : last + 1])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    with RangeServer(("127.0.0.1", 0), Answer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_archive_gives_the_modules_of_the_package_and_nothing_else(address: str) -> None:
    found = dict(read_source_archive(PublishedFile("vllm-1.0.tar.gz", f"{address}/vllm.tar.gz")))
    assert found == {"vllm/engine/a.py": b"A = 1\n", "vllm/z.py": b"Z = 2\n"}


def test_wheel_gives_its_modules_by_range_requests(address: str) -> None:
    found = dict(read_wheel(PublishedFile("vllm-1.0.whl", f"{address}/vllm.whl")))
    assert found == {"vllm/engine/a.py": b"A = 1\n", "vllm/z.py": b"Z = 2\n"}


WHEEL = PublishedFile("vllm-0.15.1-cp38-abi3-manylinux_2_31_x86_64.whl", "w")
ARM = PublishedFile("vllm-0.15.1-cp38-abi3-manylinux_2_31_aarch64.whl", "a")
SOURCE = PublishedFile("vllm-0.15.1.tar.gz", "s")
LATER = PublishedFile("vllm-0.15.10.tar.gz", "l")


def test_source_goes_before_a_wheel_and_a_release_is_not_another_that_begins_alike() -> None:
    assert choose_file([WHEEL, SOURCE, LATER], "0.15.1") == SOURCE
    assert choose_file([ARM, WHEEL, LATER], "0.15.1") == WHEEL
    with pytest.raises(NotPublishedError, match=r"vLLM 0\.15\.1$"):
        choose_file([ARM, LATER], "0.15.1")


@pytest.mark.parametrize("version", ["1.0", "1.1"], ids=["source archive", "wheel alone"])
def test_sources_come_from_the_index_that_pip_is_configured_with(
    version: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"{address}/simple")
    folder = fetch_sources(version, tmp_path)
    assert (folder / "vllm" / "engine" / "a.py").read_bytes() == b"A = 1\n"
    assert [path.name for path in tmp_path.iterdir()] == [version], "nothing half fetched is left"


def test_sources_that_are_there_are_not_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "0.15.1").mkdir()
    assert fetch_sources("0.15.1", tmp_path) == tmp_path / "0.15.1"
