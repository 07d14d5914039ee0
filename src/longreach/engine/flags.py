"""The flags of `vllm serve` that longreach sets, each declared once: spelling, kind, releases.

Spellings, kinds and shortest prefixes are those of the parser of 0.32.0; release bounds come from 29 releases, 0.8.5 to 0.33.0.
"""

from dataclasses import dataclass
from typing import Literal

from longreach.engine.release import Release

Kind = Literal["int", "size", "length", "float", "text", "bool", "ints", "json"]
"""`size` takes vLLM's k/m/g/t (decimal) and K/M/G/T (binary) suffixes; `length` also `auto` and -1."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One option. `shortest` is the shortest unique prefix, which argparse accepts for the whole name."""

    field: str  # of EngineOptions
    name: str
    kind: Kind
    shortest: str
    aliases: tuple[str, ...] = ()
    first: str = "0.8.5"  # first release known to have it; 0.8.5 and UNREAD: older ones were not looked at
    last: str | None = None
    absent: object = None  # what EngineOptions holds when the flag is missing
    key: str | None = None  # a shortcut for this key of the JSON flag of the same field
    note: str = ""

    def exists_in(self, release: Release) -> bool:
        """Whether that release's parser has the flag."""
        if release.number < version_number(self.first):
            return False
        return self.last is None or release.number <= version_number(self.last)

    @property
    def negated(self) -> str:
        """`--no-enable-prefix-caching`: the other half of a boolean pair."""
        return f"--no-{self.name.removeprefix('--')}"


UNREAD = "0.28.0"
"""For what is known to be in every release here, and was not traced further back."""


def version_number(version: str) -> tuple[int, ...]:
    """(0, 32, 0), for ordering."""
    return tuple(int(part) for part in version.split("."))


FLAGS: tuple[Flag, ...] = (
    Flag("served_model_name", "--served-model-name", "text", "--ser"),
    Flag("host", "--host", "text", "--ho", absent="0.0.0.0", note="without it vLLM listens on every interface"),  # noqa: S104 - vLLM's default, stated
    Flag("port", "--port", "int", "--por"),
    Flag("tensor_parallel_size", "--tensor-parallel-size", "int", "--te", ("-tp",), absent=1),
    Flag("pipeline_parallel_size", "--pipeline-parallel-size", "int", "--pi", ("-pp",), absent=1),
    Flag("data_parallel_size", "--data-parallel-size", "int", "--data-parallel-size", ("-dp",), absent=1),
    Flag("decode_context_parallel_size", "--decode-context-parallel-size", "int", "--dec", ("-dcp",), UNREAD, absent=1),
    Flag("max_model_len", "--max-model-len", "length", "--max-m"),
    Flag("dtype", "--dtype", "text", "--dt"),
    Flag("quantization", "--quantization", "text", "--quantization", ("-q",)),
    Flag("kv_cache_dtype", "--kv-cache-dtype", "text", "--kv-cache-dtype"),
    Flag("kv_cache_memory_bytes", "--kv-cache-memory-bytes", "size", "--kv-cache-mem", first="0.10.2", note="per GPU"),
    Flag("gpu_memory_utilization", "--gpu-memory-utilization", "float", "--gp"),
    Flag("block_size", "--block-size", "int", "--b"),
    Flag("enable_prefix_caching", "--enable-prefix-caching", "bool", "--enable-pre"),
    Flag("enable_chunked_prefill", "--enable-chunked-prefill", "bool", "--enable-ch"),
    Flag("max_num_batched_tokens", "--max-num-batched-tokens", "size", "--max-num-b"),
    Flag("max_num_seqs", "--max-num-seqs", "int", "--max-num-se"),
    Flag("scheduler_reserve_full_isl", "--scheduler-reserve-full-isl", "bool", "--scheduler-r", first="0.19.1"),
    Flag("async_scheduling", "--async-scheduling", "bool", "--as", first=UNREAD),
    Flag("speculative", "--speculative-config", "json", "--specu", ("-sc",), UNREAD),
    Flag("speculative", "--spec-method", "text", "--spec-me", first="0.22.0", key="method"),
    Flag("speculative", "--spec-model", "text", "--spec-mo", first="0.22.0", key="model"),
    Flag("speculative", "--spec-tokens", "int", "--spec-t", first="0.22.0", key="num_speculative_tokens"),
    Flag("offload", "--kv-transfer-config", "json", "--kv-t"),
    Flag("yarn", "--hf-overrides", "json", "--hf-o"),
    Flag("limit_mm_per_prompt", "--limit-mm-per-prompt", "json", "--lim"),
    Flag("mm_processor_kwargs", "--mm-processor-kwargs", "json", "--mm-processor-k"),
    Flag(
        "mm_ipc_gpu_memory_gb", "--mm-ipc-gpu-memory-gb", "float", "--mm-i", first="0.25.1", note="GiB out of KV memory"
    ),
    Flag("language_model_only", "--language-model-only", "bool", "--la", first="0.17.0"),
    Flag("cudagraph_mode", "--compilation-config", "json", "--com", ("-cc",), "0.10.1"),
    Flag("enforce_eager", "--enforce-eager", "bool", "--enf"),
    Flag("disable_custom_all_reduce", "--disable-custom-all-reduce", "bool", "--disable-cu"),
    Flag("disable_hybrid_kv_cache_manager", "--disable-hybrid-kv-cache-manager", "bool", "--disable-h", first=UNREAD),
    Flag("numa_bind", "--numa-bind", "bool", "--numa-bind", first="0.20.0"),
    Flag("numa_bind_nodes", "--numa-bind-nodes", "ints", "--numa-bind-n", first="0.20.0"),
    Flag("reasoning_parser", "--reasoning-parser", "text", "--reasoning-parser"),
    Flag("tool_call_parser", "--tool-call-parser", "text", "--tool-c"),
    Flag("enable_auto_tool_choice", "--enable-auto-tool-choice", "bool", "--enable-a"),
    Flag("enable_prompt_tokens_details", "--enable-prompt-tokens-details", "bool", "--enable-prompt-t"),
    Flag("trust_remote_code", "--trust-remote-code", "bool", "--trust-rem"),
)

DEVICE_MEMORY_ALIAS = Flag(
    "gpu_memory_utilization", "--device-memory-utilization", "float", "--device-m", first="0.31.0"
)
MODEL = Flag("model", "--model", "text", "--model")


def find_flag(spelling: str, release: Release) -> Flag | None:
    """The row a flag name means in that release: exact, alias, `--no-` half, or a prefix that is unique in 0.32.0.

    `spelling` has dashes for underscores and neither `=value` nor dotted keys.
    """
    rows = [flag for flag in (*FLAGS, DEVICE_MEMORY_ALIAS, MODEL) if flag.exists_in(release)]
    for flag in rows:
        if spelling in (flag.name, *flag.aliases) or (flag.kind == "bool" and spelling == flag.negated):
            return flag
    for flag in rows:
        if flag.name.startswith(spelling) and spelling.startswith(flag.shortest):
            return flag
        negated_shortest = f"--no-{flag.shortest.removeprefix('--')}"
        if flag.kind == "bool" and flag.negated.startswith(spelling) and spelling.startswith(negated_shortest):
            return flag
    return None


KV_CACHE_DTYPES: dict[str, str | None] = {
    "auto": "0.8.5",
    "fp8": "0.8.5",
    "fp8_e4m3": "0.8.5",
    "fp8_e5m2": "0.8.5",
    "fp8_inc": None,
    "bfloat16": "0.11.0",
    "fp8_ds_mla": "0.11.2",
    "float16": "0.18.0",
    "turboquant_k8v4": "0.20.0",
    "turboquant_4bit_nc": "0.20.0",
    "turboquant_k3v4_nc": "0.20.0",
    "turboquant_3bit_nc": "0.20.0",
    "int8_per_token_head": "0.20.0",
    "fp8_per_token_head": "0.20.0",
    "nvfp4": "0.20.0",
    "int4_per_token_head": "0.25.1",
    "nvfp4_4over6": None,
    "nvfp4_ds_mla": None,
    "ultraquant_4bit": "0.32.0",
}
"""KV cache dtypes of 0.32.0 and the first release that accepts each; None where only 0.32.0 was read."""

OFFLOAD_KEYS: dict[str, tuple[str | None, str | None]] = {
    "num_cpu_blocks": ("0.11.0", "0.13.0"),
    "cpu_bytes_to_use": ("0.14.0", None),
    "block_size": ("0.11.0", None),
    "blocks_per_chunk": ("0.27.0", None),
    "eviction_policy": ("0.11.2", None),
    "spec_name": ("0.11.0", None),
    "spec_module_path": (None, None),
    "cache_policy_module_path": (None, None),
    "secondary_tiers": ("0.22.0", None),
    "store_threshold": ("0.19.0", None),
    "max_tracker_size": ("0.19.0", None),
    "offload_prompt_only": ("0.24.0", None),
    "self_describing_kv_events": ("0.24.0", None),
    "canonical_layout": ("0.30.0", None),
    "backpressure": ("0.32.0", None),
    "tier_poll_interval_s": ("0.33.0", None),
    "sync_load_budget_bytes": ("0.33.0", None),
}
"""Keys of OffloadingConnector's extra config with first and last release (None: not known); others are ignored silently."""
