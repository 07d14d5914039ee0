"""Every way out beyond a rule's own edit: the error is gone, and as much as can be of the command is left."""

from collections.abc import Iterator

import pytest
from tests.rules.cases_foreign import line
from tests.rules.commands import written

from longreach.engine.options import ServeCommand
from longreach.lint.check import Surroundings
from longreach.lint.fix import fix_command
from longreach.lint.mends import MENDED_CAUSES
from longreach.lint.values import FixedCommand
from longreach.rules.registry import KINDS
from longreach.rules.written import WrittenCommand

_MTP = '{"method": "mtp", "num_speculative_tokens": 1}'
_OLD_ROPE = '{"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}}'
_DRAFT = '{"model": "qwen2.5-0.5b", "num_speculative_tokens": 3}'
_NESTED = '{"text_config": {"max_position_embeddings": 64000}}'
_RAISED = "--hf-overrides '{\"rope_theta\": 5000000}' --max-model-len 131072"
_DEPTH = '{"num_speculative_tokens": 3}'
_HYBRID_OFFLOAD = "--kv-offloading-backend native --kv-offloading-size 80"


def fixed(asked: WrittenCommand) -> FixedCommand:
    words = [token for use in asked.parsed.uses for token in use.tokens]
    command = ServeCommand(("vllm", "serve", str(asked.parsed.model), *words), asked.env)
    return fix_command(command, asked.release, Surroundings(model=asked.model, machine=asked.machine))


_LONG = "--max-model-len 131072"
_SHORT = '{"rope_type":"yarn","factor":2.0,"original_max_position_embeddings":32768}'
_SHORT_OVER = (
    '--hf-overrides \'{"rope_parameters":{"rope_type":"yarn","rope_theta":1000000,"factor":2.0,'
    '"original_max_position_embeddings":32768},"max_position_embeddings":65536}\''
)


def cases() -> Iterator[tuple[str, WrittenCommand, str]]:
    yield "tp_not_dividing_heads", line("qwen3.8-27b", "-tp 16"), "--tensor-parallel-size 8"
    yield "tp_not_dividing_heads", line("gemma-3-27b", "-tp 3"), "--tensor-parallel-size 2"
    yield "more_workers_than_gpus", line("qwen3-32b", "-tp 8", gpus="4xH100"), "--tensor-parallel-size 4"
    yield "weights_exceed_gpu", line("llama-3.3-70b", "--max-model-len 4096", gpus="4xH100"), "--tensor-parallel-size 4"
    yield "kv_too_small_for_max_len", line("llama-3.1-8b", gpus="RTX4090"), "--max-model-len"
    yield "mamba_blocks_lt_max_num_seqs", line("qwen3.6-27b", "--max-model-len 8192", gpus="H100"), "--max-num-seqs"
    yield "offload_hybrid_no_hma", line("qwen3.5-27b", _HYBRID_OFFLOAD, "0.17.1"), ""
    yield (
        "pp_with_spec",
        line("deepseek-v3", f"-tp 2 -pp 2 --speculative-config '{_MTP}'", "0.27.1"),
        f"--tensor-parallel-size 4 --speculative-config {_MTP}",
    )
    yield "path_name_switches_method", written(f"/m/dflash-1/M --speculative-config '{_MTP}'"), ""
    yield "draft_vocabulary_differs", line("qwen3.6-27b", f"--speculative-config '{_DRAFT}'"), ""
    yield (
        "unknown_spec_method",
        written('m --speculative-config \'{"method": "dspark", "num_speculative_tokens": 1}\'', "0.23.0"),
        "",
    )
    yield (
        "backend_not_on_platform",
        line("qwen3-32b", "-tp 2 --attention-backend FLASHINFER", gpus="2xMI300X"),
        "-tp 2",
    )
    yield (
        "fp8_kv_on_flash_attention_2",
        line("qwen3-8b", "--attention-backend FLASH_ATTN --kv-cache-dtype fp8 --max-model-len 4096", gpus="RTX4090"),
        "--kv-cache-dtype fp8 --max-model-len 4096",
    )
    yield (
        "unknown_tool_parser",
        written("m --enable-auto-tool-choice --tool-call-parser glm47", "0.11.0"),
        "",
    )
    yield (
        "value_not_a_choice",
        line("qwen3-32b", "--enable-reasoning --reasoning-parser qwen3 --dtype auto", "0.8.5.post1"),
        "--dtype auto",
    )
    yield "value_not_a_choice", written("m --kv-cache-dtype turboquant_4bit_nc", "0.19.1"), "--kv-cache-dtype fp8"
    yield "value_unreadable", written("m --max-model-len auto --dtype auto", "0.11.0"), "--dtype auto"
    yield "rope_type_missing", written(f"m --hf-overrides '{_OLD_ROPE}'", "0.9.2"), '"rope_type":"yarn"'
    yield "flag_too_new", written("m --all2all-backend deepep_low_latency --dtype auto", "0.8.5.post1"), "--dtype auto"
    yield (
        "removed_flag",
        written("m --rope-scaling={rope_type:yarn,factor:4.0,original_max_position_embeddings:32768}", "0.13.0"),
        '"factor":4.0',
    )
    yield "more_workers_than_gpus", line("qwen3-8b", "-tp 2 -pp 2", gpus="1xH100"), ""
    yield "weights_exceed_gpu", line("llama-3.3-70b", "-tp 2 --gpu-memory-utilization 0.4", gpus="2xH200"), "-tp 2"
    yield "max_len_over_derived", line("qwen3-8b", _RAISED, "0.9.2"), "--max-model-len 40960"
    yield "hf_override_wrong_level", line("qwen3.6-27b", f"--hf-overrides '{_OLD_ROPE}'", "0.11.0"), ""
    yield "nested_override_unsupported", line("mistral-small-3.1-24b", f"--hf-overrides '{_NESTED}'", "0.10.2"), ""
    yield "visible_devices_below_world_size", written("CUDA_VISIBLE_DEVICES=0,1 m -tp 4"), "--tensor-parallel-size 2"
    yield "yarn_factor_too_small", line("qwen3-8b", f"--rope-scaling '{_SHORT}' {_LONG}", "0.10.2"), '"factor":4.0'
    yield "yarn_factor_too_small", line("qwen3-8b", f"{_SHORT_OVER} {_LONG}"), '"max_position_embeddings":131072'
    yield "value_out_of_range", written("m --gpu-memory-utilization 95"), "--gpu-memory-utilization 0.9"
    yield "spec_method_missing", line("qwen3.6-27b", f"--speculative-config '{_DEPTH}'"), '"method":"mtp"'
    yield "spec_method_missing", line("qwen3-32b", f"--speculative-config '{_DEPTH}'"), ""
    yield "fp8_blocks_split", line("Qwen/Qwen3.8-Flash-Next-FP8", "-tp 4"), "--tensor-parallel-size 1"


@pytest.mark.parametrize(("cause", "asked", "left"), [pytest.param(*case, id=case[0]) for case in cases()])
def test_error_is_mended_and_the_rest_is_kept(cause: str, asked: WrittenCommand, left: str) -> None:
    mended = fixed(asked)
    assert cause in {finding.cause for finding in mended.mended}
    assert [finding.what for finding in mended.report.findings if finding.severity == "error"] == []
    words = " ".join(mended.report.command.argv[3:])
    assert left in words if left else words == ""


def test_every_cause_that_is_mended_here_is_one_of_ours() -> None:
    assert {kind.cause for kind in KINDS} >= MENDED_CAUSES


def test_family_parser_of_the_release_comes_before_none() -> None:
    mended = fixed(line("qwen3-32b", "--enable-auto-tool-choice --tool-call-parser step3p5", "0.11.0"))
    assert mended.report.command.argv[3:] == ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")
