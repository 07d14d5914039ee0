"""Start one engine in a session of its own, its output in a file, and know what becomes of it."""

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from longreach.errors import EngineError, InputFileError
from longreach.host.processes import ProcessIdentity, read_child_identity, read_family, reap_child
from longreach.host.shared_memory import read_shared_memory_files
from longreach.launch.executable import ResolvedCommand, read_engine_version
from longreach.launch.spec import LaunchSpec, hide_secrets
from longreach.launch.state import InstanceState


@dataclass(slots=True)
class EngineProcess:
    """A started engine. It changes as the process does: `poll` learns its exit code, `look_around` its shared memory."""

    spec: LaunchSpec
    process: ProcessIdentity
    argv: tuple[str, ...]
    log_path: Path
    started_at: datetime
    version: str | None
    exit_code: int | None = None
    family: tuple[ProcessIdentity, ...] = ()
    shared_memory_files: set[Path] = field(default_factory=set)

    def poll(self) -> int | None:
        """The exit code once it has ended (negative: the signal), else None."""
        if self.exit_code is None:
            self.exit_code = reap_child(self.process.pid)
        return self.exit_code

    def look_around(self) -> tuple[ProcessIdentity, ...]:
        """Its living processes; remembers the shared memory they use, since after a crash nobody can tell any more."""
        self.family = read_family(self.process)
        self.shared_memory_files |= read_shared_memory_files(member.pid for member in self.family)
        return self.family

    def state(self) -> InstanceState:
        """What other shells must know of it."""
        return InstanceState(
            name=self.spec.name,
            process=self.process,
            host=self.spec.host,
            port=self.spec.port,
            argv=self.argv,
            env=hide_secrets(self.spec.env),
            log_path=str(self.log_path),
            started_at=self.started_at,
            engine_version=self.version,
            shared_memory_files=tuple(sorted(str(path) for path in self.shared_memory_files)),
        )


def start_engine(
    spec: LaunchSpec, command: ResolvedCommand, environ: Mapping[str, str], log_path: Path
) -> EngineProcess:
    """Start it. The log of an earlier start is kept beside the new one as `NAME.log.old`.

    Raises EngineError when the system refuses to run the command, InputFileError when its log cannot be written.
    """
    _prepare_log(log_path)
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    output = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log_path), append, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    try:
        # Not subprocess.Popen: it complains when it is dropped while its child lives on, which is what `up` is for.
        pid = os.posix_spawn(
            command.argv[0],
            command.argv,
            command.environment(environ, spec.env),
            file_actions=[*output, *_closings()],
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE),
        )
    except OSError as error:
        why = f"{error.strerror}: {command.argv[0]}"
        fix = "run it by hand with --version to see what is wrong with that environment"
        raise EngineError("the engine's command cannot be run", why, fix) from error
    return EngineProcess(
        spec=spec,
        process=read_child_identity(pid),
        argv=command.argv,
        log_path=log_path,
        started_at=datetime.now(UTC),
        version=read_engine_version(Path(command.argv[0])),
    )


def _prepare_log(log_path: Path) -> None:
    try:
        if log_path.exists():
            log_path.replace(log_path.with_name(f"{log_path.name}.old"))
        log_path.touch(mode=0o600)
    except OSError as error:
        fix = "set XDG_STATE_HOME to a folder that may be written"
        raise InputFileError(f"the log {log_path} cannot be written", error.strerror or str(error), fix) from error


def _closings() -> list[tuple[int, int]]:
    """Close what our own starter left open (a CI's or make's descriptors): an engine that holds it would keep that waiting."""
    descriptors = [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]
    return [(os.POSIX_SPAWN_CLOSE, number) for number in descriptors if number > 2 and _is_inheritable(number)]


def _is_inheritable(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:  # the one that listed the folder, closed since
        return False
