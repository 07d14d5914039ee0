"""Values that cannot be are told once, and nothing is computed from them."""

import time

import pytest
from tests.rules.commands import command

from longreach.cli.planning import find_machine
from longreach.engine.release import get_release
from longreach.lint.check import Surroundings, lint_command
from longreach.lint.values import LintReport
from longreach.model.source import load_model


def lint(line: str, gpus: str | None = "2xRTX4090", version: str = "0.33.0") -> LintReport:
    machine = None if gpus is None else find_machine(gpus=gpus, link=None, ram=None, numa=None)
    return lint_command(command(line), get_release(version), Surroundings(load_model("qwen3-8b"), machine))


@pytest.mark.parametrize("gpus", ["2xRTX4090", None])
@pytest.mark.parametrize(
    "flag",
    [
        "-tp 0",
        "-pp 0",
        "-dp 0",
        "--decode-context-parallel-size 0",
        "--prefill-context-parallel-size 0",
        "--gpu-memory-utilization nan",
        "--gpu-memory-utilization 1e9",
        "--kv-offloading-size inf",
        "--cpu-offload-gb nan",
        f"--max-model-len {'9' * 400}",
        f"--max-num-batched-tokens {'9' * 400}",
        "-tp 100000000",
        "-pp 99999999",
        f"--block-size {'9' * 20}",
    ],
)
def test_a_value_out_of_range_is_all_that_is_said_of_it(flag: str, gpus: str | None) -> None:
    started = time.monotonic()
    causes = [finding.cause for finding in lint(f"m {flag}", gpus).findings if finding.severity == "error"]
    assert causes == ["value_out_of_range"]
    assert time.monotonic() - started < 1


def test_a_large_split_is_judged_at_once() -> None:
    started = time.monotonic()
    assert lint("m -tp 65535 -pp 65536").has_errors
    assert time.monotonic() - started < 1


@pytest.mark.parametrize("depth", [300, 5000])
@pytest.mark.parametrize("flag", ["--hf-overrides", "--speculative-config", "--rope-scaling", "--lora-modules"])
def test_json_nested_beyond_reason_is_unreadable(flag: str, depth: int) -> None:
    nested = f'{{"a":{"[" * depth}{"]" * depth}}}'
    assert lint(f"m {flag} '{nested}'").has_errors


def test_a_dotted_key_nested_beyond_reason_is_a_text() -> None:
    assert not lint(f"m --hf-overrides.a {'[' * 5000}").has_errors


def test_what_the_release_lacks_counts_for_nothing() -> None:
    assert [finding.code for finding in lint("m --prefill-context-parallel-size x", version="0.11.2").findings][:1] == [
        "LR937"
    ]


_YARN = '{"rope_type":"yarn","factor":%s,"original_max_position_embeddings":32768}'


@pytest.mark.parametrize("flag", ["--rope-scaling '%s'", "--hf-overrides '{\"rope_scaling\":%s}'"])
@pytest.mark.parametrize(
    ("cause", "factor", "length"), [("yarn_not_needed", 4, 32768), ("yarn_factor_too_small", 2, 131072)]
)
def test_the_flag_that_carries_yarn_is_named(flag: str, cause: str, factor: int, length: int) -> None:
    line = f"m {flag % (_YARN % factor)} --max-model-len {length}"
    (found,) = (one for one in lint(line, "1xH100", "0.10.2").findings if one.cause == cause)
    assert flag.split(maxsplit=1)[0] in found.fix
