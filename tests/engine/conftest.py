"""The real engine for tests: where it is, and one small server that all of them may ask."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.engine.servers import free_port, serving

from longreach.launch.spec import LaunchSpec
from longreach.launch.tiny_model import write_tiny_model

_ROOT = Path(__file__).parents[2]


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
    port = free_port()
    server = TinyServer(
        base_url=f"http://127.0.0.1:{port}",
        model="tiny",
        folder=write_tiny_model(work / "tiny"),
        log_path=work / "engine.log",
        max_model_len=114_688,
        kv_cache_memory_bytes=64 * 2**20,
    )
    argv = (
        *("vllm", "serve", str(server.folder), "--served-model-name", server.model),
        *("--host", "127.0.0.1", "--port", str(port), "--enforce-eager", "--enable-prompt-tokens-details"),
        *("--max-model-len", str(server.max_model_len), "--max-num-batched-tokens", "8192"),
        *("--kv-cache-memory-bytes", str(server.kv_cache_memory_bytes)),
    )
    with serving(engine_python, LaunchSpec(server.model, argv, "127.0.0.1", port), server.log_path):
        yield server
