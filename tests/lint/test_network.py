"""Who can reach the server is told alike, whether the model is known or not."""

import pytest
from tests.rules.commands import command

from longreach.engine.launchfiles.recognise import find_commands
from longreach.engine.options import ServeCommand
from longreach.engine.release import get_release
from longreach.lint.check import Surroundings, lint_command
from longreach.model.source import load_model

V32 = get_release("0.32.0")


@pytest.mark.parametrize("model", [None, "qwen3-8b"])
@pytest.mark.parametrize(("host", "told"), [("", True), ("--host 0.0.0.0", True), ("--host 127.0.0.1", False)])
def test_a_server_on_every_interface_is_told(model: str | None, host: str, told: bool) -> None:
    around = Surroundings(load_model(model) if model else None)
    causes = {finding.cause for finding in lint_command(command(f"m {host}"), V32, around).findings}
    assert ("open_to_network" in causes) is told


@pytest.mark.parametrize(("options", "told"), [("-p 8000:8000", False), ("--network host", True)])
def test_a_container_decides_who_reaches_it(options: str, told: bool) -> None:
    found = find_commands(f"docker run {options} vllm/vllm-openai:v0.32.0 org/m")[0]
    report = lint_command(ServeCommand(found.argv, found.env), V32, Surroundings(found=found))
    assert ("open_to_network" in {finding.cause for finding in report.findings}) is told


def test_a_container_with_too_few_gpus_is_told() -> None:
    found = find_commands("docker run --gpus 2 vllm/vllm-openai:v0.32.0 org/m -tp 4")[0]
    report = lint_command(ServeCommand(found.argv, found.env), V32, Surroundings(found=found))
    assert "visible_devices_below_world_size" in {finding.cause for finding in report.findings}
