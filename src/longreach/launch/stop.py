"""End an engine that was started here or by an earlier shell, with everything that it leaves."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from longreach.engine.events import OffloadFile
from longreach.engine.logs import parse_log_line
from longreach.host.processes import StopResult, StopTimes, end_family, read_family, reap_child
from longreach.host.shared_memory import read_shared_memory_files, remove_unused_files
from longreach.launch.log_tail import read_last_lines
from longreach.launch.state import InstanceState


@dataclass(frozen=True, slots=True)
class EngineEnd:
    """What ending one engine came to."""

    result: StopResult
    removed_files: tuple[Path, ...]


def end_engine(instance: InstanceState, times: StopTimes, is_hurried: Callable[[], bool] = lambda: False) -> EngineEnd:
    """End its processes, if they are still its own, and remove the shared memory they used. Harmless when all is gone."""
    files = {Path(name) for name in instance.shared_memory_files}
    files |= read_shared_memory_files(member.pid for member in read_family(instance.process))
    files |= _files_in_log(Path(instance.log_path))
    result = end_family(instance.process, times, is_hurried)
    reap_child(instance.process.pid)
    return EngineEnd(result, remove_unused_files(files))


def _files_in_log(log_path: Path) -> set[Path]:
    """The offload regions that the engine announced: after a crash nothing else knows them."""
    said = (parse_log_line(line) for line in read_last_lines(log_path))
    return {Path(event.path) for event in said if isinstance(event, OffloadFile)}
