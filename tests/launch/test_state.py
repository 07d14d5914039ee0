import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from longreach.errors import InputFileError, UsageError
from longreach.host.processes import ProcessIdentity
from longreach.launch.state import (
    DeploymentState,
    InstanceState,
    StateFolder,
    check_name,
    default_state_folder,
    read_state,
    remove_state,
    write_state,
)

STATE = DeploymentState(
    deployment="box",
    phase="ready",
    instances=(
        InstanceState(
            name="long",
            process=ProcessIdentity(4321, 987654, "boot"),
            host="0.0.0.0",
            port=8000,
            argv=("/venv/bin/vllm", "serve", "model"),
            env={"VLLM_API_KEY": "<hidden>"},
            log_path="/logs/long.log",
            started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
            engine_version="0.32.0",
            shared_memory_files=("/dev/shm/psm_0f1e2d3c",),
        ),
    ),
    plan_path="/plans/plan.yaml",
)


@pytest.fixture
def folder(tmp_path: Path) -> StateFolder:
    folder = StateFolder(tmp_path)
    folder.prepare("box")
    return folder


def test_what_is_written_is_read_back(folder: StateFolder) -> None:
    write_state(folder, STATE)
    assert read_state(folder, "box") == STATE
    assert folder.deployments() == ("box",)
    assert folder.state_path("box").stat().st_mode & 0o777 == 0o600


def test_forgetting_is_idempotent(folder: StateFolder) -> None:
    write_state(folder, STATE)
    for _ in range(2):
        remove_state(folder, "box")
    assert read_state(folder, "box") is None
    assert folder.deployments() == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"schema": "longreach/state/9"}', "its schema is 'longreach/state/9'"),
        ("[]", "its schema is None"),
        ('{"schema": "longr', "Unterminated string"),
        ('{"schema": "longreach/state/1", "deployment": "box"}', "While structuring DeploymentState"),
    ],
    ids=["another version", "not a state", "cut short", "fields missing"],
)
def test_a_damaged_file_is_an_error_that_names_it(text: str, why: str, folder: StateFolder) -> None:
    folder.state_path("box").write_text(text)
    with pytest.raises(InputFileError, match="cannot be read") as caught:
        read_state(folder, "box")
    assert why in caught.value.why
    assert f"rm {folder.state_path('box')}" in caught.value.fix


def test_an_unknown_key_is_not_dropped_silently(folder: StateFolder) -> None:
    write_state(folder, STATE)
    content = json.loads(folder.state_path("box").read_text())
    folder.state_path("box").write_text(json.dumps(content | {"surprise": 1}))
    with pytest.raises(InputFileError):
        read_state(folder, "box")


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "..", "a b"])
def test_names_that_are_no_file_names_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be a deployment"):
        check_name(name)


def test_the_state_folder_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_state_folder().path == tmp_path / "longreach"


def test_a_state_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputFileError, match="cannot be used") as caught:
        StateFolder(tmp_path / "file").prepare("box")
    assert "XDG_STATE_HOME" in caught.value.fix


def test_what_is_no_state_file_of_ours_is_passed_over(folder: StateFolder) -> None:
    write_state(folder, STATE)
    for name in ("..json", "a b.json", "box.lock", "notes.txt"):
        (folder.path / "deployments" / name).touch()
    assert folder.deployments() == ("box",)


def test_a_folder_that_cannot_be_listed_is_not_an_empty_one(tmp_path: Path) -> None:
    assert StateFolder(tmp_path).deployments() == ()
    (tmp_path / "deployments").touch()
    with pytest.raises(InputFileError, match="deployments cannot be used"):
        StateFolder(tmp_path).deployments()


def test_a_state_file_that_nests_without_end_is_unreadable(folder: StateFolder) -> None:
    folder.state_path("box").write_text("[" * 100_000)
    with pytest.raises(InputFileError, match="cannot be read"):
        read_state(folder, "box")


def test_deployments_with_logs_are_known_after_their_end(folder: StateFolder) -> None:
    assert folder.logged() == ()
    folder.log_path("box", "long").touch()
    folder.log_path("box", "short").touch()
    assert folder.logged() == ("box",)
