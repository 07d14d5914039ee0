import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.launch.conftest import Heard

from longreach.errors import EngineError
from longreach.host.processes import is_alive, read_family
from longreach.launch.down import down
from longreach.launch.failure import EngineStartError
from longreach.launch.spec import ExpectedEngine, LaunchSpec
from longreach.launch.state import InstanceState, read_state
from longreach.launch.status import status
from longreach.launch.up import UpSettings, up
from longreach.launch.up_events import EngineReady, EngineStarted, EngineStopped, LaunchEvent, PhaseBegan, StillStarting

MakeSpec = Callable[..., LaunchSpec]


def running(settings: UpSettings) -> tuple[InstanceState, ...]:
    state = read_state(settings.folder, settings.deployment)
    return state.instances if state else ()


def started_pids(heard: Heard) -> list[int]:
    return [event.pid for event in heard if isinstance(event, EngineStarted)]


def assert_nothing_runs(heard: Heard, settings: UpSettings) -> None:
    assert read_state(settings.folder, settings.deployment) is None
    assert heard.of(EngineStopped)
    for pid in started_pids(heard):
        assert not Path(f"/proc/{pid}").exists()


def test_an_engine_runs_on_after_up_and_ends_with_down(settings: UpSettings, make_spec: MakeSpec, heard: Heard) -> None:
    spec = replace(make_spec(), expected=ExpectedEngine(kv_capacity_tokens=10_240, max_concurrency=1.25))
    report = up([spec], settings, heard)
    (instance,) = report.instances
    assert [one.verdict for one in instance.observations] == ["pass", "pass"]
    assert instance.findings == ()
    (line,) = status(settings.folder)
    assert (line.life, line.health, line.pid, line.num_running, line.num_waiting) == ("alive", "ok", instance.pid, 2, 1)
    (end,) = down([], settings.folder, heard, settings.stop_times).instances
    assert (end.outcome, end.killed) == ("stopped", ())
    assert status(settings.folder) == ()
    assert_nothing_runs(heard, settings)


def test_the_phases_of_a_start_are_told_in_order(settings: UpSettings, make_spec: MakeSpec, heard: Heard) -> None:
    up([make_spec()], settings, heard)
    phases = [event.phase for event in heard if isinstance(event, PhaseBegan)]
    assert phases == ["weights", "kv_cache", "server", "ready"]
    assert heard.of(StillStarting)
    (ready,) = heard.of(EngineReady)
    assert isinstance(ready, EngineReady)
    assert [time.phase for time in ready.phases] == ["starting", "weights", "kv_cache", "server"]


def test_the_command_and_its_environment_are_those_of_the_plan(
    settings: UpSettings, make_spec: MakeSpec, heard: Heard
) -> None:
    spec = make_spec(VLLM_API_KEY="sk-secret")
    up([spec], settings, heard)
    (instance,) = running(settings)
    process = Path(f"/proc/{instance.process.pid}")
    assert tuple(process.joinpath("cmdline").read_text().split("\0")[-6:-1]) == (instance.argv[0], *spec.argv[1:])
    assert "VLLM_API_KEY=sk-secret" in process.joinpath("environ").read_text().split("\0")
    assert os.getsid(instance.process.pid) == instance.process.pid
    assert "sk-secret" not in settings.folder.state_path("box").read_text()
    assert instance.env["VLLM_API_KEY"] == "<hidden>"


def test_a_difference_is_a_finding_of_its_instance(settings: UpSettings, make_spec: MakeSpec, heard: Heard) -> None:
    spec = replace(make_spec(), expected=ExpectedEngine(kv_capacity_tokens=20_480, tensor_parallel_size=1))
    (instance,) = up([spec], settings, heard).instances
    assert [one.verdict for one in instance.observations] == ["fail", "pass"]
    (finding,) = instance.findings
    assert (finding.code, finding.instance) == ("LR601", "long")
    assert finding.what == "the engine's KV cache capacity in tokens is 10240, planned was 20480"


def test_a_refused_start_ends_with_the_decisive_line(settings: UpSettings, make_spec: MakeSpec, heard: Heard) -> None:
    with pytest.raises(EngineStartError, match="engine 'long' did not start") as caught:
        up([make_spec(mode="refuse")], settings, heard)
    assert caught.value.cause == "kv_too_small_for_max_len"
    assert "(0.03 GiB KV cache is needed" in caught.value.why
    assert "10112" in caught.value.fix
    assert_nothing_runs(heard, settings)


def test_a_crash_without_a_word_names_the_signal(settings: UpSettings, make_spec: MakeSpec, heard: Heard) -> None:
    with pytest.raises(EngineStartError, match="ended before it was ready, killed by SIGABRT"):
        up([make_spec(mode="crash")], settings, heard)
    assert_nothing_runs(heard, settings)


def test_shared_memory_of_a_failed_start_is_removed(settings: UpSettings, make_spec: MakeSpec, heard: Heard) -> None:
    segment = Path(f"/dev/shm/vllm_offload_test{os.getpid()}.mmap")
    with pytest.raises(EngineStartError):
        up([make_spec(mode="shared memory", FAKE_SEGMENT=str(segment))], settings, heard)
    assert not segment.exists()
    (stopped,) = heard.of(EngineStopped)
    assert isinstance(stopped, EngineStopped)
    assert stopped.removed_files == (segment,)


def test_a_silent_engine_is_given_up_with_what_it_was_doing(
    settings: UpSettings, make_spec: MakeSpec, heard: Heard
) -> None:
    quick = replace(settings, limits=replace(settings.limits, stall_s=0.3))
    with pytest.raises(EngineStartError, match=r"logged nothing for .* in phase 'weights'") as caught:
        up([make_spec(mode="silent")], quick, heard)
    assert "so it was waiting for something" in caught.value.why
    assert "--stall" in caught.value.fix
    assert_nothing_runs(heard, settings)


def test_the_deadline_grows_while_the_log_moves_but_not_for_ever(
    settings: UpSettings, make_spec: MakeSpec, heard: Heard
) -> None:
    quick = replace(settings, limits=replace(settings.limits, stall_s=0.4, total_s=1.0))
    with pytest.raises(EngineStartError, match=r"was not ready after 1\.0 s"):
        up([make_spec(mode="chatty")], quick, heard)
    assert_nothing_runs(heard, settings)


def test_two_instances_start_together_and_fail_together(
    settings: UpSettings, make_spec: MakeSpec, heard: Heard
) -> None:
    up([make_spec("long"), make_spec("short")], settings, heard)
    assert [line.name for line in status(settings.folder)] == ["long", "short"]
    down(["box"], settings.folder, heard, settings.stop_times)
    assert_nothing_runs(heard, settings)
    with pytest.raises(EngineStartError, match="'short'"):
        up([make_spec("long"), make_spec("short", mode="refuse")], settings, heard)
    assert_nothing_runs(heard, settings)


def test_a_taken_port_is_found_before_the_start(settings: UpSettings, make_spec: MakeSpec, heard: Heard) -> None:
    spec = make_spec()
    with (
        socket.create_server((spec.host, spec.port)),
        pytest.raises(EngineError, match=f"port {spec.port} of engine 'long' is in use") as caught,
    ):
        up([spec], settings, heard)
    assert f"pid {os.getpid()}" in caught.value.why
    assert heard == []


def test_another_server_on_the_port_is_not_taken_for_the_engine(
    settings: UpSettings, make_spec: MakeSpec, heard: Heard
) -> None:
    spec = make_spec(mode="silent")
    with ExitStack() as servers:

        def listen(event: LaunchEvent) -> None:
            heard(event)
            if isinstance(event, PhaseBegan):
                servers.enter_context(answering_server(spec.port))

        with pytest.raises(EngineError, match="is answered by another server") as caught:
            up([spec], settings, listen)
    assert f"pid {os.getpid()}" in caught.value.why
    assert_nothing_runs(heard, settings)


@contextmanager
def answering_server(port: int) -> Iterator[None]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", port), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield
        server.shutdown()
        thread.join()


def test_a_deployment_runs_once(settings: UpSettings, make_spec: MakeSpec, heard: Heard) -> None:
    up([make_spec()], settings, heard)
    with pytest.raises(EngineError, match="deployment 'box' already runs") as caught:
        up([make_spec()], settings, heard)
    assert caught.value.fix.endswith("--name NAME")
    assert len(running(settings)) == 1


def test_what_a_dead_deployment_left_makes_way(settings: UpSettings, make_spec: MakeSpec, heard: Heard) -> None:
    up([make_spec(mode="with a helper")], settings, heard)
    (first,) = running(settings)
    os.kill(first.process.pid, signal.SIGKILL)
    os.waitpid(first.process.pid, 0)
    (orphan,) = read_family(first.process)
    assert status(settings.folder)[0].orphan_pids == (orphan.pid,)
    up([make_spec()], settings, heard)
    assert not is_alive(orphan)
    assert running(settings)[0].process != first.process


def test_a_stubborn_engine_is_killed(settings: UpSettings, make_spec: MakeSpec, heard: Heard) -> None:
    times = replace(settings.stop_times, leader_s=0.2)
    up([make_spec(mode="stubborn")], settings, heard)
    (end,) = down(["box"], settings.folder, heard, times).instances
    assert (end.outcome, len(end.killed), end.survivors) == ("stopped", 1, ())


def test_a_listener_that_fails_does_not_save_the_engine(settings: UpSettings, make_spec: MakeSpec) -> None:
    seen = Heard()

    def broken(event: LaunchEvent) -> None:
        if isinstance(event, EngineStarted):
            seen(event)
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        up([make_spec()], settings, broken)
    assert read_state(settings.folder, "box") is None
    assert not any(Path(f"/proc/{pid}").exists() for pid in started_pids(seen))


def test_down_ends_the_orphans_of_a_killed_server(settings: UpSettings, make_spec: MakeSpec, heard: Heard) -> None:
    up([make_spec(mode="with a helper")], settings, heard)
    (first,) = running(settings)
    os.kill(first.process.pid, signal.SIGKILL)
    os.waitpid(first.process.pid, 0)
    (end,) = down([], settings.folder, heard, settings.stop_times).instances
    assert (end.life_before, end.outcome) == ("dead", "stopped")
    assert read_family(first.process) == ()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_signal_during_the_start_ends_the_engine(
    number: signal.Signals, settings: UpSettings, make_spec: MakeSpec, heard: Heard
) -> None:
    def listen(event: LaunchEvent) -> None:
        heard(event)
        if isinstance(event, EngineStarted):
            os.kill(os.getpid(), number)

    with pytest.raises(KeyboardInterrupt):
        up([make_spec(mode="silent")], settings, listen)
    assert_nothing_runs(heard, settings)


def test_a_second_signal_does_not_wait_for_a_stubborn_engine(
    settings: UpSettings, make_spec: MakeSpec, heard: Heard
) -> None:
    patient = replace(settings, stop_times=replace(settings.stop_times, leader_s=60.0))

    def listen(event: LaunchEvent) -> None:
        heard(event)
        if isinstance(event, PhaseBegan):
            os.kill(os.getpid(), signal.SIGINT)
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        up([make_spec(mode="silent and stubborn")], patient, listen)
    assert time.monotonic() - started < 10
    assert_nothing_runs(heard, settings)


def test_in_the_foreground_an_engine_that_dies_is_an_error(
    settings: UpSettings, make_spec: MakeSpec, heard: Heard
) -> None:
    with pytest.raises(EngineError, match="ended while it was serving, exit code 3"):
        up([make_spec(mode="die later")], replace(settings, foreground=True), heard)
    assert_nothing_runs(heard, settings)


IN_ANOTHER_SHELL = """
import sys
from pathlib import Path
from longreach.launch.spec import LaunchSpec
from longreach.launch.state import StateFolder
from longreach.launch.up import UpSettings, up
from longreach.launch.up_events import EngineReady, PhaseBegan
folder, engine, port, mode, foreground = sys.argv[1:]
spec = LaunchSpec("long", ("vllm", "serve", "tiny", "--port", port), "127.0.0.1", int(port), {"FAKE_MODE": mode})
def tell(event):
    if isinstance(event, (EngineReady, PhaseBegan)):
        print(getattr(event, "phase", "ready"), flush=True)
up([spec], UpSettings("box", StateFolder(Path(folder)), Path(engine), foreground=foreground == "yes"), tell)
"""


def up_in_another_shell(settings: UpSettings, port: int, mode: str, *, foreground: bool) -> subprocess.Popen[str]:
    where = [str(settings.folder.path), str(settings.engine), str(port), mode, "yes" if foreground else "no"]
    return subprocess.Popen([sys.executable, "-c", IN_ANOTHER_SHELL, *where], stdout=subprocess.PIPE, text=True)


def wait_for(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    assert word in [line.strip() for line in iter(process.stdout.readline, f"{word}\n")] + [word]


@pytest.mark.parametrize(
    ("mode", "foreground", "word"), [("silent", False, "weights"), ("", True, "ready")], ids=["starting", "foreground"]
)
def test_down_asks_the_up_of_another_shell_to_stop(
    mode: str, foreground: bool, word: str, settings: UpSettings, make_spec: MakeSpec, heard: Heard
) -> None:
    with up_in_another_shell(settings, make_spec().port, mode, foreground=foreground) as other:
        wait_for(other, word)
        (instance,) = running(settings)
        with pytest.raises(EngineError, match="is being started or stopped by another command"):
            up([make_spec()], settings, heard)
        (end,) = down(["box"], settings.folder, heard, settings.stop_times).instances
        assert end.outcome == "stopped"
        assert not is_alive(instance.process)
        assert read_state(settings.folder, "box") is None
        assert (other.wait(timeout=10) == 0) == foreground


def test_down_ends_what_a_killed_up_left_behind(settings: UpSettings, make_spec: MakeSpec, heard: Heard) -> None:
    with up_in_another_shell(settings, make_spec().port, "silent", foreground=False) as other:
        wait_for(other, "weights")
        other.kill()
        other.wait()
    (line,) = status(settings.folder)
    assert (line.life, line.health) == ("alive", "starting")
    (end,) = down(["box"], settings.folder, heard, settings.stop_times).instances
    assert end.outcome == "stopped"
    assert read_state(settings.folder, "box") is None
