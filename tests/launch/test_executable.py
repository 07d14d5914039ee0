from pathlib import Path

import pytest

from longreach.errors import EngineError
from longreach.launch.executable import ResolvedCommand, read_engine_version, resolve_engine

ARGV = ("vllm", "serve", "model")


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A virtual environment with vLLM in it, as far as its files go."""
    for name in ("vllm", "python"):
        command = tmp_path / "bin" / name
        command.parent.mkdir(exist_ok=True)
        command.write_text("#!/bin/sh\n")
        command.chmod(0o755)
    (tmp_path / "lib/python3.12/site-packages/vllm-0.32.0+cpu.dist-info").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("named", [".", "bin", "bin/python", "bin/vllm"])
def test_an_environment_can_be_named_by_any_of_its_parts(named: str, environment: Path) -> None:
    command = resolve_engine(ARGV, environment / named, environ={"PATH": "/nowhere"})
    assert command.argv == (str(environment / "bin/vllm"), "serve", "model")
    assert command.bin_dir == environment / "bin"


def test_path_is_searched_when_no_engine_is_named(environment: Path) -> None:
    command = resolve_engine(ARGV, None, environ={"PATH": f"/nowhere:{environment / 'bin'}"})
    assert command.argv[0] == str(environment / "bin/vllm")


def test_a_missing_engine_says_where_it_was_sought(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="'vllm' is not installed") as caught:
        resolve_engine(ARGV, tmp_path, environ={})
    assert str(tmp_path / "bin/vllm") in caught.value.why


def test_a_link_leads_to_the_environment_behind_it(environment: Path, tmp_path: Path) -> None:
    link = tmp_path / "links" / "vllm"
    link.parent.mkdir()
    link.symlink_to(environment / "bin/vllm")
    command = resolve_engine(ARGV, link, environ={})
    assert (command.argv[0], command.bin_dir) == (str(link), environment / "bin")
    assert read_engine_version(link) == "0.32.0+cpu"


def test_the_version_is_unknown_without_metadata(tmp_path: Path) -> None:
    assert read_engine_version(tmp_path / "bin/vllm") is None


def test_the_plan_wins_over_what_is_inherited_and_tools_are_found() -> None:
    command = ResolvedCommand(ARGV, Path("/venv/bin"))
    merged = command.environment({"PATH": "/usr/bin", "A": "shell", "B": "shell"}, {"A": "plan"})
    assert merged == {"PATH": "/venv/bin:/usr/bin", "A": "plan", "B": "shell"}
    assert command.environment(merged, {})["PATH"] == "/venv/bin:/usr/bin"


def test_an_environment_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught:
        resolve_engine(["vllm"], tmp_path / "nowhere", {})
    assert caught.value.why == f"there is nothing at {tmp_path / 'nowhere'}"


def test_without_a_named_environment_the_search_of_path_is_told(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught:
        resolve_engine(["no-such-vllm"], None, {"PATH": str(tmp_path)})
    assert "is on PATH" in caught.value.why
