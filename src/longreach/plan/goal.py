"""What the user wants of one instance: every option of `longreach plan` as one value. None: choose, and say why."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Goal:
    """Lengths in tokens, sizes in bytes, times in seconds."""

    max_model_len: int | None = None
    concurrency: int | None = None
    mean_input_tokens: int | None = None
    mean_output_tokens: int | None = None
    prompt_shares: tuple[tuple[float, int], ...] = ()  # (share, tokens) of each class of a mix of prompts
    tp_size: int | None = None
    pp_size: int | None = None
    dp_size: int | None = None
    dcp_size: int | None = None
    kv_cache_dtype: str | None = None
    kv_cache_memory_bytes: int | None = None
    gpu_memory_utilization: float | None = None
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    block_size: int | None = None
    prefix_caching: bool = True
    reserve_full_isl: bool | None = None
    speculation: str | None = None  # "mtp:3", "ngram:5", "none"
    yarn: str = "auto"  # "auto", "none", or a factor
    cpu_tier_bytes: int | None = None
    disk_tier_path: str | None = None
    disk_tier_bytes: int | None = None
    eviction_policy: str = "lru"
    images_per_prompt: int | None = None
    mm_processor_kwargs: tuple[tuple[str, object], ...] | None = None
    mm_ipc_gpu_memory_gb: float | None = None
    cudagraph_mode: str | None = None
    disable_custom_all_reduce: bool | None = None
    ttft_wish_s: float | None = None
    model_path: str | None = None  # what `vllm serve` is given, where it differs from the name planned for
    served_model_name: str | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    extra_args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class NamedGoal:
    """One instance of a deployment; a plan has one or more, each on its own GPUs and port."""

    name: str
    goal: Goal
    num_gpus: int | None = None  # its share of the machine; None: what its sizes take, else an equal one
