"""The mended command: clean, minimal, and honest about what is left."""

import pytest
from tests.rules.commands import command

from longreach.engine.release import get_release
from longreach.lint.check import lint_command
from longreach.lint.fix import fix_command

TIERS = (
    '--kv-transfer-config \'{"kv_connector":"OffloadingConnector","kv_role":"kv_both","kv_connector_extra_config":'
    '{"cpu_bytes_to_use":8000000000,"secondary_tiers":[{"type":"fs","root_dir":"/kv"}],"n_read_threads":32}}\''
)
LINES = (
    "m --reasoning-parser qwen33",
    f"m {TIERS}",
    "VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve m",
    "m --hf-overrides '{\"tensor_parallel_size\":4}'",
    'm --speculative-config \'{"method":"eagle3","model":"d","num_speculative_tokens":2,"tensor_parallel_size":1}\'',
    "m --attention-backend FLASH_ATTN_MLA --kv-cache-dtype fp8",
)


@pytest.mark.parametrize("line", LINES)
def test_mended_command_has_no_error_and_mends_no_further(line: str) -> None:
    release = get_release("0.32.0")
    before = command(line)
    assert any(finding.edit for finding in lint_command(before, release).findings)
    fixed = fix_command(before, release)
    assert fixed.mended
    assert not [finding for finding in fixed.report.findings if finding.severity == "error"]
    again = fix_command(fixed.report.command, release)
    assert (again.mended, again.report.command) == ((), fixed.report.command)


def test_clean_command_is_left_alone() -> None:
    clean = command("m --max-model-len 32k --port $PORT --api-key $KEY")
    fixed = fix_command(clean, get_release("0.32.0"))
    assert (fixed.report.command, fixed.mended) == (clean, ())


def test_mended_offload_keeps_its_threads_where_they_count() -> None:
    fixed = fix_command(command(f"m {TIERS}"), get_release("0.32.0"))
    assert '"secondary_tiers":[{"type":"fs","root_dir":"/kv","n_read_threads":32}]' in fixed.report.command.argv[-1]
    assert '"spec_name":"TieringOffloadingSpec"' in fixed.report.command.argv[-1]


def test_choices_that_run_are_left_to_their_user() -> None:
    line = "m --no-enable-prefix-caching --no-scheduler-reserve-full-isl --reasoning-parser qwen33"
    fixed = fix_command(command(line), get_release("0.32.0"))
    assert {"--no-enable-prefix-caching", "--no-scheduler-reserve-full-isl"} <= set(fixed.report.command.argv)
    assert [finding.code for finding in fixed.mended] == ["LR930"]
