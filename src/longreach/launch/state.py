"""What was started, on disk: one JSON file a deployment, so that `status` and `down` work from another shell."""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from cattrs.errors import BaseValidationError
from cattrs.preconf.json import make_converter

from longreach.engine.address import base_url, connect_host
from longreach.errors import InputFileError, UsageError
from longreach.host.files import write_text_atomically
from longreach.host.processes import ProcessIdentity

SCHEMA = "longreach/state/1"
_PRIVATE = 0o700
_converter = make_converter(forbid_extra_keys=True)


@dataclass(frozen=True, slots=True)
class InstanceState:
    """One engine. `shared_memory_files` were seen in use by its processes; `env` has its secrets replaced."""

    name: str
    process: ProcessIdentity
    host: str
    port: int
    argv: tuple[str, ...]
    env: dict[str, str]
    log_path: str
    started_at: datetime
    engine_version: str | None = None
    shared_memory_files: tuple[str, ...] = ()

    @property
    def connect_host(self) -> str:
        """The address that reaches it from this machine."""
        return connect_host(self.host)

    @property
    def base_url(self) -> str:
        """Where a client on this machine finds it."""
        return base_url(self.host, self.port)


@dataclass(frozen=True, slots=True)
class DeploymentState:
    """All engines that one `up` started."""

    deployment: str
    phase: Literal["starting", "ready"]
    instances: tuple[InstanceState, ...]
    plan_path: str | None = None
    schema: str = SCHEMA


@dataclass(frozen=True, slots=True)
class StateFolder:
    """Where deployments keep their state, locks and logs."""

    path: Path

    def state_path(self, deployment: str) -> Path:
        """`deployments/NAME.json`."""
        return self.path / "deployments" / f"{check_name(deployment)}.json"

    def lock_path(self, deployment: str) -> Path:
        """`deployments/NAME.lock`; it stays when the deployment goes, since removing a lock file races with its taker."""
        return self.path / "deployments" / f"{check_name(deployment)}.lock"

    def log_path(self, deployment: str, instance: str) -> Path:
        """`logs/NAME/INSTANCE.log`; it outlives the engine."""
        return self.path / "logs" / check_name(deployment) / f"{check_name(instance)}.log"

    def deployments(self) -> tuple[str, ...]:
        """The names that have a state file, sorted. InputFileError when the folder is there and cannot be listed."""
        try:
            entries = list((self.path / "deployments").iterdir())
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise _unusable(self.path / "deployments", error) from error
        return tuple(sorted(path.stem for path in entries if path.suffix == ".json" and is_name(path.stem)))

    def logged(self) -> tuple[str, ...]:
        """The names that have logs, running or not, sorted."""
        return tuple(sorted({path.parent.name for path in (self.path / "logs").glob("*/*.log")}))

    def prepare(self, deployment: str) -> None:
        """Make the folders, readable for their owner alone: logs may quote prompts. InputFileError where that is not allowed."""
        for folder in (self.state_path(deployment).parent, self.log_path(deployment, "x").parent):
            try:
                folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
            except OSError as error:
                raise _unusable(folder, error) from error


def default_state_folder() -> StateFolder:
    """`$XDG_STATE_HOME/longreach`, or what the system has in its place."""
    from platformdirs import user_state_path

    return StateFolder(user_state_path("longreach"))


def check_name(name: str) -> str:
    """A name that is safe as a file name; UsageError otherwise."""
    if not is_name(name):
        raise UsageError(
            f"'{name}' cannot be a deployment or instance name",
            "it becomes a file name: letters, digits, '.', '_' and '-' are allowed, and no '.' first",
            "rename it, for example to long-context",
        )
    return name


def is_name(name: str) -> bool:
    """Whether `check_name` takes it."""
    return bool(name) and not name.startswith(".") and all(letter.isalnum() or letter in "._-" for letter in name)


def write_state(folder: StateFolder, state: DeploymentState) -> None:
    """Write the deployment's file, atomically and for its owner alone."""
    text = json.dumps(_converter.unstructure(state), indent=2) + "\n"
    write_text_atomically(folder.state_path(state.deployment), text, mode=0o600)


def read_state(folder: StateFolder, deployment: str) -> DeploymentState | None:
    """The deployment's state; None when there is none. InputFileError when the file is of another schema or damaged."""
    path = folder.state_path(deployment)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path, str(error)) from error
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema != SCHEMA:
        raise _unreadable(path, f"its schema is {schema!r}, this version reads {SCHEMA!r}")
    try:
        return _converter.structure(content, DeploymentState)
    except (BaseValidationError, ValueError, TypeError) as error:
        raise _unreadable(path, str(error)) from error


def remove_state(folder: StateFolder, deployment: str) -> None:
    """Forget the deployment; its logs stay."""
    folder.state_path(deployment).unlink(missing_ok=True)


def _unusable(folder: Path, error: OSError) -> InputFileError:
    fix = "set XDG_STATE_HOME to a folder that may be read and written"
    return InputFileError(f"the state folder {folder} cannot be used", error.strerror or str(error), fix)


def _unreadable(path: Path, why: str) -> InputFileError:
    fix = f"end its engine by the pid in it with the version that wrote it, then: rm {path}"
    return InputFileError(f"state file {path} cannot be read", why, fix)
