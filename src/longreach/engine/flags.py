"""The flags of `vllm serve` that longreach sets, each declared once. Their spellings and releases are the registry's. Pure."""

from dataclasses import dataclass

from longreach.engine.flag_values import Kind
from longreach.engine.registry import Registry, get_registry
from longreach.engine.release import Release


@dataclass(frozen=True, slots=True)
class Flag:
    """One option that has a field."""

    field: str  # of EngineOptions
    name: str  # canonical, as in the registry
    kind: Kind
    absent: object = None  # what EngineOptions holds when the flag is missing
    key: str | None = None  # a shortcut for this key of the JSON flag of the same field
    note: str = ""

    @property
    def negated(self) -> str:
        """`--no-enable-prefix-caching`: the other half of a boolean pair."""
        return f"--no-{self.name.removeprefix('--')}"


def registry_of(release: Release) -> Registry:
    """What the release accepts."""
    return get_registry(release.version)


FLAGS: tuple[Flag, ...] = (
    Flag("served_model_name", "--served-model-name", "text"),
    Flag("host", "--host", "text", absent="0.0.0.0", note="without it vLLM listens on every interface"),  # noqa: S104 - vLLM's default, stated
    Flag("port", "--port", "int"),
    Flag("tensor_parallel_size", "--tensor-parallel-size", "int", absent=1),
    Flag("pipeline_parallel_size", "--pipeline-parallel-size", "int", absent=1),
    Flag("data_parallel_size", "--data-parallel-size", "int", absent=1),
    Flag("decode_context_parallel_size", "--decode-context-parallel-size", "int", absent=1),
    Flag("max_model_len", "--max-model-len", "length"),
    Flag("dtype", "--dtype", "text"),
    Flag("quantization", "--quantization", "text"),
    Flag("kv_cache_dtype", "--kv-cache-dtype", "text"),
    Flag("kv_cache_dtype_skip_layers", "--kv-cache-dtype-skip-layers", "texts"),
    Flag("kv_cache_memory_bytes", "--kv-cache-memory-bytes", "size", note="per GPU"),
    Flag("gpu_memory_utilization", "--gpu-memory-utilization", "float"),
    Flag("block_size", "--block-size", "int"),
    Flag("enable_prefix_caching", "--enable-prefix-caching", "bool"),
    Flag("enable_chunked_prefill", "--enable-chunked-prefill", "bool"),
    Flag("max_num_batched_tokens", "--max-num-batched-tokens", "size"),
    Flag("max_num_seqs", "--max-num-seqs", "int"),
    Flag("scheduler_reserve_full_isl", "--scheduler-reserve-full-isl", "bool"),
    Flag("async_scheduling", "--async-scheduling", "bool"),
    Flag("speculative", "--speculative-config", "json"),
    Flag("speculative", "--spec-method", "text", key="method"),
    Flag("speculative", "--spec-model", "text", key="model"),
    Flag("speculative", "--spec-tokens", "int", key="num_speculative_tokens"),
    Flag("offload", "--kv-transfer-config", "json"),
    Flag("yarn", "--hf-overrides", "json"),
    Flag("limit_mm_per_prompt", "--limit-mm-per-prompt", "json"),
    Flag("mm_processor_kwargs", "--mm-processor-kwargs", "json"),
    Flag("mm_ipc_gpu_memory_gb", "--mm-ipc-gpu-memory-gb", "float", note="GiB out of KV memory"),
    Flag("language_model_only", "--language-model-only", "bool"),
    Flag("cudagraph_mode", "--compilation-config", "json"),
    Flag("enforce_eager", "--enforce-eager", "bool"),
    Flag("disable_custom_all_reduce", "--disable-custom-all-reduce", "bool"),
    Flag("disable_hybrid_kv_cache_manager", "--disable-hybrid-kv-cache-manager", "bool"),
    Flag("numa_bind", "--numa-bind", "bool"),
    Flag("numa_bind_nodes", "--numa-bind-nodes", "ints"),
    Flag("reasoning_parser", "--reasoning-parser", "text"),
    Flag("tool_call_parser", "--tool-call-parser", "text"),
    Flag("enable_auto_tool_choice", "--enable-auto-tool-choice", "bool"),
    Flag("enable_prompt_tokens_details", "--enable-prompt-tokens-details", "bool"),
    Flag("trust_remote_code", "--trust-remote-code", "bool"),
)

MODEL = "--model"
_BY_NAME = {flag.name: flag for flag in FLAGS}


def flag_named(name: str) -> Flag | None:
    """The row of a canonical long name; None for what has no field."""
    return _BY_NAME.get(name)
