"""What an engine says in its log, as values. Sizes are as rounded by the log (0.01 GiB); rates are over its own window."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineVersion:
    """The version the server or the engine announces."""

    version: str


@dataclass(frozen=True, slots=True)
class ArgumentsEcho:
    """`non-default args`: what the server took from its command line. None where a value is no Python literal."""

    text: str
    arguments: tuple[tuple[str, object], ...] | None


@dataclass(frozen=True, slots=True)
class Architecture:
    """The model class vLLM resolved."""

    name: str


@dataclass(frozen=True, slots=True)
class MaxModelLen:
    """The length in force; `reduced_from` when auto-fit had to lower it."""

    max_model_len: int
    is_auto_fit: bool = False
    reduced_from: int | None = None


@dataclass(frozen=True, slots=True)
class WeightsProgress:
    """Checkpoint shards read so far."""

    num_done: int
    num_total: int


@dataclass(frozen=True, slots=True)
class WeightsStarted:
    """A worker begins to load the model."""


@dataclass(frozen=True, slots=True)
class WeightsLoaded:
    """All shards are read."""

    seconds: float


@dataclass(frozen=True, slots=True)
class WeightsMemory:
    """Memory the loaded model takes on one GPU. CPU builds do not say."""

    memory_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class KvMemory:
    """Memory left to KV on one GPU, or set aside as `--kv-cache-memory-bytes` asks."""

    memory_bytes: int
    is_explicit: bool


@dataclass(frozen=True, slots=True)
class KvCapacityLine:
    """The printed capacity of one engine. Up to 0.27 tokens and concurrency come on two lines; the other half is None."""

    device: str | None  # "GPU", "CPU", ...
    kv_capacity_tokens: int | None
    max_model_len: int | None
    max_concurrency: float | None


@dataclass(frozen=True, slots=True)
class GraphMemory:
    """Memory of CUDA graphs on one GPU: estimated before, measured after capture (None before)."""

    estimated_bytes: int
    actual_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class GraphProgress:
    """CUDA graphs captured so far, of one kind ("decode, FULL")."""

    kind: str
    num_done: int
    num_total: int


@dataclass(frozen=True, slots=True)
class GraphsCaptured:
    """All CUDA graphs are captured."""

    seconds: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class CompileStarted:
    """`torch.compile` begins: the longest silence of a start."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """`torch.compile` is done."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Profiled:
    """The profiling run is done."""

    seconds: float


@dataclass(frozen=True, slots=True)
class EngineInitialized:
    """The engine core has profiled, allocated its KV cache and warmed up."""

    seconds: float
    compilation_s: float | None


@dataclass(frozen=True, slots=True)
class AttentionBackend:
    """The backend in use and those that were possible; `is_mla_prefill` for the separate prefill half of MLA."""

    name: str
    candidates: tuple[str, ...] = ()
    is_mla_prefill: bool = False


@dataclass(frozen=True, slots=True)
class KvCacheLayout:
    """Physical layout of the KV cache."""

    name: str


@dataclass(frozen=True, slots=True)
class KvCacheDtype:
    """A quantized KV cache and its dtype; nothing is printed for a plain one."""

    name: str


@dataclass(frozen=True, slots=True)
class ChunkedPrefill:
    """Chunked prefill is on with this many tokens a step."""

    max_num_batched_tokens: int


@dataclass(frozen=True, slots=True)
class HybridBlockSize:
    """Attention blocks were enlarged so that one page holds a recurrent state."""

    block_size: int


@dataclass(frozen=True, slots=True)
class StatePadding:
    """Pages of recurrent state grew by this share (0.95 = nearly doubled) to be as large as attention pages."""

    growth: float


@dataclass(frozen=True, slots=True)
class PaddingLayers:
    """Layers added to even out the KV groups, and the largest share 0..1 of KV memory they may waste."""

    num_layers: int
    max_waste: float


@dataclass(frozen=True, slots=True)
class OffloadConnector:
    """A KV connector was made."""

    name: str


@dataclass(frozen=True, slots=True)
class OffloadSpec:
    """The spec an OffloadingConnector runs."""

    name: str


@dataclass(frozen=True, slots=True)
class SecondaryTier:
    """A tier below the CPU tier."""

    index: int
    kind: str


@dataclass(frozen=True, slots=True)
class PrimaryTier:
    """The CPU tier of a tiering spec."""

    eviction_policy: str
    num_chunks: int
    num_secondary_tiers: int


@dataclass(frozen=True, slots=True)
class OffloadFile:
    """The shared-memory file behind the CPU tier. An engine that is killed may leave it behind."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class NumaBinding:
    """A worker is bound to a NUMA node; `cpus` None means all of the node's."""

    local_rank: int
    numa_node: int
    cpus: str | None


@dataclass(frozen=True, slots=True)
class SpeculationStats:
    """Draft tokens over the last logging window. `acceptance_rate` is 0..1."""

    mean_acceptance_length: float
    num_accepted_tokens: int
    num_draft_tokens: int
    acceptance_rate: float
    acceptance_rate_by_position: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class EngineStats:
    """The periodic line. Shares are 0..1; a hit rate is None when the part is absent, and covers recent requests only."""

    engine: int
    prompt_tokens_per_s: float
    generation_tokens_per_s: float
    num_running: int
    num_waiting: int
    num_deferred: int
    num_preemptions: int
    kv_cache_usage: float
    prefix_hit_rate: float | None
    external_prefix_hit_rate: float | None
    mm_hit_rate: float | None


@dataclass(frozen=True, slots=True)
class KvTransferStats:
    """The connector's own figures, as text."""

    text: str


@dataclass(frozen=True, slots=True)
class Listening:
    """The server has its socket; it does not answer yet."""

    url: str


@dataclass(frozen=True, slots=True)
class Ready:
    """The HTTP application is up: requests are answered."""


@dataclass(frozen=True, slots=True)
class ShutdownStarted:
    """The server was told to stop."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A line that explains speed, capacity or quality; `topic` is a stable word, `meaning` what follows from it."""

    topic: str
    meaning: str
    text: str


@dataclass(frozen=True, slots=True)
class LoggedWarning:
    """Any other warning."""

    text: str


@dataclass(frozen=True, slots=True)
class LoggedError:
    """An error record, or the last line of a traceback."""

    text: str


LogEvent = (
    EngineVersion
    | ArgumentsEcho
    | Architecture
    | MaxModelLen
    | WeightsStarted
    | WeightsProgress
    | WeightsLoaded
    | WeightsMemory
    | KvMemory
    | KvCapacityLine
    | GraphMemory
    | GraphProgress
    | GraphsCaptured
    | CompileStarted
    | Compiled
    | Profiled
    | EngineInitialized
    | AttentionBackend
    | KvCacheLayout
    | KvCacheDtype
    | ChunkedPrefill
    | HybridBlockSize
    | StatePadding
    | PaddingLayers
    | OffloadConnector
    | OffloadSpec
    | SecondaryTier
    | PrimaryTier
    | OffloadFile
    | NumaBinding
    | SpeculationStats
    | EngineStats
    | KvTransferStats
    | Listening
    | Ready
    | ShutdownStarted
    | Notice
    | LoggedWarning
    | LoggedError
)
