from collections.abc import Callable
from threading import Timer

import pytest
from tests.launch.conftest import Heard

from longreach.engine.events import KvCapacityLine
from longreach.errors import InputFileError
from longreach.launch.down import down
from longreach.launch.failure import EngineStartError
from longreach.launch.read_logs import follow_logs, read_logs
from longreach.launch.spec import LaunchSpec
from longreach.launch.state import StateFolder
from longreach.launch.up import UpSettings, up

MakeSpec = Callable[..., LaunchSpec]


def test_the_log_outlives_its_engine_and_marks_what_matters(
    settings: UpSettings, make_spec: MakeSpec, heard: Heard
) -> None:
    up([make_spec()], settings, heard)
    down([], settings.folder, heard, settings.stop_times)
    records = read_logs(settings.folder, "box", 100)
    (capacity,) = [record for record in records if isinstance(record.event, KvCapacityLine)]
    assert (capacity.instance, capacity.event) == ("long", KvCapacityLine("CPU", 10_240, 8192, 1.25))
    assert len(read_logs(settings.folder, "box", 2)) == 2
    said = [record for record in records if record.event is not None]
    assert list(read_logs(settings.folder, "box", 2, only_events=True)) == said[-2:]
    assert list(follow_logs(settings.folder, "box", 1, only_events=True)) == said[-1:]
    assert read_logs(settings.folder, "box", 0) == ()
    assert tuple(follow_logs(settings.folder, "box", num_lines=2)) == records[-2:]
    assert list(follow_logs(settings.folder, "box")) == []


def test_the_log_of_a_failed_start_stays_and_the_one_before_it_too(
    settings: UpSettings, make_spec: MakeSpec, heard: Heard
) -> None:
    up([make_spec()], settings, heard)
    down([], settings.folder, heard, settings.stop_times)
    with pytest.raises(EngineStartError):
        up([make_spec(mode="refuse")], settings, heard)
    assert "Engine core initialization failed" in read_logs(settings.folder, "box", 1)[0].text
    earlier = settings.folder.log_path("box", "long").with_name("long.log.old")
    assert "Application startup complete" in earlier.read_text()


def test_following_ends_with_the_engine(settings: UpSettings, make_spec: MakeSpec, heard: Heard) -> None:
    up([make_spec()], settings, heard)
    log_path = settings.folder.log_path("box", "long")

    def finish() -> None:
        with log_path.open("a") as log:
            log.write("one last word")
        down([], settings.folder, heard, settings.stop_times)

    timer = Timer(0.2, finish)
    timer.start()
    lines = [record.text for record in follow_logs(settings.folder, "box", poll_s=0.02)]
    timer.join()
    assert lines[-1] == "one last word"


def test_a_deployment_that_never_ran_has_no_log(folder: StateFolder) -> None:
    folder.prepare("box")
    folder.log_path("box", "long").write_text("")
    with pytest.raises(InputFileError, match="no log of a deployment 'bix'") as caught:
        read_logs(folder, "bix", 10)
    assert caught.value.fix == "did you mean 'box'?"
