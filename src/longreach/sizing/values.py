"""What goes into KV sizing and what comes out."""

from dataclasses import dataclass
from typing import Literal

from longreach.engine.options import YarnOptions
from longreach.engine.release import Release
from longreach.model.spec import ModelSpec
from longreach.units import Certainty


@dataclass(frozen=True, slots=True)
class KvCacheRequest:
    """Everything that decides how vLLM lays out and counts the KV cache of one instance."""

    model: ModelSpec
    release: Release
    max_model_len: int
    available_bytes_per_gpu: (
        int  # what is left to KV on each GPU (`--kv-cache-memory-bytes`, less multimodal IPC memory)
    )
    tp_size: int = 1
    pp_size: int = 1
    dcp_size: int = 1
    pcp_size: int = 1
    kv_cache_dtype: str = "auto"
    max_num_batched_tokens: int = 2048
    num_speculative_tokens: int = 0
    use_draft_layers: bool = False  # MTP: the model's draft layers join the pool
    draft_model: ModelSpec | None = None  # a drafter with a config of its own: its layers join the pool
    has_unknown_drafter: bool = False  # a drafter joins the pool whose layers are not known
    prefix_caching: bool = True
    async_scheduling: bool = True
    hybrid_kv_cache_manager: bool = True
    has_kv_connector: bool = False  # --kv-transfer-config: older releases turn the hybrid manager off for it
    block_size: int | None = None  # --block-size
    default_block_size: int = (
        16  # what the attention backend of this device takes when none is given (CPU 128, FLASHMLA 64, ...)
    )
    min_kernel_block_size: int = 16  # smallest block the attention kernel accepts (CPU 32)
    mamba_cache_mode: str | None = None  # --mamba-cache-mode; None: what the release picks
    mamba_cache_dtype: str = "auto"
    mamba_ssm_cache_dtype: str = "auto"
    force_fp32_state: bool = False  # the CPU platform keeps gated-delta state in float32
    gdn_flashinfer_prefill: bool = False  # SM90, SM10x/SM12x with head_k_dim 128 on CUDA 13
    kv_cache_dtype_skip_layers: tuple[str, ...] = ()  # layer indices, or "sliding_window": kept at the model's dtype
    model_runner_v2: bool = True  # with PP and async scheduling it keeps one batch more in flight than the V1 runner


@dataclass(frozen=True, slots=True)
class KvGroup:
    """One KV cache group: layers that share a block table. Bytes are per GPU."""

    kind: str  # "full_attention", "sliding_window", "chunked_local", "mla", "recurrent", "cross_attention"
    num_layers: int
    block_size: int  # tokens
    page_size_bytes: int  # one block in one layer
    blocks_per_request: int  # at max_model_len
    bytes_per_block: int = 0  # one block in all its layers; the pool's block is the widest group's


@dataclass(frozen=True, slots=True)
class KvCapacity:
    """How vLLM counts the pool. `kv_capacity_tokens` and `max_concurrency` are what the release prints;
    when `starts` is False it refuses instead, with `refusal`.
    """

    certainty: Literal["exact", "estimate"]
    block_size: int  # what cache_config.block_size ends as
    bytes_per_block: int
    num_blocks: int
    blocks_per_request: int
    kv_capacity_tokens: int
    max_concurrency: float
    needed_bytes_per_gpu: int  # to start at max_model_len and hold one such request, a reserved null block included
    available_bytes_per_gpu: int
    largest_max_model_len: int  # largest length that starts and that the pool holds; 0 when none does
    starts: bool
    groups: tuple[KvGroup, ...]
    refusal: str | None = None  # the sentence vLLM prints when it refuses
    estimate_reason: str | None = None

    @property
    def serves(self) -> bool:
        """It starts, and the pool holds a request of max_model_len: releases 0.14 to 0.18 start some hybrids that cannot."""
        return self.starts and self.num_blocks >= self.blocks_per_request


@dataclass(frozen=True, slots=True)
class TierCapacity:
    """What one place holds. `capacity_tokens` of the CPU and disk tier is other requests' prefixes: a tier never extends
    what one running request may hold.
    """

    name: Literal["gpu", "cpu", "disk"]
    capacity_tokens: int | None  # None: unbounded or unknown
    capacity_bytes: int | None  # whole instance
    certainty: Certainty
    num_chunks: int | None = None
    chunk_bytes: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Where one GPU's bytes go. A pair is a low-to-high range; exact figures have both ends equal."""

    gpu_total_bytes: tuple[int, int] | None  # as CUDA sees it
    weights_bytes: tuple[int, int] | None
    weights_certainty: Certainty
    weights_source: str
    other_bytes: tuple[int, int] | None  # activations, CUDA graphs, NCCL, context, rope table
    rope_table_bytes: int
    kv_bytes: tuple[int, int] | None  # what is left to KV, or exactly what was asked for
    kv_certainty: Certainty
    fits: bool | None  # None: cannot tell
    kv_middle_bytes: int | None = None  # the best guess inside `kv_bytes`


@dataclass(frozen=True, slots=True)
class RopePlan:
    """How the model reaches the wanted length."""

    native_tokens: int
    wanted_tokens: int
    factor: float | None  # None: no scaling needed
    table_bytes_per_gpu: int  # cos/sin table
    options: YarnOptions | None
    reachable: bool  # False: the model's rope cannot be stretched this way
    reason: str
    beyond_recommendation: bool = False  # longer than the publisher of the model has tested
