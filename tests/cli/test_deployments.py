"""`up`, `status`, `logs`, `down` and `verify` where no engine runs; with one they are tested in tests/engine."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from longreach.cli.plan_file import read_plan

Longreach = Callable[..., tuple[int, str, str]]
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_a_dry_run_prints_every_command_and_starts_nothing(longreach: Longreach, tmp_path: Path) -> None:
    path = EXAMPLES / "two-instances.yaml"
    code, out, _ = longreach("up", "--dry-run", str(path))
    assert code == 0
    for instance in read_plan(path).instances:
        assert instance.shell in out
    assert not (tmp_path / "state").exists()


def test_a_dry_run_in_json_holds_argv_and_env(longreach: Longreach) -> None:
    _, out, _ = longreach("up", "--dry-run", "--json", str(EXAMPLES / "two-instances.yaml"))
    first = json.loads(out)["instances"][0]
    assert first["argv"][:2] == ["vllm", "serve"]
    assert first["env"] == {"CUDA_VISIBLE_DEVICES": "0,1"}


def test_up_says_how_to_get_an_engine_that_is_not_there(
    longreach: Longreach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = longreach("up", str(EXAMPLES / "dense.yaml"))
    assert code == 1
    assert "vllm" in err
    assert "fix:" in err


def test_nothing_running_is_said_by_status_and_down(longreach: Longreach) -> None:
    assert longreach("status")[0] == 0
    assert json.loads(longreach("status", "--json")[1]) == {"instances": []}
    assert longreach("down")[:2] == (0, "nothing was running\n")


def test_logs_of_an_unknown_deployment_are_an_error(longreach: Longreach) -> None:
    code, _, err = longreach("logs", "nothing")
    assert code == 1
    assert "nothing" in err
    assert longreach("logs")[0] == 2


@pytest.mark.parametrize("command", ["up", "verify"])
@pytest.mark.parametrize(
    ("content", "word"),
    [
        (None, "cannot read"),
        ("a: [", "not YAML"),
        ("- 1", "not a plan"),
        ("schema: longreach/plan/99", "longreach/plan/99"),
    ],
    ids=["missing", "malformed", "list", "other schema"],
)
def test_a_bad_plan_file_gets_advice(
    longreach: Longreach, tmp_path: Path, command: str, content: str | None, word: str
) -> None:
    path = tmp_path / "plan.yaml"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    code, _, err = longreach(command, str(path))
    assert code == 1
    assert word in err
    assert "longreach plan" in err


def test_verify_of_a_dead_server_fails_with_evidence(longreach: Longreach) -> None:
    code, out, _ = longreach("verify", "http://127.0.0.1:9", "--length", "1000", "--json")
    assert code == 1
    (item,) = json.loads(out)["items"]
    assert (item["name"], item["verdict"]) == ("server_answers", "fail")
    assert item["fix"] == "check that the server runs: curl -i http://127.0.0.1:9/v1/models"
    assert json.loads(longreach("verify", "127.0.0.1:9", "--json")[1])["items"] == [item]


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (("http://127.0.0.1:9", "--sampling", "{"), "JSON"),
        (("http://127.0.0.1:9", "--sampling", "[1]"), "object"),
        (("http://127.0.0.1:9", "--instance", "a"), "plan"),
        ((str(EXAMPLES / "dense.yaml"), "--instance", "a"), "no instance 'a'"),
        (("http://127.0.0.1:9", "--api-key-env", "LONGREACH_NO_SUCH_KEY"), "LONGREACH_NO_SUCH_KEY"),
    ],
    ids=["not json", "not an object", "instance of a url", "unknown instance", "no key"],
)
def test_verify_refuses_wrong_usage_before_it_sends(longreach: Longreach, argv: tuple[str, ...], word: str) -> None:
    code, _, err = longreach("verify", *argv)
    assert code == 2
    assert word in err


def test_the_log_of_a_start_that_failed_needs_no_name(longreach: Longreach, tmp_path: Path) -> None:
    log = tmp_path / "state" / "longreach" / "logs" / "box" / "main.log"
    log.parent.mkdir(parents=True)
    log.write_text("why it failed\n", encoding="utf-8")
    assert longreach("logs")[:2] == (0, "why it failed\n")
    (tmp_path / "state" / "longreach" / "logs" / "other").mkdir()
    (tmp_path / "state" / "longreach" / "logs" / "other" / "main.log").touch()
    code, _, err = longreach("logs")
    assert (code, "known are box, other" in err) == (2, True)


def test_the_overview_of_commands_is_not_cut_off(longreach: Longreach) -> None:
    assert "..." not in longreach("--help")[1].partition("Commands:")[2]
