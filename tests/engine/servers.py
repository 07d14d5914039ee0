"""Start the real engine for a test, ask it, end it. A plan becomes a LaunchSpec by `longreach.cli.from_plan.launch_specs`."""

import contextlib
import json
import os
import re
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longreach.engine.metrics import EngineMetrics, parse_metrics
from longreach.host.processes import StopTimes, end_family, read_child_identity, read_family
from longreach.host.shared_memory import read_shared_memory_files, remove_unused_files
from longreach.launch.executable import resolve_engine
from longreach.launch.spec import LaunchSpec

START_LIMIT_S = 540.0  # 15 s on two idle cores; minutes when they are busy
QUIET = {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}


class StartFailedError(Exception):
    """The engine ended, or was not ready in time. Its text is the log."""


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer of /v1/completions, and how much of its prompt the engine found in its caches."""

    text: str
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class Server:
    """A running `vllm serve`."""

    base_url: str  # http://127.0.0.1:PORT
    log_path: Path

    def log(self) -> str:
        """All that it has said."""
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def metrics(self) -> EngineMetrics:
        """One reading of /metrics."""
        return parse_metrics(self._ask("/metrics").decode())

    def hit_tokens(self) -> dict[str, int]:
        """Prompt tokens found since the start, by source: device, host, disk. Sources without any are left out."""
        by_source = self.metrics().cached_tokens_by_source or ()
        return {source: int(tokens) for source, tokens in by_source if tokens}

    def complete(self, prompt: Sequence[int], max_tokens: int = 16) -> Completion:
        """The greedy answer to a prompt of token ids."""
        (model,) = json.loads(self._ask("/v1/models"))["data"]
        body = {"model": model["id"], "prompt": list(prompt), "max_tokens": max_tokens, "temperature": 0}
        answer: dict[str, Any] = json.loads(self._ask("/v1/completions", json.dumps(body).encode()))
        details = answer["usage"]["prompt_tokens_details"] or {}
        return Completion(answer["choices"][0]["text"], details.get("cached_tokens") or 0)

    def _ask(self, path: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(f"{self.base_url}{path}", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=300) as answer:
            content: bytes = answer.read()
            return content


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def serving(python: Path, spec: LaunchSpec, log_path: Path, env: Mapping[str, str] = QUIET) -> Iterator[Server]:
    """A server that is ready, and gone afterwards with all that it left behind. StartFailedError when it does not start."""
    command = resolve_engine(spec.argv, python, os.environ)
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            command.argv,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env=command.environment(os.environ | env, spec.env),
            start_new_session=True,
        )
    server = Server(spec.base_url, log_path)
    try:
        _wait_until_healthy(server, process)
        yield server
    finally:
        _end(server, process)


def _wait_until_healthy(server: Server, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise StartFailedError(f"the engine ended with {process.returncode}:\n{server.log()}")
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{server.base_url}/health", timeout=5):
            return
        time.sleep(0.2)
    raise StartFailedError(f"the engine was not ready after {START_LIMIT_S:.0f} s:\n{server.log()}")


def _end(server: Server, process: subprocess.Popen[bytes]) -> None:
    """End it, and remove the shared memory that it used or announced."""
    files = {Path(name) for name in re.findall(r"Created mmap file (\S+)", server.log())}
    if process.poll() is None:
        leader = read_child_identity(process.pid)
        files |= read_shared_memory_files(member.pid for member in read_family(leader))
        end_family(leader, StopTimes())
        process.wait(timeout=10)
    remove_unused_files(files)
