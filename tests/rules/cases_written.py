"""Lines on which the command rules of names, offload, environment, serving and speculation speak, and near ones."""

import json
from typing import Any

from tests.rules.case import Case
from tests.rules.commands import written

from longreach.engine.launchfiles.found import FoundCommand
from longreach.rules import written_env, written_names, written_offload, written_serving, written_speculation
from longreach.rules.written import WrittenCommand


def transfer(
    version: str = "0.32.0", connector: str = "OffloadingConnector", more: str = "", **extra: Any
) -> WrittenCommand:
    """A command with this connector and extra config."""
    config = {"kv_connector": connector, "kv_role": "kv_both"} | ({"kv_connector_extra_config": extra} if extra else {})
    return written(f"m --kv-transfer-config '{json.dumps(config)}' {more}", version)


def spec(version: str = "0.32.0", more: str = "", served: str = "m", **keys: Any) -> WrittenCommand:
    """A command with this speculative config."""
    return written(f"{served} --speculative-config '{json.dumps(keys)}' {more}", version)


_FS = {"type": "fs", "root_dir": "/kv"}
_TIERS: dict[str, Any] = {"cpu_bytes_to_use": 1 << 36, "spec_name": "TieringOffloadingSpec", "secondary_tiers": [_FS]}
_CPU: dict[str, Any] = {"cpu_bytes_to_use": 1 << 36}
_DOCKER = FoundCommand(argv=("vllm", "serve", "m"), format="docker", ports=("8000:8000",))
_HOST_IPC = FoundCommand(argv=("vllm", "serve", "m"), format="docker", host_ipc=True, host_network=True)

_NAMES = (
    Case(
        written_names.unknown_reasoning_parser,
        written("m --reasoning-parser qwen5"),
        (
            written("m --reasoning-parser qwen3"),
            written("m --reasoning-parser $PARSER"),
            written("m --reasoning-parser own --reasoning-parser-plugin own.py"),
        ),
    ),
    Case(
        written_names.unknown_tool_parser,
        written("m --enable-auto-tool-choice --tool-call-parser qwen3_codr"),
        (written("m --enable-auto-tool-choice --tool-call-parser hermes"), written("m --tool-call-parser qwen3_codr")),
    ),
    Case(
        written_names.unknown_attention_backend,
        written("m --attention-backend FLASHINFR"),
        (written("m --attention-backend flashinfer"), written("m --attention-backend FLASHINFR", "0.10.2")),
    ),
    Case(
        written_names.unknown_connector,
        transfer(connector="OffloadConnector"),
        (transfer(), written("m"), transfer(connector="$CONNECTOR")),
    ),
    Case(
        written_names.quantization_not_in_release,
        written("m --quantization gguf", "0.32.0"),
        (written("m --quantization gguf", "0.20.2"), written("m --quantization fp8")),
    ),
    Case(
        written_names.connector_of_old_engine,
        transfer("0.9.2", "LMCacheConnector"),
        (transfer("0.9.2", "LMCacheConnectorV1"), transfer("0.11.2", "LMCacheConnector")),
    ),
)

_OFFLOAD = (
    Case(
        written_offload.unknown_offload_spec,
        transfer(spec_name="TieredOffloadingSpec", **_CPU),
        (transfer(**_TIERS), transfer(spec_name="Own", spec_module_path="own", **_CPU)),
    ),
    Case(
        written_offload.secondary_tiers_without_spec,
        transfer(secondary_tiers=[_FS], **_CPU),
        (transfer(**_TIERS), transfer(**_CPU), transfer("0.20.2", secondary_tiers=[_FS], **_CPU)),
    ),
    Case(
        written_offload.offload_key_ignored,
        transfer(n_read_threads=32, **_TIERS),
        (
            transfer(**(_TIERS | {"secondary_tiers": [_FS | {"n_read_threads": 32}]})),
            transfer(connector="LMCacheConnectorV1", n_read_threads=32),
        ),
    ),
    Case(
        written_offload.offload_size_missing,
        transfer(eviction_policy="lru"),
        (
            transfer(**_CPU),
            transfer(more="--kv-offloading-size 64", eviction_policy="lru"),
            transfer("0.12.0", num_cpu_blocks=9),
        ),
    ),
    Case(
        written_offload.secondary_tier_malformed,
        transfer(**(_TIERS | {"secondary_tiers": [{"type": "fs_python", "root_dir": "/kv"}]})),
        (
            transfer(**_TIERS),
            transfer("0.22.1", **(_TIERS | {"secondary_tiers": [{"type": "fs_python", "root_dir": "/kv"}]})),
        ),
    ),
    Case(
        written_offload.unknown_eviction_policy,
        transfer(eviction_policy="lfu", **_CPU),
        (
            transfer(eviction_policy="arc", **_CPU),
            transfer(eviction_policy="lfu", cache_policy_module_path="own", **_CPU),
        ),
    ),
    Case(
        written_offload.offload_chunk_given_twice,
        transfer(block_size=256, blocks_per_chunk=4, **_CPU),
        (transfer(blocks_per_chunk=4, **_CPU), transfer(block_size=256, **_CPU)),
    ),
    Case(
        written_offload.store_threshold_with_tiers,
        transfer(store_threshold=2, **_TIERS),
        (transfer(store_threshold=2, **_CPU), transfer(store_threshold=1, **_TIERS)),
    ),
    Case(
        written_offload.offload_asked_twice,
        transfer(more="--kv-offloading-size 64", **_CPU),
        (
            transfer(**_CPU),
            written("m --kv-offloading-size 64"),
            transfer(more="--kv-offloading-size 64", eviction_policy="lru"),
        ),
    ),
    Case(
        written_offload.failed_load_fails_request,
        transfer(**_CPU),
        (
            written("m"),
            written(
                'm --kv-transfer-config \'{"kv_connector":"OffloadingConnector","kv_role":"kv_both",'
                '"kv_load_failure_policy":"recompute"}\''
            ),
        ),
    ),
)

_ENV = (
    Case(
        written_env.unknown_variable,
        written("VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve m"),
        (
            written("VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve m", "0.14.1"),
            written("VLLM_OMNI_HOME=/x vllm serve m"),
            written("CUDA_VISIBLE_DEVICES=0 vllm serve m"),
        ),
    ),
    Case(
        written_env.offload_env_without_connector,
        written("LMCACHE_MAX_LOCAL_CPU_SIZE=30 vllm serve m"),
        (written("m"), written("LMCACHE_MAX_LOCAL_CPU_SIZE=30 vllm serve m --kv-offloading-size 8")),
    ),
    Case(written_env.api_key_in_argv, written("m --api-key secret"), (written("m --api-key $KEY"), written("m"))),
    Case(
        written_env.visible_devices_below_world_size,
        written("CUDA_VISIBLE_DEVICES=0,1 vllm serve m -tp 4"),
        (
            written("CUDA_VISIBLE_DEVICES=0,1 vllm serve m -tp 2"),
            written("m -tp 4", found=FoundCommand(argv=("vllm",), format="kubernetes", gpus="4")),
            written("m -tp 4", found=FoundCommand(argv=("vllm",), format="docker", gpus="all")),
            written("CUDA_VISIBLE_DEVICES=$GPUS vllm serve m -tp 4"),
            written("CUDA_VISIBLE_DEVICES=0,1 vllm serve m -tp 4 --distributed-executor-backend ray"),
        ),
    ),
    Case(
        written_env.container_shm_small,
        written("m -tp 2", found=_DOCKER),
        (written("m -tp 2", found=_HOST_IPC), written("m", found=_DOCKER), written("m -tp 2")),
    ),
    Case(
        written_env.numa_in_container,
        written("m --numa-bind", found=_DOCKER),
        (
            written("m --numa-bind"),
            written("m", found=_DOCKER),
            written("m --numa-bind", found=FoundCommand(argv=("vllm",), format="docker", capabilities=("SYS_NICE",))),
        ),
    ),
    Case(
        written_env.container_listens_on_loopback,
        written("m --host 127.0.0.1", found=_DOCKER),
        (written("m --host 127.0.0.1"), written("m --host 127.0.0.1", found=_HOST_IPC), written("m", found=_DOCKER)),
    ),
    Case(
        written_env.published_port_differs,
        written("m --port 8080", found=_DOCKER),
        (written("m --port 8000", found=_DOCKER), written("m --port $PORT", found=_DOCKER), written("m --port 8080")),
    ),
    Case(
        written_env.proxy_in_container,
        written("http_proxy=http://p:3128 vllm serve m"),
        (written("m"), written("http_proxy=http://p:3128 no_proxy=localhost vllm serve m")),
    ),
)

_MODULE = "python3 -m vllm.entrypoints.openai.api_server"

_SERVING = (
    Case(
        written_serving.positional_model_on_module,
        written(f"{_MODULE} org/m --port 80"),
        (written(f"{_MODULE} --model org/m"), written(f"{_MODULE} org/m", "0.9.2"), written(f"{_MODULE} $MODEL")),
    ),
    Case(
        written_serving.value_out_of_range,
        written("m --gpu-memory-utilization 95"),
        (written("m --gpu-memory-utilization 0.95"), written("m --max-num-seqs 1"), written("m --port $PORT")),
    ),
    Case(
        written_serving.weight_offload_on_cpu,
        written("m --device cpu --cpu-offload-gb 200", "0.8.5"),
        (written("m --cpu-offload-gb 200"), written("m --device cpu", "0.8.5")),
    ),
    Case(
        written_serving.partial_prefills_ignored,
        written("m --max-num-partial-prefills 4", "0.26.0"),
        (written("m --max-num-partial-prefills 4", "0.27.1"), written("m", "0.26.0")),
    ),
    Case(
        written_serving.engine_keys_in_hf_overrides,
        written('m --hf-overrides \'{"tensor_parallel_size": 4, "max_position_embeddings": 65536}\''),
        (
            written("m --hf-overrides '{\"max_position_embeddings\": 65536}'"),
            written('m --hf-overrides \'{"rope_scaling": {"rope_type": "yarn"}}\'', "0.10.2"),
        ),
    ),
    Case(
        written_serving.rope_type_missing,
        written('m --hf-overrides \'{"rope_scaling": {"type": "yarn", "factor": 4.0}}\'', "0.9.2"),
        (
            written('m --hf-overrides \'{"rope_scaling": {"type": "yarn", "factor": 4.0}}\'', "0.10.2"),
            written('m --hf-overrides \'{"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}\'', "0.9.2"),
        ),
    ),
    Case(
        written_serving.unprofiled_memory,
        written("m --kv-cache-dtype turboquant_k8v4 --gpu-memory-utilization 0.97"),
        (
            written("m --kv-cache-dtype turboquant_k8v4 --gpu-memory-utilization 0.9"),
            written("m --kv-cache-dtype fp8 --gpu-memory-utilization 0.97"),
        ),
    ),
    Case(
        written_serving.backend_refuses_kv_dtype,
        written("m --attention-backend TRITON_MLA --kv-cache-dtype fp8", "0.17.1"),
        (
            written("m --attention-backend TRITON_MLA --kv-cache-dtype fp8", "0.18.1"),
            written("m --attention-backend FLASH_ATTN --kv-cache-dtype fp8"),
            written("m --kv-cache-dtype fp8"),
        ),
    ),
    Case(
        written_serving.slow_tokenizer_for_long_prompts,
        written("m --max-model-len 750k"),
        (
            written("VLLM_USE_FASTOKENS=1 vllm serve m --max-model-len 750k"),
            written("m --max-model-len 32k"),
            written("m --max-model-len 750k", "0.20.2"),
        ),
    ),
)

_SPECULATION = (
    Case(
        written_speculation.unknown_spec_method,
        spec(method="eagle4", model="d", num_speculative_tokens=3),
        (spec(method="eagle3", model="d", num_speculative_tokens=3), spec(method="$METHOD", num_speculative_tokens=3)),
    ),
    Case(
        written_speculation.spec_method_missing,
        spec(num_speculative_tokens=3),
        (spec("0.10.2", num_speculative_tokens=3), spec(model="d", num_speculative_tokens=3), written("m")),
    ),
    Case(
        written_speculation.pp_with_old_spec_flags,
        written("m -pp 2 --speculative-model d --num-speculative-tokens 5", "0.8.5"),
        (written("m --speculative-model d"), spec("0.32.0", "-pp 2", method="ngram", num_speculative_tokens=4)),
    ),
    Case(
        written_speculation.spec_depth_missing,
        spec(method="mtp"),
        (spec(method="mtp", num_speculative_tokens=1), spec(method="ngram", prompt_lookup_max=4), written("m")),
    ),
    Case(
        written_speculation.pp_with_spec,
        spec("0.28.0", "-pp 2", method="mtp", num_speculative_tokens=1),
        (
            spec("0.32.0", "-pp 2", method="mtp", num_speculative_tokens=1),
            spec("0.28.0", "-tp 2", method="mtp", num_speculative_tokens=1),
            spec("0.28.0", "-pp 2", method="ngram", num_speculative_tokens=4),
        ),
    ),
    Case(
        written_speculation.path_name_switches_method,
        spec(served="/models/dflash-test/Qwen3.8-27B", method="mtp", num_speculative_tokens=3),
        (
            spec(served="/models/Qwen3.8-27B", method="mtp", num_speculative_tokens=3),
            spec(served="/models/dflash-test/x", method="dflash", num_speculative_tokens=3),
            spec(served="/models/dflash-test/x", method="ngram", num_speculative_tokens=3),
        ),
    ),
    Case(
        written_speculation.spec_tp_misspelled,
        spec(method="eagle3", num_speculative_tokens=3, tensor_parallel_size=1),
        (spec(method="eagle3", num_speculative_tokens=3, draft_tensor_parallel_size=1), written("m")),
    ),
    Case(
        written_speculation.spec_method_renamed,
        spec(method="qwen3_next_mtp", num_speculative_tokens=2),
        (
            spec(method="mtp", num_speculative_tokens=2),
            spec("0.10.2", method="qwen3_next_mtp", num_speculative_tokens=2),
        ),
    ),
)

CASES = (*_NAMES, *_OFFLOAD, *_ENV, *_SERVING, *_SPECULATION)
