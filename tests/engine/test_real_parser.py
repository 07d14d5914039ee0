"""The commands we render, read by the engine's own parser: accepted, and meaning what was meant."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.engine_room.option_strategies import engine_options

from longreach.engine.command import render_command
from longreach.engine.flags import FLAGS
from longreach.engine.json_flags import JSON_FLAGS
from longreach.engine.options import EngineOptions
from longreach.engine.registry import get_registry
from longreach.engine.release import get_release

ORACLE = Path(__file__).with_name("parser_oracle.py")
V32 = get_release("0.32.0")


def ask_parser(python: Path, commands: list[list[str]]) -> list[dict[str, Any]]:
    """One process for all commands: importing the engine takes most of the time."""
    done = subprocess.run(
        [python, ORACLE], input=json.dumps(commands), capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return answers


def draw_options(count: int) -> list[EngineOptions]:
    """The same options in every run. Free keys of compilation_config stay out: that class knows only its own."""
    drawn: list[EngineOptions] = []

    @settings(
        max_examples=count, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(engine_options())
    def draw(options: EngineOptions) -> None:
        drawn.append(replace(options, compilation_extra=()))

    draw()
    return drawn


def meant(options: EngineOptions) -> dict[str, Any]:
    """The parser's values for these options, for every field that was set."""
    values: dict[str, Any] = {"model_tag": options.model}
    for flag in FLAGS:
        value = getattr(options, flag.field)
        if flag.kind != "json" and flag.key is None and value is not None:
            values[flag.field] = value
    if options.served_model_name is not None:
        values["served_model_name"] = [options.served_model_name]
    if options.max_model_len_auto:
        values["max_model_len"] = -1
    for name in ("--speculative-config", "--hf-overrides", "--limit-mm-per-prompt", "--mm-processor-kwargs"):
        written = JSON_FLAGS[name].encode(options)
        if written is not None:
            values[name.removeprefix("--").replace("-", "_")] = written
    transfer = JSON_FLAGS["--kv-transfer-config"].encode(options)
    values["offload"] = transfer and list(transfer.values())
    values["cudagraph_mode"] = options.cudagraph_mode
    as_json: dict[str, Any] = json.loads(json.dumps(values))
    return as_json


PREFIX_VALUES: dict[str, tuple[str, object]] = {
    "int": ("7", 7),
    "size": ("7", 7),
    "length": ("7", 7),
    "float": ("0.5", 0.5),
    "text": ("auto", "auto"),
    "ints": ("7", [7]),
    "texts": ("7", ["7"]),
}


def prefix_commands() -> list[tuple[list[str], dict[str, object]]]:
    """Every flag of a scalar by its shortest prefix, and the value it must set."""
    rows = [flag for flag in FLAGS if flag.key is None and flag.kind in PREFIX_VALUES]
    commands = []
    for flag in rows:
        text, value = PREFIX_VALUES[flag.kind]
        wanted = [value] if flag.field == "served_model_name" else value
        commands.append((["serve", "m", shortest_prefix(flag.name), text], {flag.field: wanted}))
    return commands


def shortest_prefix(name: str) -> str:
    """The fewest letters that no other flag begins with; `--he` is also `--help`."""
    registry = get_registry(V32.version)
    prefixes = (name[:length] for length in range(3, len(name)))
    return next((prefix for prefix in prefixes if registry.spellings(prefix) == (name,) and prefix != "--h"), name)


@pytest.mark.vllm
def test_the_engine_s_parser_takes_every_command_and_means_what_was_meant(engine_python: Path) -> None:
    rendered = [(list(render_command(drawn, V32).argv[1:]), meant(drawn)) for drawn in draw_options(60)]
    commands = rendered + prefix_commands()
    differences = []
    for (command, wanted), parsed in zip(
        commands, ask_parser(engine_python, [words for words, _ in commands]), strict=True
    ):
        got = {name: parsed.get(name) for name in wanted}
        unlike = {name: (got[name], wanted[name]) for name in wanted if got[name] != wanted[name]}
        if unlike:
            differences.append(f"{command}\n  {parsed.get('error') or unlike}")
    assert not differences, f"{len(differences)} of {len(commands)} differ:\n" + "\n".join(differences[:5])
