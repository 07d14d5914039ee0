"""The real engine for tests: where it is, and one small server that all of them may ask."""

import contextlib
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from longreach.host.processes import StopTimes, end_family, read_child_identity, read_family
from longreach.host.shared_memory import read_shared_memory_files, remove_unused_files
from longreach.launch.tiny_model import write_tiny_model

_ROOT = Path(__file__).parents[2]
_START_LIMIT_S = 540.0  # 15 s on two idle cores; minutes when they are busy


@dataclass(frozen=True, slots=True)
class TinyServer:
    """A running `vllm serve` with the tiny model. Tests share it: they must not count on an empty prefix cache."""

    base_url: str  # http://127.0.0.1:PORT
    model: str  # the served name
    folder: Path  # the checkpoint
    log_path: Path
    max_model_len: int
    kv_cache_memory_bytes: int


@pytest.fixture(scope="session")
def engine_python() -> Path:
    """The Python of the engine's environment: LONGREACH_ENGINE_PYTHON, else what `make engine` installs."""
    python = Path(os.environ.get("LONGREACH_ENGINE_PYTHON") or _ROOT / ".engine" / "bin" / "python").absolute()
    if not python.exists():
        pytest.fail(
            f"no engine: {python} does not exist; run `make engine`, or set LONGREACH_ENGINE_PYTHON", pytrace=False
        )
    return python


@pytest.fixture(scope="session")
def tiny_server(engine_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TinyServer]:
    """One server for the whole run, on a free loopback port; it is gone afterwards, with all that it left behind."""
    work = tmp_path_factory.mktemp("tiny_server")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    server = TinyServer(
        base_url=f"http://127.0.0.1:{port}",
        model="tiny",
        folder=write_tiny_model(work / "tiny"),
        log_path=work / "engine.log",
        max_model_len=65_536,
        kv_cache_memory_bytes=64 * 2**20,
    )
    argv = [
        *(str(engine_python.with_name("vllm")), "serve", str(server.folder), "--served-model-name", server.model),
        *("--host", "127.0.0.1", "--port", str(port), "--enforce-eager", "--enable-prompt-tokens-details"),
        *("--max-model-len", str(server.max_model_len), "--max-num-batched-tokens", "8192"),
        *("--kv-cache-memory-bytes", str(server.kv_cache_memory_bytes)),
    ]
    environment = os.environ | {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
    with server.log_path.open("wb") as log:
        process = subprocess.Popen(
            argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment, start_new_session=True
        )
    try:
        _wait_until_healthy(server, process)
        yield server
    finally:
        _end(process)


def _wait_until_healthy(server: TinyServer, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_LIMIT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"the engine ended with {process.returncode}:\n{_tail(server.log_path)}")
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"{server.base_url}/health", timeout=5) as answer,
        ):
            assert answer.status == 200
            return
        time.sleep(0.2)
    pytest.fail(f"the engine was not ready after {_START_LIMIT_S:.0f} s:\n{_tail(server.log_path)}")


def _tail(log_path: Path) -> str:
    return "\n".join(log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-40:])


def _end(process: subprocess.Popen[bytes]) -> None:
    leader = read_child_identity(process.pid)
    files = read_shared_memory_files(member.pid for member in read_family(leader))
    end_family(leader, StopTimes())
    process.wait(timeout=10)
    remove_unused_files(files)
