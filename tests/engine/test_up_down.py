"""The whole life of the real engine: up, what it says against what was planned, status, down, and nothing left of it."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from longreach.host.processes import read_family
from longreach.host.shared_memory import read_shared_memory_files
from longreach.launch.down import down
from longreach.launch.failure import EngineStartError
from longreach.launch.read_logs import read_logs
from longreach.launch.spec import ExpectedEngine, LaunchSpec
from longreach.launch.state import StateFolder, read_state
from longreach.launch.status import status
from longreach.launch.tiny_model import write_tiny_model
from longreach.launch.up import UpSettings, up
from longreach.launch.up_events import EngineStarted, LaunchEvent, PhaseBegan

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]

KV_BYTES = 20 * 2**20
BLOCK_SIZE = 128  # what the CPU platform takes
NUM_BLOCKS = KV_BYTES // (BLOCK_SIZE * 2 * 2 * 2 * 32 * 2)  # tokens x layers x (K, V) x KV heads x head_dim x bf16
KV_CAPACITY_TOKENS = NUM_BLOCKS * BLOCK_SIZE
SHARED_MEMORY = Path("/dev/shm")
NOTHING_EXPECTED = ExpectedEngine()


class Heard(list[LaunchEvent]):
    """A listener that keeps what it hears."""

    def __call__(self, event: LaunchEvent) -> None:
        self.append(event)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def settings(engine_python: Path, tmp_path: Path) -> Iterator[UpSettings]:
    settings = UpSettings("tiny", StateFolder(tmp_path / "state"), engine_python)
    yield settings
    down([], settings.folder, Heard())


def spec_of(model: Path, max_model_len: int, expected: ExpectedEngine = NOTHING_EXPECTED) -> LaunchSpec:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    argv = ["vllm", "serve", str(model), "--host", "127.0.0.1", "--port", str(port), "--enforce-eager"]
    argv += ["--max-model-len", str(max_model_len), "--kv-cache-memory-bytes", str(KV_BYTES), "--max-num-seqs", "4"]
    return LaunchSpec("tiny", tuple(argv), "127.0.0.1", port, {"VLLM_CPU_OMP_THREADS_BIND": "0"}, expected)


def test_the_engine_runs_as_planned_and_leaves_nothing(settings: UpSettings, model: Path) -> None:
    expected = ExpectedEngine(
        kv_capacity_tokens=KV_CAPACITY_TOKENS,
        max_concurrency=KV_CAPACITY_TOKENS / 16_384,
        num_blocks=NUM_BLOCKS,
        block_size=BLOCK_SIZE,
        max_model_len=16_384,
        kv_cache_dtype="auto",
        tensor_parallel_size=1,
        pipeline_parallel_size=1,
        data_parallel_size=1,
        release="0.32.0",
        attention_backend="CPU_ATTN",
    )
    before = set(SHARED_MEMORY.iterdir())
    (instance,) = up([spec_of(model, 16_384, expected)], settings, Heard()).instances
    verdicts = {one.fact: one.verdict for one in instance.observations}
    assert verdicts.pop("attention_backend") == "cannot tell"  # a CPU build does not print it
    assert set(verdicts.values()) == {"pass"}, instance.observations
    assert instance.findings == ()
    assert [time.phase for time in instance.phases] == ["starting", "weights", "kv_cache", "server"]
    (line,) = status(settings.folder)
    assert (line.life, line.health, line.num_running, line.kv_cache_usage) == ("alive", "ok", 0, 0)
    assert line.engine_version in ("0.32.0", "0.32.0+cpu")
    state = read_state(settings.folder, "tiny")
    assert state is not None
    family = read_family(state.instances[0].process)
    assert len(family) >= 3  # server, engine core, worker
    (end,) = down([], settings.folder, Heard()).instances
    assert (end.outcome, end.killed, end.survivors) == ("stopped", (), ())
    assert read_family(state.instances[0].process) == ()
    assert abandoned(before) == set()
    assert read_logs(settings.folder, "tiny", 100)


def test_a_start_with_too_little_kv_memory_names_cause_and_cure(settings: UpSettings, model: Path) -> None:
    before, heard = set(SHARED_MEMORY.iterdir()), Heard()
    with pytest.raises(EngineStartError) as caught:
        up([spec_of(model, KV_CAPACITY_TOKENS + 1)], settings, heard)
    assert caught.value.cause == "kv_too_small_for_max_len"
    assert "To serve at least one request with the model's max seq len (40961)" in caught.value.why
    assert f"--max-model-len {KV_CAPACITY_TOKENS - BLOCK_SIZE}" in caught.value.fix
    assert_nothing_runs(heard, settings)
    assert abandoned(before) == set()


def test_ctrl_c_while_weights_load_leaves_nothing(settings: UpSettings, model: Path) -> None:
    before, heard = set(SHARED_MEMORY.iterdir()), Heard()

    def listen(event: LaunchEvent) -> None:
        heard(event)
        if isinstance(event, PhaseBegan) and event.phase == "weights":
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        up([spec_of(model, 16_384)], settings, listen)
    assert_nothing_runs(heard, settings)
    assert abandoned(before) == set()


def assert_nothing_runs(heard: Heard, settings: UpSettings) -> None:
    assert read_state(settings.folder, "tiny") is None
    (started,) = [event for event in heard if isinstance(event, EngineStarted)]
    living = (process for process in psutil.process_iter(["status"]) if process.info["status"] != psutil.STATUS_ZOMBIE)
    assert started.pid not in {os.getsid(process.pid) for process in living if process.is_running()}


def abandoned(before: set[Path]) -> set[Path]:
    """Shared memory that is new and that no living process uses: what an engine left. Others may come and go meanwhile."""
    return set(SHARED_MEMORY.iterdir()) - before - read_shared_memory_files(psutil.pids())
