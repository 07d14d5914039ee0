"""What we ask of one vLLM instance, as typed values; `command` renders them for a release."""

from dataclasses import dataclass

YARN_KEYS = ("rope_type", "type", "factor", "original_max_position_embeddings")


@dataclass(frozen=True, slots=True)
class SpeculativeOptions:
    """`--speculative-config`. `method` is ours ("mtp", "ngram"); the release decides the spelling."""

    method: str
    num_speculative_tokens: int
    use_local_argmax_reduction: bool = False
    prompt_lookup_max: int | None = None
    extra: tuple[tuple[str, object], ...] = ()  # further keys, passed through untouched


@dataclass(frozen=True, slots=True)
class OffloadOptions:
    """OffloadingConnector with a CPU tier and, optionally, a disk tier. Bytes are totals over all workers of an engine."""

    cpu_bytes: int
    disk_path: str | None = None
    eviction_policy: str = "lru"  # "lru" or "arc"
    num_disk_read_threads: int | None = None
    num_disk_write_threads: int | None = None
    offload_prompt_only: bool | None = None
    blocks_per_chunk: int | None = None
    spec_module_path: str | None = None  # an out-of-tree spec, loaded by vLLM itself
    spec_name: str | None = None  # its class; None takes vLLM's own spec for the tiers asked for
    extra: tuple[tuple[str, object], ...] = ()  # further keys of kv_connector_extra_config, passed through untouched


@dataclass(frozen=True, slots=True)
class YarnOptions:
    """YaRN through `--hf-overrides`; keys land under `override_path` with every original rope key repeated."""

    factor: float
    original_max_position_embeddings: int
    override_path: tuple[str, ...]
    rope_parameters: tuple[tuple[str, object], ...]  # the config's own keys to repeat (rope_theta, mrope_section, ...)

    def __post_init__(self) -> None:
        """Drop the keys that YaRN itself sets; vLLM refuses a dict where `rope_type` and the older `type` disagree."""
        kept = tuple((key, freeze(value)) for key, value in self.rope_parameters if key not in YARN_KEYS)
        object.__setattr__(self, "rope_parameters", kept)

    @property
    def max_position_embeddings(self) -> int:
        """The scaled length, `factor x original`, that the override must name from 0.30 on."""
        return round(self.factor * self.original_max_position_embeddings)


def freeze(value: object) -> object:
    """JSON lists as tuples, so that options compare and hash as values."""
    return tuple(freeze(item) for item in value) if isinstance(value, list | tuple) else value


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """One instance's settings. None leaves the flag out, so that vLLM's default holds."""

    model: str
    served_model_name: str | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    decode_context_parallel_size: int = 1
    max_model_len: int | None = None
    max_model_len_auto: bool = False  # `--max-model-len auto`: the largest length that fits
    dtype: str | None = None
    quantization: str | None = None
    kv_cache_dtype: str | None = None
    kv_cache_dtype_skip_layers: tuple[str, ...] | None = None  # indices, or "sliding_window": kept at the model's dtype
    kv_cache_memory_bytes: int | None = None  # per GPU
    gpu_memory_utilization: float | None = None
    block_size: int | None = None
    enable_prefix_caching: bool | None = None
    enable_chunked_prefill: bool | None = None
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    scheduler_reserve_full_isl: bool | None = None
    async_scheduling: bool | None = None
    speculative: SpeculativeOptions | None = None
    offload: OffloadOptions | None = None
    yarn: YarnOptions | None = None
    limit_mm_per_prompt: tuple[tuple[str, int], ...] | None = None
    mm_processor_kwargs: tuple[tuple[str, object], ...] | None = None
    mm_ipc_gpu_memory_gb: float | None = None
    language_model_only: bool | None = None
    cudagraph_mode: str | None = None
    compilation_extra: tuple[tuple[str, object], ...] = ()  # further keys of --compilation-config
    enforce_eager: bool | None = None
    disable_custom_all_reduce: bool | None = None
    disable_hybrid_kv_cache_manager: bool | None = None
    numa_bind: bool | None = None
    numa_bind_nodes: tuple[int, ...] | None = None
    reasoning_parser: str | None = None
    tool_call_parser: str | None = None
    enable_auto_tool_choice: bool | None = None
    enable_prompt_tokens_details: bool | None = None
    trust_remote_code: bool | None = None
    extra_args: tuple[str, ...] = ()  # passed through untouched
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ServeCommand:
    """A command as it runs: argv after nothing is left to quote, and the environment variables to add."""

    argv: tuple[str, ...]  # ("vllm", "serve", MODEL, ...)
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class OptionProblem:
    """One thing that is wrong with options or a command, in the words of an error."""

    what: str
    why: str
    fix: str
