"""The command of a published how-to, release by release: different findings, each right."""

from pathlib import Path

import pytest

from longreach.engine.launchfiles.recognise import find_commands
from longreach.engine.options import ServeCommand
from longreach.engine.release import get_release
from longreach.hardware.catalogue import parse_gpus
from longreach.hardware.machine import machine_from
from longreach.lint.check import Surroundings, lint_command
from longreach.lint.fix import fix_command
from longreach.lint.releases import judge_releases
from longreach.model.source import load_model

TEXT = (Path(__file__).parents[2] / "examples/how-to.sh").read_text(encoding="utf-8")
FOUND = find_commands(TEXT)[0]
COMMAND = ServeCommand(FOUND.argv, FOUND.env)
ORDER = parse_gpus("4xRTX4090")
AROUND = Surroundings(
    load_model("qwen3.6-27b", "w4a16"), machine_from(ORDER.gpu, ORDER.count, None, None, None), found=FOUND
)


def errors(version: str, around: Surroundings = AROUND) -> set[tuple[str, str]]:
    """Cause and the flag or key that is wrong, of each error."""
    findings = lint_command(COMMAND, get_release(version), around).findings
    return {(finding.cause, finding.what) for finding in findings if finding.severity == "error"}


def causes(version: str, around: Surroundings = AROUND) -> set[str]:
    return {cause for cause, _ in errors(version, around)}


def refused_flags(version: str) -> set[str]:
    return {
        what.split()[-1] for cause, what in errors(version) if cause in ("unknown_flag", "removed_flag", "flag_too_new")
    }


@pytest.mark.parametrize(
    ("version", "flags"),
    [
        ("0.10.2", {"--no-scheduler-reserve-full-isl", "--mm-ipc-gpu-memory-gb"}),
        ("0.20.2", {"--rope-scaling", "--mm-ipc-gpu-memory-gb"}),
        ("0.28.0", {"--rope-scaling"}),
        ("0.32.0", {"--rope-scaling"}),
    ],
)
def test_each_release_refuses_the_flags_that_it_lacks(version: str, flags: set[str]) -> None:
    assert refused_flags(version) == flags


def test_0_10_2_has_neither_the_connector_nor_the_draft() -> None:
    assert {"unknown_connector", "offload_hybrid_no_hma"} <= causes("0.10.2")
    assert "secondary_tiers_without_spec" not in causes("0.10.2")


def test_0_20_has_no_tiers_and_turns_the_hybrid_manager_off() -> None:
    assert "offload_hybrid_no_hma" in causes("0.20.2")
    assert "secondary_tiers_without_spec" not in causes("0.20.2")


@pytest.mark.parametrize("version", ["0.28.0", "0.32.0"])
def test_later_releases_ignore_the_disk_tier_and_its_threads(version: str) -> None:
    assert {"removed_flag", "max_len_over_derived", "secondary_tiers_without_spec"} <= causes(version)
    findings = lint_command(COMMAND, get_release(version), AROUND).findings
    ignored = [finding for finding in findings if finding.cause == "offload_key_ignored"]
    assert {finding.outcome for finding in ignored} == {"no_effect"}
    assert [finding.what.split()[0] for finding in ignored] == ["'n_read_threads'", "'n_write_threads'"]


def test_dense_model_of_its_arithmetic_cannot_hold_the_length() -> None:
    dense = Surroundings(load_model("qwen3-32b", "w4a16"), AROUND.machine, found=FOUND)
    assert {"kv_too_small_for_max_len", "mtp_without_draft_layers"} <= causes("0.32.0", dense)


def test_no_release_runs_it_as_written() -> None:
    assert [verdict.release for verdict in judge_releases(COMMAND, AROUND) if verdict.error is None] == []


@pytest.mark.parametrize("version", ["0.28.0", "0.32.0", "0.33.0"])
def test_mended_command_is_free_of_errors_and_keeps_the_length(version: str) -> None:
    fixed = fix_command(COMMAND, get_release(version), AROUND)
    assert not fixed.report.has_errors
    argv = fixed.report.command.argv
    assert argv[argv.index("--max-model-len") + 1] == "750000"
    assert "--rope-scaling" not in argv
    overrides = argv[argv.index("--hf-overrides") + 1]
    assert '"factor":3.0' in overrides
    assert '"max_position_embeddings":786432' in overrides
