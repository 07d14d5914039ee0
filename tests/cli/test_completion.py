import click
import pytest
from click.shell_completion import ShellComplete

from longreach.cli.complete import complete_gpus
from longreach.cli.main import cli
from longreach.hardware.catalogue import parse_gpus


@pytest.mark.parametrize(
    ("words", "incomplete", "expected"),
    [
        ([], "pl", ["plan"]),
        (["plan"], "QWEN3.6", ["qwen3.6-27b", "qwen3.6-35b-a3b"]),
        (["plan", "m", "--gpus"], "4xrtx508", ["4xRTX5080"]),
        (["plan", "m", "--link"], "nvlink", ["nvlink", "nvlink-bridge"]),
        (["plan", "m", "--vllm"], "0.3", ["0.30.0", "0.31.0", "0.32.0", "0.33.0"]),
        (["plan", "m", "--kv-cache-dtype"], "fp8_e", ["fp8_e4m3", "fp8_e5m2"]),
        (["plan", "m", "--weights"], "n", ["nvfp4"]),
        (["explain"], "lr10", ["LR101", "LR102", "LR103", "LR104", "LR105", "LR106", "LR107", "LR108", "LR109"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_the_shell_completes_what_is_known(words: list[str], incomplete: str, expected: list[str]) -> None:
    found = ShellComplete(cli, {}, "longreach", "_LONGREACH_COMPLETE").get_completions(words, incomplete)
    assert sorted(item.value for item in found) == expected


def test_every_card_that_is_offered_is_understood() -> None:
    context = click.Context(click.Command("plan"))
    offered = [item.value for item in complete_gpus(context, click.Option(["--gpus"]), "2x")]
    assert len(offered) > 60
    assert all(parse_gpus(name).count == 2 for name in offered)
