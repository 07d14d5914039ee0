"""Lines of named models and cards on which the rules for foreign commands speak, and near ones."""

from functools import cache
from typing import Any

from tests.rules.case import Case
from tests.rules.commands import written
from tests.rules.deployments import HYBRID, with_model

from longreach.cli.planning import find_machine
from longreach.hardware.spec import Machine
from longreach.lint.deployment import deployment_of
from longreach.model.source import load_model
from longreach.rules import (
    capacity,
    multimodal,
    outside_share,
    scheduler,
    split_blocks,
    written_backend,
    written_drafts,
    written_hybrid,
    written_kv,
    written_platform,
    written_quantization,
    written_rope,
    written_weights,
)
from longreach.rules.deployment import Deployment
from longreach.rules.written import WrittenCommand


@cache
def _machine(gpus: str) -> Machine:
    return find_machine(gpus=gpus, link=None, ram=None, numa=None)


def line(
    model: str, words: str = "", version: str = "0.32.0", gpus: str | None = None, **around: Any
) -> WrittenCommand:
    """A command for a model of the catalogue, on a machine where one is named."""
    machine = _machine(gpus) if gpus is not None else None
    return written(f"{model} {words}", version, model=load_model(model), machine=machine, **around)


def deployed(model: str, words: str = "", version: str = "0.32.0", gpus: str | None = None) -> Deployment:
    """The deployment that the line amounts to."""
    found = deployment_of(line(model, words, version, gpus))
    assert found is not None
    return found


def overridden(model: str, overrides: str, words: str = "", version: str = "0.32.0") -> WrittenCommand:
    """A command with these overrides of the model's config."""
    return line(model, f"--hf-overrides '{overrides}' {words}", version)


_YARN = '"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768'
_YARN_VL = '"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 262144'
_OFFLOAD = "--kv-offloading-backend native --kv-offloading-size 80"
_LMCACHE = '--kv-transfer-config \'{"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}\''

_DEPLOYMENTS = (
    Case(
        split_blocks.fp8_blocks_split,
        deployed("Qwen/Qwen3-235B-A22B-FP8", "-tp 8"),
        (
            deployed("Qwen/Qwen3-235B-A22B-FP8", "-tp 8 --enable-expert-parallel"),
            deployed("Qwen/Qwen3-235B-A22B-FP8", "-tp 4"),
            deployed("RedHatAI/Qwen3-30B-A3B-FP8-dynamic", "-tp 4"),
            deployed("Qwen/Qwen3-235B-A22B", "-tp 8"),
        ),
    ),
    Case(
        capacity.model_too_new,
        deployed("qwen3-vl-235b-a22b", "-tp 8", "0.10.2"),
        (deployed("qwen3-vl-235b-a22b", "-tp 8"), with_model(HYBRID, architecture_releases=("0.33.0", "0.33.0"))),
    ),
    Case(
        capacity.mamba_blocks_may_be_too_few,
        deployed("nemotron-3-nano-30b-a3b", "--max-model-len 131072", gpus="H100"),
        (
            deployed("nemotron-3-nano-30b-a3b", "--max-model-len 131072 --max-num-seqs 512", gpus="H100"),
            deployed("nemotron-3-nano-30b-a3b", "--max-model-len 131072 --enforce-eager", gpus="H100"),
            deployed("nemotron-3-nano-30b-a3b", "--max-model-len 131072", gpus="H200"),
            deployed("qwen3.6-27b", "--max-model-len 32768", gpus="H100"),
            deployed("qwen3-8b", gpus="H100"),
        ),
    ),
    Case(
        multimodal.mm_options_refused_on_text_model,
        deployed("qwen3-32b", "--limit-mm-per-prompt '{\"image\": 2}'", "0.9.2"),
        (
            deployed("qwen3-32b", "--limit-mm-per-prompt '{\"image\": 2}'", "0.10.1.1"),
            deployed("qwen2.5-vl-7b", "--limit-mm-per-prompt '{\"image\": 2}'", "0.9.2"),
        ),
    ),
    Case(
        scheduler.batched_tokens_below_block,
        deployed("qwen3.6-27b", "-tp 2 --enable-prefix-caching --max-num-batched-tokens 512", "0.23.0"),
        (
            deployed("qwen3.6-27b", "-tp 2 --max-num-batched-tokens 512", "0.23.0"),
            deployed("qwen3.6-27b", "-tp 2 --enable-prefix-caching --max-num-batched-tokens 512", "0.27.1"),
            deployed("qwen3.6-27b", "-tp 2 --enable-prefix-caching --max-num-batched-tokens 2048", "0.23.0"),
            deployed("qwen3-32b", "-tp 2 --enable-prefix-caching --max-num-batched-tokens 8", "0.23.0"),
        ),
    ),
    Case(
        scheduler.default_batch_may_be_below_block,
        deployed("qwen3.5-122b-a10b", "-tp 2 --enable-prefix-caching", "0.17.1"),
        (
            deployed("qwen3.5-122b-a10b", "-tp 2 --enable-prefix-caching", "0.17.1", gpus="2xH200"),
            deployed("qwen3.5-122b-a10b", "-tp 4 --enable-prefix-caching", "0.17.1"),
        ),
    ),
    Case(
        outside_share.graphs_outside_profile,
        deployed("qwen3-30b-a3b", "-tp 4 --max-model-len 1024", "0.8.5.post1", gpus="4xA10"),
        (
            deployed("qwen3-30b-a3b", "-tp 4 --max-model-len 1024 --enforce-eager", "0.8.5.post1", gpus="4xA10"),
            deployed("qwen3-30b-a3b", "-tp 4 --max-model-len 1024", "0.20.2", gpus="4xA10"),
            deployed("qwen3-30b-a3b", "-tp 4 --max-model-len 1024 --gpu-memory-utilization 0.8", "0.9.2", gpus="4xA10"),
            deployed("qwen3-30b-a3b", "-tp 4 --max-model-len 1024", "0.8.5.post1"),
        ),
    ),
    Case(
        outside_share.sampler_outside_share,
        deployed("qwen3-8b", "--gpu-memory-utilization 0.97", "0.10.2", gpus="H100"),
        (
            deployed("qwen3-8b", "--gpu-memory-utilization 0.97 --max-num-seqs 64", "0.10.2", gpus="H100"),
            deployed("qwen3-8b", "", "0.10.2", gpus="H100"),
            deployed("qwen3-8b", "--gpu-memory-utilization 0.97", "0.10.2"),
        ),
    ),
    Case(
        outside_share.length_defaults_to_native,
        deployed("glm-5.3", "-tp 8 --kv-cache-dtype fp8", "0.28.0"),
        (
            deployed("glm-5.3", "-tp 8 --kv-cache-dtype fp8 --max-model-len 32768", "0.28.0"),
            deployed("glm-5.3", "-tp 8 --kv-cache-dtype fp8 --max-model-len auto", "0.28.0"),
            deployed("qwen3-8b"),
            deployed("glm-5.3", "-tp 8 --max-model-len $LENGTH", "0.28.0"),
        ),
    ),
)

_ROPE = (
    Case(
        written_rope.positions_raised_without_rope,
        overridden("qwen3-32b", '{"max_position_embeddings": 131072}', "--max-model-len 131072"),
        (
            overridden("qwen3-32b", '{"max_position_embeddings": 131072}', "--max-model-len 32768"),
            overridden(
                "qwen3-32b",
                f'{{"rope_parameters": {{"rope_theta": 1000000, {_YARN}}}, "max_position_embeddings": 131072}}',
                "--max-model-len 131072",
            ),
            overridden("llama-3.1-8b", '{"max_position_embeddings": 262144}', "--max-model-len 262144"),
            line("qwen3-32b", "--max-model-len 131072"),
        ),
    ),
    Case(
        written_rope.hf_override_wrong_level,
        overridden("qwen3-vl-8b", f'{{"rope_parameters": {{{_YARN_VL}}}}}', "--max-model-len 1000000", "0.29.0"),
        (
            overridden("qwen3-vl-8b", f'{{"text_config": {{"rope_parameters": {{{_YARN_VL}}}}}}}'),
            overridden("qwen3-32b", f'{{"rope_parameters": {{{_YARN}}}}}'),
            overridden("qwen3-vl-8b", '{"architectures": ["Qwen3VLForConditionalGeneration"]}'),
            overridden("qwen3-vl-8b", "$OVERRIDES"),
        ),
    ),
    Case(
        written_rope.rope_theta_dropped,
        overridden("qwen3-30b-a3b", f'{{"rope_parameters": {{{_YARN}}}, "max_position_embeddings": 131072}}'),
        (
            overridden("qwen3-30b-a3b", f'{{"rope_parameters": {{"rope_theta": 1000000, {_YARN}}}}}'),
            overridden("qwen3-32b", f'{{"rope_parameters": {{{_YARN}}}}}'),  # its class fills in just its own base
            overridden("qwen3-30b-a3b", f'{{"rope_scaling": {{{_YARN}}}}}', version="0.10.2"),
            overridden("qwen3-vl-8b", f'{{"text_config": {{"rope_parameters": {{{_YARN_VL}}}}}}}'),
        ),
    ),
    Case(
        written_rope.rope_key_of_later_release,
        overridden("qwen3-32b", f'{{"rope_parameters": {{"rope_theta": 1000000, {_YARN}}}}}', version="0.11.0"),
        (
            overridden("qwen3-32b", f'{{"rope_scaling": {{{_YARN}}}}}', version="0.11.0"),
            overridden("qwen3-32b", f'{{"rope_parameters": {{{_YARN}}}}}', version="0.12.0"),
        ),
    ),
    Case(
        written_rope.rope_key_of_earlier_release,
        overridden("qwen3-32b", f'{{"rope_scaling": {{"rope_theta": 1000000, {_YARN}}}}}', version="0.15.1"),
        (
            overridden("qwen3-32b", f'{{"rope_scaling": {{{_YARN}}}}}', version="0.32.0"),
            overridden("qwen3-32b", f'{{"rope_parameters": {{{_YARN}}}}}', version="0.15.1"),
        ),
    ),
    Case(
        written_rope.yarn_without_max_position_embeddings,
        overridden(
            "qwen3-30b-a3b", f'{{"rope_parameters": {{"rope_theta": 1000000, {_YARN}}}}}', "--max-model-len 131072"
        ),
        (
            overridden("qwen3-30b-a3b", f'{{"rope_parameters": {{{_YARN}}}}}', "--max-model-len 131072", "0.29.0"),
            overridden(
                "qwen3-30b-a3b",
                f'{{"rope_parameters": {{{_YARN}}}, "max_position_embeddings": 131072}}',
                "--max-model-len 131072",
            ),
            overridden("qwen3-30b-a3b", f'{{"rope_parameters": {{{_YARN}}}}}', "--max-model-len $LENGTH"),
        ),
    ),
    Case(
        written_rope.nested_override_unsupported,
        overridden("mistral-small-3.1-24b", '{"text_config": {"max_position_embeddings": 64000}}', version="0.10.2"),
        (
            overridden(
                "mistral-small-3.1-24b", '{"text_config": {"max_position_embeddings": 64000}}', version="0.11.2"
            ),
            overridden("qwen3-32b", f'{{"rope_scaling": {{{_YARN}}}}}', version="0.10.2"),
        ),
    ),
    Case(
        written_rope.yarn_without_longer_length,
        overridden("qwen3-30b-a3b", f'{{"rope_parameters": {{"rope_theta": 1000000, {_YARN}}}}}'),
        (
            overridden("qwen3-30b-a3b", f'{{"rope_parameters": {{{_YARN}}}}}', "--max-model-len 131072"),
            overridden("qwen3-30b-a3b", f'{{"rope_parameters": {{{_YARN}}}}}', version="0.29.0"),
        ),
    ),
)

_HYBRIDS = (
    Case(
        written_hybrid.offload_hybrid_no_hma,
        line("qwen3.5-27b", _OFFLOAD, "0.17.1"),
        (
            line("qwen3.5-27b", _OFFLOAD, "0.22.1"),
            line("qwen3.5-27b", f"{_OFFLOAD} --no-disable-hybrid-kv-cache-manager", "0.21.0"),
            line("qwen3-32b", _OFFLOAD, "0.17.1"),
            line("qwen3.5-27b", _LMCACHE.replace("LMCacheConnectorV1", "LMCacheMPConnector"), "0.23.0"),
        ),
    ),
    Case(
        written_hybrid.offload_hybrid_assert,
        line("qwen3.6-27b", f"{_OFFLOAD} --enable-prefix-caching", "0.22.1"),
        (
            line("qwen3.6-27b", f"{_OFFLOAD} --enable-prefix-caching", "0.23.0"),
            line("qwen3.6-27b", _OFFLOAD, "0.22.1"),
            line("qwen3-32b", f"{_OFFLOAD} --enable-prefix-caching", "0.22.1"),
        ),
    ),
    Case(
        written_hybrid.hybrid_prefix_cache_off,
        line("qwen3.5-27b", version="0.25.1"),
        (
            line("qwen3.5-27b", version="0.26.0"),
            line("qwen3.5-27b", "--no-enable-prefix-caching", "0.25.1"),
            line("qwen3-32b", version="0.25.1"),
        ),
    ),
    Case(
        written_hybrid.hybrid_prefix_cache_ignored,
        line("qwen3-next-80b-a3b", "--enable-prefix-caching", "0.11.0"),
        (
            line("qwen3-next-80b-a3b", "--enable-prefix-caching", "0.15.1"),
            line("nemotron-h-8b", "--enable-prefix-caching", "0.12.0"),
            line("qwen3-32b", "--enable-prefix-caching", "0.11.0"),
        ),
    ),
    Case(
        written_hybrid.hybrid_block_size,
        line("qwen3.8-27b", "--block-size 128 --enable-prefix-caching --mamba-cache-mode align", "0.27.1"),
        (
            line("qwen3.8-27b", "--block-size 128 --no-enable-prefix-caching", "0.27.1"),
            line("qwen3.8-27b", "--block-size 128", "0.25.1"),
            line("deepseek-v4-flash", "--block-size 256"),
        ),
    ),
    Case(
        written_hybrid.hybrid_manager_disabled,
        line("gemma-3-27b", "--disable-hybrid-kv-cache-manager"),
        (
            line("gemma-3-27b"),
            line("qwen3-32b", "--disable-hybrid-kv-cache-manager"),
            line("qwen3.5-27b", "--disable-hybrid-kv-cache-manager"),
        ),
    ),
    Case(
        written_hybrid.mamba_all_mode_unsupported,
        line("qwen3.5-27b", "--mamba-cache-mode all --enable-prefix-caching", "0.22.1"),
        (
            line("nemotron-h-8b", "--mamba-cache-mode all --enable-prefix-caching", "0.22.1"),
            line("qwen3.5-27b", "--mamba-cache-mode align", "0.22.1"),
        ),
    ),
)

_WEIGHTS = (
    Case(
        written_quantization.quantization_mismatch,
        line("deepseek-v3", "--quantization awq"),
        (
            line("deepseek-v3", "--quantization fp8"),
            line("deepseek-v3", "--quantization auto_round"),
            line("qwen3-32b", "--quantization fp8"),
            line("deepseek-v3"),
            line("Qwen/Qwen3-32B-AWQ", "--quantization awq_marlin"),
            line("Qwen/Qwen3-32B-FP8", "--quantization fp8"),
        ),
    ),
    Case(
        written_quantization.quantization_contradicts_name,
        written("PATH/nm-testing/Qwen3-30B-A3B-NVFP4 --quantization modelopt_fp4", "0.10.1.1"),
        (
            written("nvidia/Qwen3-30B-A3B-NVFP4 --quantization modelopt_fp4", "0.10.1.1"),
            written("PATH/nm-testing/Qwen3-30B-A3B-NVFP4", "0.10.1.1"),
            written("/models/Qwen3-32B-AWQ --quantization awq"),
            written("/models/Qwen3-32B-GPTQ-NVFP4 --quantization modelopt_fp4"),
            written("/models/Qwen3-8B-FP8 --quantization compressed-tensors"),
            written("Qwen/Qwen3-32B --quantization fp8"),
        ),
    ),
    Case(
        written_quantization.gguf_beside_quantized_config,
        written("PATH/DeepSeek-R1-0528-UD-IQ2_XXS-00001-of-00005.gguf --quantization gguf", "0.8.5.post1"),
        (
            written("PATH/DeepSeek-R1.gguf --hf-config-path PATH/r1-bf16", "0.8.5.post1"),
            written("PATH/Qwen3-8B-Q4_K_M.gguf --quantization gguf", "0.9.2"),
        ),
    ),
    Case(
        written_quantization.quantization_needs_newer_gpu,
        line("qwen3-32b", "--quantization fp8", "0.12.0", gpus="4xT4"),
        (
            line("qwen3-32b", "--quantization fp8", "0.15.1", gpus="4xT4"),
            line("qwen3-32b", "--quantization fp8", "0.12.0", gpus="4xA10"),
            line("qwen3-32b", "--quantization fp8", "0.12.0"),
            line("qwen3-32b", "", "0.12.0", gpus="4xT4"),
        ),
    ),
    Case(
        written_weights.expert_parallel_without_experts,
        line("qwen2.5-0.5b", "-tp 2 --enable-expert-parallel"),
        (line("qwen3-30b-a3b", "-tp 2 --enable-expert-parallel"), line("qwen2.5-0.5b", "-tp 2")),
    ),
    Case(
        written_quantization.kernel_needs_float16,
        written("Qwen/Qwen3-32B-AWQ --quantization awq --dtype bfloat16", "0.20.2"),
        (
            written("Qwen/Qwen3-32B-AWQ --dtype bfloat16", "0.20.2"),
            written("Qwen/Qwen3-32B-AWQ --quantization awq --dtype half", "0.20.2"),
            written("Qwen/Qwen3-32B-AWQ --quantization awq --dtype bfloat16", "0.24.0"),
            written("org/Qwen3-32B-int4-AutoRound --quantization awq --dtype bfloat16", "0.20.2"),
        ),
    ),
    Case(
        written_weights.float16_not_supported,
        line("gemma-3-27b", "--dtype half"),
        (
            line("gemma-3-27b", "--dtype bfloat16"),
            line("gemma-3-1b", "--dtype half", "0.10.2"),
            line("qwen3-32b", "--dtype float16"),
        ),
    ),
    Case(
        written_weights.remote_code_not_trusted,
        line("moonshotai/Kimi-K2-Instruct", "-tp 16"),
        (
            line("moonshotai/Kimi-K2-Instruct", "-tp 16 --trust-remote-code"),
            line("moonshotai/Kimi-K2-Instruct", "-tp 16 --tokenizer /models/tokenizer"),
            line("kimi-dev-72b", "-tp 8"),
            line("qwen3-32b"),
        ),
    ),
    Case(
        written_weights.pp_unsupported_arch,
        line("minimax-text-01", "-tp 8 -pp 2", "0.20.2"),
        (
            line("minimax-text-01", "-tp 8", "0.20.2"),
            line("gpt-oss-120b", "-pp 2", "0.11.0"),
            line("minimax-text-01", "-tp 8 -pp $STAGES", "0.20.2"),
        ),
    ),
    Case(
        written_weights.cpu_offload_ignored_v2_runner,
        line("qwen3-32b", "--cpu-offload-gb 12", "0.25.1"),
        (
            line("qwen3-32b", "--cpu-offload-gb 12", "0.28.0"),
            line("qwen3-30b-a3b", "--cpu-offload-gb 12", "0.25.1"),
            line("qwen3-32b", "--cpu-offload-gb 12", "0.21.0"),
        ),
    ),
)

_KV = (
    Case(
        written_kv.sparse_kv_dtype_on_other_model,
        line("qwen3-32b", "--kv-cache-dtype fp8_ds_mla"),
        (line("deepseek-v3.2", "--kv-cache-dtype fp8_ds_mla"), line("qwen3-32b", "--kv-cache-dtype fp8")),
    ),
    Case(
        written_kv.sparse_kv_dtype_model_unknown,
        written("m --kv-cache-dtype fp8_ds_mla", "0.16.0"),
        (line("deepseek-v3.2", "--kv-cache-dtype fp8_ds_mla"), written("m --kv-cache-dtype fp8")),
    ),
    Case(
        written_kv.packed_kv_on_latents,
        line("deepseek-v3", "--kv-cache-dtype nvfp4"),
        (line("qwen3-32b", "--kv-cache-dtype nvfp4"), line("deepseek-v3", "--kv-cache-dtype fp8")),
    ),
    Case(
        written_kv.turboquant_on_hybrid,
        line("qwen3.5-27b", "--kv-cache-dtype turboquant_4bit_nc", "0.20.2"),
        (
            line("qwen3.5-27b", "--kv-cache-dtype turboquant_4bit_nc", "0.27.1"),
            line("qwen3-32b", "--kv-cache-dtype turboquant_4bit_nc", "0.20.2"),
        ),
    ),
    Case(
        written_kv.kv_dtype_on_forced_backend,
        line("gemma-4-31b", "--kv-cache-dtype turboquant_4bit_nc", "0.22.1"),
        (
            line("gemma-4-31b", "--kv-cache-dtype turboquant_4bit_nc", "0.27.1", gpus="H100"),
            line("gemma-4-31b", "--kv-cache-dtype fp8", "0.22.1"),
            line("gemma-3-27b", "--kv-cache-dtype turboquant_4bit_nc", "0.22.1"),
        ),
    ),
    Case(
        written_kv.nvfp4_kv_consumer,
        line("qwen3-32b", "--kv-cache-dtype nvfp4", "0.22.1", gpus="RTX5090"),
        (
            line("qwen3-32b", "--kv-cache-dtype nvfp4", "0.32.0", gpus="RTX5090"),
            line("qwen3-32b", "--kv-cache-dtype nvfp4", "0.22.1", gpus="B200"),
            line("qwen3-32b", "--kv-cache-dtype nvfp4", "0.22.1"),
        ),
    ),
    Case(
        written_kv.fp8_kv_needs_fa3,
        written("m --kv-cache-dtype fp8", "0.8.5.post1"),
        (
            line("llama-3.1-8b", "--kv-cache-dtype fp8", "0.8.5.post1", gpus="H100"),
            line("deepseek-v3", "--kv-cache-dtype fp8", "0.9.2"),
            written("m --kv-cache-dtype fp8", "0.12.0"),
        ),
    ),
    Case(
        written_kv.e5m2_kv_on_fp8_checkpoint,
        line("deepseek-v3", "--kv-cache-dtype fp8_e5m2"),
        (
            line("deepseek-v3", "--kv-cache-dtype fp8"),
            line("qwen3-32b", "--kv-cache-dtype fp8_e5m2"),
            line("RedHatAI/Qwen3-30B-A3B-FP8-dynamic", "--kv-cache-dtype fp8_e5m2"),
        ),
    ),
    Case(
        written_kv.fp8_kv_on_flash_attention_2,
        line("qwen3-32b", "--attention-backend FLASH_ATTN --kv-cache-dtype fp8", gpus="RTX4090"),
        (
            line("qwen3-32b", "--attention-backend FLASH_ATTN --kv-cache-dtype fp8", gpus="H100"),
            line("qwen3-32b", "--attention-backend FLASH_ATTN --kv-cache-dtype fp8", "0.10.0", gpus="RTX4090"),
            line("qwen3-32b", "--attention-backend FLASHINFER --kv-cache-dtype fp8", gpus="RTX4090"),
            line("qwen3-32b", "--attention-backend FLASH_ATTN --kv-cache-dtype fp8"),
        ),
    ),
    Case(
        written_kv.fp8_e4m3_needs_sm89,
        line("qwen3-32b", "--attention-backend TRITON_ATTN --kv-cache-dtype fp8", gpus="A100-PCIe-80GB"),
        (
            line("qwen3-32b", "--attention-backend TRITON_ATTN --kv-cache-dtype fp8", gpus="L40S"),
            line("qwen3-32b", "--attention-backend FLASHINFER --kv-cache-dtype fp8", gpus="A100-PCIe-80GB"),
            line("qwen3-32b", "--attention-backend TRITON_ATTN --kv-cache-dtype fp8"),
        ),
    ),
)


def _drafting(model: str, spec: str, version: str = "0.32.0", gpus: str | None = None) -> WrittenCommand:
    return line(model, f"--speculative-config '{spec}'", version, gpus)


_MTP = '{"method": "mtp", "num_speculative_tokens": 2}'
_MTP_6 = '{"method": "mtp", "num_speculative_tokens": 6}'
_PLAIN_DRAFT = '{"method": "draft_model", "model": "Qwen/Qwen2.5-0.5B-Instruct", "num_speculative_tokens": 3}'
_SAME_DRAFT = '{"method": "draft_model", "model": "Qwen/Qwen3-0.6B", "num_speculative_tokens": 3}'
_DFLASH = '{"method": "dflash", "model": "USER/Qwen3.6-27B-DFlash", "num_speculative_tokens": 4}'

_DRAFTS = (
    Case(
        written_drafts.mtp_not_in_release,
        _drafting("glm-4.5-air", _MTP.replace("mtp", "glm4_moe_mtp"), "0.9.2"),
        (
            _drafting("glm-4.5-air", _MTP, "0.20.2"),
            _drafting("qwen3-32b", _MTP, "0.9.2"),
            _drafting("glm-4.5-air", _PLAIN_DRAFT, "0.9.2"),
        ),
    ),
    Case(
        written_drafts.draft_vocabulary_differs,
        _drafting("qwen3.6-27b", _PLAIN_DRAFT),
        (_drafting("qwen3-32b", _SAME_DRAFT), _drafting("qwen3.6-27b", _DFLASH), _drafting("qwen3.6-27b", _MTP)),
    ),
    Case(
        written_drafts.mtp_too_many_draft_tokens,
        _drafting("qwen3.6-27b", _MTP_6, "0.32.0", "H200"),
        (
            _drafting("qwen3.6-27b", _MTP, "0.32.0", "H200"),
            _drafting("qwen3.6-27b", _MTP_6, "0.32.0", "RTX4090"),
            _drafting("deepseek-v3", _MTP_6, "0.32.0", "H200"),
        ),
    ),
    Case(
        written_drafts.drafter_group_padding,
        _drafting("qwen3.6-27b", _DFLASH),
        (_drafting("qwen3.6-27b", _MTP), _drafting("qwen3-32b", _SAME_DRAFT)),
    ),
)

_HEAD = (
    '{"method": "eagle3", "model": "RedHatAI/Llama-3.3-70B-Instruct-speculator.eagle3", "num_speculative_tokens": 3}'
)
_LATER_DRAFTS = (
    Case(
        written_drafts.draft_model_not_supported,
        written(f"m --speculative-config '{_SAME_DRAFT}'", "0.14.1"),
        (
            written(f"m --speculative-config '{_SAME_DRAFT}'", "0.15.1"),
            written(f"m --speculative-config '{_SAME_DRAFT}'", "0.9.2"),
            written(f"m --speculative-config '{_HEAD}'", "0.14.1"),
        ),
    ),
    Case(
        written_drafts.draft_of_another_model,
        _drafting("qwen3-32b", _HEAD),
        (
            _drafting("llama-3.3-70b", _HEAD),
            _drafting("qwen3-32b", _HEAD.replace("Llama-3.3-70B-Instruct-speculator.eagle3", "my-head")),
            _drafting("qwen3.6-27b", _DFLASH),
        ),
    ),
)

_NESTED = f'{{"rope_parameters": {{{_YARN_VL}}}}}'

_BACKENDS = (
    Case(
        written_backend.named_backend_not_valid,
        line("qwen3-8b", "--attention-backend FLASHMLA"),
        (
            line("deepseek-v3", "--attention-backend FLASHMLA"),
            line("qwen3-8b", "--attention-backend FLASH_ATTN"),
            line("qwen3-8b", "--attention-backend auto"),
            written("VLLM_ATTENTION_BACKEND=FLASHMLA qwen3-8b", model=load_model("qwen3-8b")),
            written(
                "VLLM_MLA_DISABLE=1 deepseek-v3 --attention-backend TRITON_ATTN",
                "0.11.2",
                model=load_model("deepseek-v3"),
            ),
        ),
    ),
    Case(
        written_backend.no_backend_for_sparse_attention,
        line("deepseek-v3.2", "-tp 8", gpus="8xA100-SXM4-80GB"),
        (
            line("deepseek-v3.2", "-tp 8", gpus="8xH200"),
            line("deepseek-v3", "-tp 8", gpus="8xA100-SXM4-80GB"),
            line("deepseek-v3.2", "-tp 8"),
            line("glm-5.3", "-tp 8", "0.32.0", gpus="8xRTX5090"),
            line(
                "deepseek-v3.2",
                """--hf-overrides '{"architectures": ["DeepseekV3ForCausalLM"]}'""",
                gpus="8xA100-SXM4-80GB",
            ),
        ),
    ),
)

_PLATFORMS = (
    Case(
        written_platform.backend_not_on_platform,
        line("qwen3-32b", "-tp 2 --attention-backend FLASHINFER", gpus="2xMI300X"),
        (
            line("qwen3-32b", "-tp 2 --attention-backend TRITON_ATTN", gpus="2xMI300X"),
            line("qwen3-32b", "-tp 2 --attention-backend FLASHINFER", gpus="2xH100"),
            line("qwen3-32b", "-tp 2 --attention-backend FLASHINFER"),
        ),
    ),
    Case(
        written_platform.rocm_consumer,
        line("qwen3-8b", gpus="RX7900XTX"),
        (line("qwen3-8b", gpus="MI300X"), line("qwen3-8b", gpus="RTX4090"), line("qwen3-8b")),
    ),
    Case(
        written_platform.hf_override_maybe_wrong_level,
        written(f"Qwen3-VL-MODEL --hf-overrides '{_NESTED}' --max-model-len 1000000"),
        (
            written(f"MODEL --hf-overrides '{_NESTED}'"),
            written(f"Qwen3-MODEL --hf-overrides '{_NESTED}'"),
            written(f"Qwen3-VL-MODEL --hf-overrides '{{\"text_config\": {_NESTED}}}'"),
            overridden("qwen3-vl-8b", _NESTED),
        ),
    ),
)

DEPLOYMENT_CASES = _DEPLOYMENTS
COMMAND_CASES = (*_ROPE, *_HYBRIDS, *_WEIGHTS, *_KV, *_DRAFTS, *_LATER_DRAFTS, *_BACKENDS, *_PLATFORMS)
