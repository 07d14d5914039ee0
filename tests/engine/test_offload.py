"""Offload on the real engine: prompts that left the device come back from host memory and from disk, and nothing else changes.

Five engines: one that `up` starts from a plan and that is then killed, one that finds its files again, one with two ranks, a
hybrid, and one that is refused. What happens to each stands in a fixture; a test reads what was seen.
"""

import json
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.engine.servers import QUIET, Server, StartFailedError, free_port, serving
from tests.engine.shapes import SHAPES, Shape, write_config

from longreach.cli.from_plan import launch_specs
from longreach.engine.failures import find_failure
from longreach.engine.release import get_release
from longreach.hardware.spec import Machine
from longreach.host.processes import ProcessIdentity, read_family
from longreach.host.shared_memory import SHARED_MEMORY, read_shared_memory_files
from longreach.launch.down import down
from longreach.launch.spec import LaunchSpec
from longreach.launch.state import StateFolder, read_state
from longreach.launch.tiny_model import write_tiny_model
from longreach.launch.up import UpSettings, up
from longreach.launch.up_events import LaunchEvent
from longreach.model.source import load_model
from longreach.plan.build import make_plan
from longreach.plan.goal import Goal, NamedGoal
from longreach.units import MIB

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]

CPU = Machine(gpu=None, num_gpus=0, link=None, device_type="cpu")
BLOCK_SIZE = 128
PROMPT_TOKENS = 4000
HIT_TOKENS = PROMPT_TOKENS // BLOCK_SIZE * BLOCK_SIZE  # whole blocks
PROMPTS_ON_DEVICE, PROMPTS_ON_HOST = 4, 8  # what the sizes below hold at most, at 512 bytes a token
KV_BYTES, HOST_BYTES, DISK_BYTES = 8 * MIB, 16 * MIB, 64 * MIB
LATER = (900, 901)  # prompts of the first engine that a second one is asked again
HYBRID = dict(SHAPES[3].config) | {
    "vocab_size": 512,
    "num_hidden_layers": 4,
    "layer_types": ["linear_attention"] * 3 + ["full_attention"],
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "linear_num_key_heads": 1,
    "linear_num_value_heads": 2,
}
ORACLE = Path(__file__).with_name("offload_worker_oracle.py")


@dataclass(frozen=True, slots=True)
class Sent:
    """One prompt, its greedy answer, and where the engine found its tokens."""

    text: str
    cached_tokens: int
    hits: dict[str, int]


def prompt(number: int) -> list[int]:
    """Token ids like no other prompt's."""
    drawn = random.Random(number)
    return [drawn.randrange(3, 500) for _ in range(PROMPT_TOKENS)]


def send(server: Server, number: int) -> Sent:
    before = server.hit_tokens()
    answer = server.complete(prompt(number))
    after = server.hit_tokens()
    hits = {source: tokens - before.get(source, 0) for source, tokens in after.items()}
    return Sent(answer.text, answer.cached_tokens, {source: tokens for source, tokens in hits.items() if tokens})


def push_out(server: Server, numbers: range) -> None:
    """Fill a tier with prompts that nobody asks for again."""
    for number in numbers:
        server.complete(prompt(number), max_tokens=1)


def planned(model: Path, goal: Goal) -> LaunchSpec:
    goal = replace(goal, max_model_len=8192, max_num_batched_tokens=2048, model_path=str(model), port=free_port())
    plan = make_plan(load_model(str(model)), CPU, get_release("0.32.0"), [NamedGoal("main", goal)])
    (spec,) = launch_specs(plan)
    return spec


def with_connector(spec: LaunchSpec, **extra: object) -> LaunchSpec:
    """The command with more keys in the connector's extra_config; None removes one."""
    at = spec.argv.index("--kv-transfer-config") + 1
    config: dict[str, Any] = json.loads(spec.argv[at])
    merged = config["kv_connector_extra_config"] | extra
    config["kv_connector_extra_config"] = {key: value for key, value in merged.items() if value is not None}
    return replace(spec, argv=(*spec.argv[:at], json.dumps(config), *spec.argv[at + 1 :]))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A disk of its own, which a test may fill; without the right to mount one, a folder."""
    folder = tmp_path_factory.mktemp("disk")
    if os.geteuid() != 0:
        yield folder
        return
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "longreach-test", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@dataclass(frozen=True, slots=True)
class FirstRun:
    """An engine started by `up`, killed, and cleared away by `down`."""

    verdicts: Mapping[str, str]
    cold: Sent
    others: tuple[Sent, ...]  # prompts LATER, asked once
    from_host: Sent
    from_disk: Sent
    left_by_kill: set[Path]
    left_by_down: set[Path]


@pytest.fixture(scope="module")
def first_run(engine_python: Path, model: Path, disk: Path, tmp_path_factory: pytest.TempPathFactory) -> FirstRun:
    spec = planned(model, Goal(kv_cache_memory_bytes=KV_BYTES, cpu_tier_bytes=HOST_BYTES, disk_tier_path=str(disk)))
    settings = UpSettings("tiers", StateFolder(tmp_path_factory.mktemp("state")), engine_python)
    before = set(SHARED_MEMORY.iterdir())
    try:
        (report,) = up([spec], settings, ignore).instances
        server = Server(spec.base_url, Path(report.log_path))
        cold = send(server, 0)
        others = tuple(send(server, number) for number in LATER)
        push_out(server, range(1, 1 + PROMPTS_ON_DEVICE))
        from_host = send(server, 0)
        push_out(server, range(10, 11 + PROMPTS_ON_HOST))
        from_disk = send(server, 0)
        state = read_state(settings.folder, "tiers")
        assert state is not None
        kill_all(state.instances[0].process)
        left_by_kill = abandoned(before)
    finally:
        down([], settings.folder, ignore)
    verdicts = {one.fact: one.verdict for one in report.observations}
    return FirstRun(verdicts, cold, others, from_host, from_disk, left_by_kill, abandoned(before))


def ignore(event: LaunchEvent) -> None:
    """A listener that nothing is told to."""


def kill_all(leader: ProcessIdentity) -> None:
    """SIGKILL to every process of an engine: nothing gets to clean up."""
    family = read_family(leader)
    for member in family:
        os.kill(member.pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(member.pid) for member in family if psutil.pid_exists(member.pid)], timeout=10)


def abandoned(before: set[Path]) -> set[Path]:
    """Shared memory that is new and that no living process uses."""
    return set(SHARED_MEMORY.iterdir()) - before - read_shared_memory_files(psutil.pids())


def test_the_planned_tiers_start_as_planned(first_run: FirstRun) -> None:
    assert set(first_run.verdicts.values()) <= {"pass", "cannot tell"}
    assert first_run.verdicts["kv_capacity_tokens"] == "pass"


def test_an_evicted_prompt_comes_back_from_host_memory(first_run: FirstRun) -> None:
    assert first_run.cold.hits == {}
    assert first_run.from_host == Sent(first_run.cold.text, HIT_TOKENS, {"host": HIT_TOKENS})


def test_what_left_host_memory_comes_back_from_disk(first_run: FirstRun) -> None:
    assert first_run.from_disk == Sent(first_run.cold.text, HIT_TOKENS, {"disk": HIT_TOKENS})


def test_down_removes_the_region_of_a_killed_engine(first_run: FirstRun) -> None:
    assert any(path.name.startswith("vllm_offload_") for path in first_run.left_by_kill)
    assert first_run.left_by_down == set()


@dataclass(frozen=True, slots=True)
class SecondRun:
    """Another engine on the same folder, to which things then happen while it serves."""

    after_restart: Sent
    disk_full: Sequence[Sent]  # cold, from host memory, then with nowhere to be found
    files_cut_short: Sent
    folder_gone: Sent
    log: str


@pytest.fixture(scope="module")
def second_run(
    engine_python: Path, model: Path, disk: Path, first_run: FirstRun, tmp_path_factory: pytest.TempPathFactory
) -> SecondRun:
    goal = Goal(kv_cache_memory_bytes=KV_BYTES, cpu_tier_bytes=HOST_BYTES, disk_tier_path=str(disk))
    with serving(engine_python, planned(model, goal), tmp_path_factory.mktemp("second") / "engine.log") as server:
        after_restart = send(server, 0)
        disk_full = send_with_full_disk(server, disk) if disk.is_mount() else ()
        for path in disk.rglob("*.bin"):
            os.truncate(path, 100)
        files_cut_short = send(server, LATER[0])
        for folder in tuple(disk.iterdir()):
            folder.rename(folder.with_suffix(".away"))
            folder.touch()
        folder_gone = send(server, LATER[1])
        return SecondRun(after_restart, disk_full, files_cut_short, folder_gone, server.log())


def send_with_full_disk(server: Server, disk: Path) -> list[Sent]:
    rest = disk / "rest"
    rest.write_bytes(bytes(shutil.disk_usage(disk).free))
    sent = [send(server, 500)]
    push_out(server, range(501, 502 + PROMPTS_ON_DEVICE))
    sent.append(send(server, 500))
    push_out(server, range(510, 512 + PROMPTS_ON_HOST))
    sent.append(send(server, 500))
    rest.unlink()
    return sent


def test_a_new_engine_finds_the_files_of_the_last_one(first_run: FirstRun, second_run: SecondRun) -> None:
    assert second_run.after_restart == Sent(first_run.cold.text, HIT_TOKENS, {"disk": HIT_TOKENS})


def test_a_full_disk_costs_hits_and_no_answer(second_run: SecondRun) -> None:
    if not second_run.disk_full:
        pytest.skip("NOT RUN: a small disk that can be filled is mounted by root only")
    cold, from_host, nowhere = second_run.disk_full
    assert (cold.hits, from_host.hits, nowhere.hits) == ({}, {"host": HIT_TOKENS}, {})
    assert cold.text == from_host.text == nowhere.text


def test_files_cut_short_are_misses(first_run: FirstRun, second_run: SecondRun) -> None:
    assert second_run.files_cut_short == first_run.others[0]


def test_a_folder_that_goes_away_is_a_miss(first_run: FirstRun, second_run: SecondRun) -> None:
    assert second_run.folder_gone == first_run.others[1]


def test_a_disk_tier_that_cannot_be_written_is_refused_at_start(
    engine_python: Path, model: Path, tmp_path: Path
) -> None:
    in_the_way = tmp_path / "kv"
    in_the_way.touch()
    goal = Goal(kv_cache_memory_bytes=KV_BYTES, cpu_tier_bytes=HOST_BYTES, disk_tier_path=str(in_the_way))
    before, log_path = set(SHARED_MEMORY.iterdir()), tmp_path / "engine.log"
    with pytest.raises(StartFailedError), serving(engine_python, planned(model, goal), log_path):
        pass
    failure = find_failure(log_path.read_text(encoding="utf-8").splitlines())
    assert failure is not None
    assert failure.cause == "disk_tier_unusable"
    assert str(in_the_way) in failure.what
    assert abandoned(before) == set()


def test_two_ranks_put_their_halves_together_again(engine_python: Path, model: Path, tmp_path: Path) -> None:
    """With ARC, and chunks of two blocks: hits come in multiples of both."""
    goal = Goal(kv_cache_memory_bytes=KV_BYTES // 2, cpu_tier_bytes=HOST_BYTES, eviction_policy="arc", tp_size=2)
    spec = with_connector(planned(model, goal), blocks_per_chunk=2)
    with serving(engine_python, spec, tmp_path / "engine.log") as server:
        cold = send(server, 0)
        push_out(server, range(1, 2 + PROMPTS_ON_DEVICE))
        back = send(server, 0)
    whole_chunks = PROMPT_TOKENS // (2 * BLOCK_SIZE) * 2 * BLOCK_SIZE
    assert cold.hits == {}
    assert back == Sent(cold.text, whole_chunks, {"host": whole_chunks})


def test_a_hybrid_comes_back_from_host_memory(engine_python: Path, model: Path, tmp_path: Path) -> None:
    """Loaded by the way that needs no plugin: the spec named in the command."""
    hybrid = write_config(Shape("hybrid", HYBRID, 0, 0), tmp_path / "hybrid")
    for path in model.glob("tokenizer*.json"):
        shutil.copy(path, hybrid)
    goal = Goal(kv_cache_memory_bytes=16 * MIB, cpu_tier_bytes=128 * MIB, extra_args=("--load-format", "dummy"))
    named = {"spec_name": "CPUOffloadingSpecOnCpu", "spec_module_path": "longreach.vllm_ext.specs"}
    spec = with_connector(planned(hybrid, goal), **named)
    with serving(engine_python, spec, tmp_path / "engine.log", QUIET | {"VLLM_PLUGINS": ""}) as server:
        first, second, third = (send(server, 0) for _ in range(3))
        push_out(server, range(1, 6))
        back = send(server, 0)
    assert (first.hits, second.hits) == ({}, {})  # states are kept where a second prompt was found to branch off
    assert third.cached_tokens >= PROMPT_TOKENS * 3 // 4
    assert third == Sent(first.text, third.cached_tokens, {"device": third.cached_tokens})
    assert back == replace(third, hits={"host": third.cached_tokens})


def test_the_worker_copies_what_byte_arithmetic_copies(engine_python: Path) -> None:
    done = subprocess.run([engine_python, ORACLE, "0"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.rpartition("ANSWER ")[2])
    assert min(answer["pages"].values()) > 300
    causes = {name: find_failure([text]) for name, text in answer["refusals"].items()}
    assert len(causes) == 4
    assert {failure.cause for failure in causes.values() if failure} == {"offload_plugin_refuses"}
