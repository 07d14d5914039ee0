"""All that rules look at: one instance of a deployment, with what was computed about it."""

from dataclasses import dataclass

from longreach.engine.options import EngineOptions
from longreach.engine.release import Release
from longreach.forecast.values import SpeedForecast, TierForecast
from longreach.hardware.spec import Machine
from longreach.model.spec import IndexerLayer, MlaLayer, ModelSpec, RecurrentLayer
from longreach.sizing.kv_cache import size_kv_cache
from longreach.sizing.values import KvCacheRequest, KvCapacity, MemoryBudget, RopePlan, TierCapacity

_SLACK = 0.03  # of a card: what cards of one name, and copies of one checkpoint, differ by


@dataclass(frozen=True, slots=True)
class Deployment:
    """One instance: what it is, what it runs on, what it was asked, and what sizing and forecast say. None: not known."""

    model: ModelSpec
    machine: Machine
    release: Release
    options: EngineOptions
    max_model_len: int
    max_num_batched_tokens: int  # resolved: what vLLM will use
    max_num_seqs: int  # resolved
    others: tuple[EngineOptions, ...] = ()  # the other instances on the machine
    concurrency: int | None = None  # wanted concurrent requests
    mean_input_tokens: int | None = None
    mean_output_tokens: int | None = None
    prompt_shares: tuple[tuple[float, int], ...] = ()  # (share, tokens) of each class of a mix of prompts
    capacity: KvCapacity | None = None
    memory: MemoryBudget | None = None
    rope: RopePlan | None = None
    tiers: tuple[TierCapacity, ...] = ()
    speed: tuple[SpeedForecast, ...] = ()
    tier_forecasts: tuple[TierForecast, ...] = ()
    ttft_wish_s: float | None = None
    kv_request: KvCacheRequest | None = None  # what `capacity` was counted from, to count what would help
    rope_is_overridden: bool = False  # the command writes over rope or length, whether the model reads it or not
    is_foreign: bool = False  # read from a command that nobody planned: what it does not say is not known

    @property
    def tp_size(self) -> int:
        """Tensor parallel size."""
        return self.options.tensor_parallel_size

    @property
    def num_gpus_per_engine(self) -> int:
        """GPUs of one engine: its TP x PP workers."""
        return self.tp_size * self.options.pipeline_parallel_size

    @property
    def num_gpus_of_all(self) -> int:
        """GPUs that this and the other instances occupy: TP x PP x DP of each."""
        return sum(
            options.tensor_parallel_size * options.pipeline_parallel_size * options.data_parallel_size
            for options in (self.options, *self.others)
        )

    @property
    def cpu_tier_bytes_of_all(self) -> int:
        """CPU tiers of all engines on the machine: each data-parallel engine takes its own."""
        return sum(
            options.offload.cpu_bytes * options.data_parallel_size
            for options in (self.options, *self.others)
            if options.offload is not None
        )

    @property
    def kv_cache_dtype(self) -> str:
        """The KV data type in effect; `auto` takes the checkpoint's own scheme or the model's dtype."""
        asked = self.options.kv_cache_dtype or "auto"
        if asked != "auto":
            return asked
        return self.model.kv_cache_dtype_forced or self.options.dtype or self.model.dtype

    @property
    def prefix_caching(self) -> bool:
        """Whether the prefix cache is on: everywhere unless switched off, on hybrids only where their release has it."""
        asked = self.options.enable_prefix_caching
        if not self.model.is_hybrid:
            return asked is not False
        if self.release.state_counting != "modes":  # ignored, or for Mamba models as an experiment
            return False
        return self.release.hybrids_cache_prefixes_by_default if asked is None else asked

    @property
    def kv_room_bytes(self) -> tuple[int, int] | None:
        """Low and high of what weights and the rest leave to KV on one GPU, whatever was asked for; None: not known."""
        memory = self.memory
        if (
            memory is None
            or memory.gpu_total_bytes is None
            or memory.weights_bytes is None
            or memory.other_bytes is None
        ):
            return None
        low = memory.gpu_total_bytes[0] - memory.weights_bytes[1] - memory.other_bytes[1]
        high = memory.gpu_total_bytes[1] - memory.weights_bytes[0] - memory.other_bytes[0]
        return low, high

    @property
    def kv_most_bytes(self) -> int | None:
        """More than KV can ever get on one GPU: what was asked for, else all but the weights at their least, and a little more
        for what the card's name does not tell. None: not known.
        """
        if self.options.kv_cache_memory_bytes is not None:
            return self.options.kv_cache_memory_bytes
        memory = self.memory
        if memory is None or memory.gpu_total_bytes is None or memory.weights_bytes is None:
            return None
        share = self.options.gpu_memory_utilization or self.release.default_gpu_memory_utilization
        return max(int(memory.gpu_total_bytes[1] * (share + _SLACK)) - memory.weights_bytes[0], 0)

    @property
    def pool_blocks(self) -> int | None:
        """`--num-gpu-blocks-override`."""
        words = iter(self.options.extra_args)
        for word in words:
            name, _, value = word.partition("=")
            if name.replace("_", "-") == "--num-gpu-blocks-override":
                value = value or next(words, "")
                return int(value) if value.isdecimal() else None
        return None

    @property
    def num_recurrent_layers(self) -> int:
        """Layers that keep a constant state per sequence."""
        return sum(isinstance(layer, RecurrentLayer) for layer in self.model.layers)

    @property
    def speed_at_full_length(self) -> SpeedForecast | None:
        """The forecast for a prompt of max_model_len; None when there is none."""
        return max(self.speed, key=lambda speed: speed.prompt_tokens, default=None)

    @property
    def block_size(self) -> int | None:
        """Tokens of a KV block; None where the cache was not counted."""
        if self.capacity is not None:
            return self.capacity.block_size
        return None if self.kv_request is None else size_kv_cache(self.kv_request).block_size

    @property
    def has_mla(self) -> bool:
        """Whether attention keeps one latent per token instead of KV heads."""
        return any(isinstance(layer, MlaLayer) for layer in self.model.layers)

    @property
    def is_sparse(self) -> bool:
        """Whether an indexer chooses the tokens that latent attention reads, of caches that hold one state a token."""
        states = {layer.tokens_per_state for layer in self.model.layers if isinstance(layer, MlaLayer)}
        return any(isinstance(layer, IndexerLayer) for layer in self.model.layers) and states == {1}

    @property
    def tokens_per_request(self) -> int:
        """Tokens of a usual request, prompt and answer: the mean where it is known, else max_model_len."""
        if self.mean_input_tokens is None:
            return self.max_model_len
        return min(self.mean_input_tokens + (self.mean_output_tokens or 0), self.max_model_len)

    def tier(self, name: str) -> TierCapacity | None:
        """The "gpu", "cpu" or "disk" tier; None when there is none."""
        return next((tier for tier in self.tiers if tier.name == name), None)
