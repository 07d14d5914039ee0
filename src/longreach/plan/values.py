"""The plan: what was decided, what it will do, and what is wrong with it. Its field names are the JSON contract."""

from dataclasses import dataclass
from typing import Literal

from longreach.engine.address import base_url
from longreach.engine.options import EngineOptions
from longreach.forecast.values import Span, SpeedForecast, TierForecast
from longreach.rules.finding import Finding
from longreach.sizing.values import KvCapacity, MemoryBudget, RopePlan
from longreach.units import Certainty

SCHEMA = "longreach/plan/1"

Verdict = Literal["fits", "does_not_fit", "unknown"]
VariantName = Literal["one", "two"]


@dataclass(frozen=True, slots=True)
class Choice:
    """Something that was not given and therefore chosen."""

    option: str
    value: str
    why: str


@dataclass(frozen=True, slots=True)
class Alternative:
    """A goal near the asked one that fits: one change, what it reaches, and the words to add to the command."""

    change: str
    options: tuple[str, ...]  # they replace what was given under the same name
    max_model_len: int  # what was asked for, or the longest that then fits
    concurrency: float | None  # requests of the mean input length at once
    serves: bool  # length and concurrency as asked
    note: str = ""
    instance: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """The model as the plan understood it. `kv_bytes_per_token` is whole-model at the planned KV dtype, growing layers only."""

    name: str
    reference: str  # what `vllm serve` is given
    architecture: str
    num_layers: int
    layer_kinds: dict[str, int]
    num_kv_heads: int
    head_dim: int
    native_context_tokens: int
    kv_bytes_per_token: int | None
    total_parameters: int | None
    active_parameters: int | None
    quantization: str
    is_hybrid: bool
    is_multimodal: bool
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedMachine:
    """The machine the plan is for."""

    gpu: str | None
    num_gpus: int
    gpu_memory_bytes: int | None
    link: str | None
    ram_bytes: int | None
    num_numa_nodes: int | None
    device_type: str
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedTier:
    """One place where KV blocks rest."""

    name: Literal["gpu", "cpu", "disk"]
    capacity_tokens: int | None
    capacity_bytes: int | None
    reload_tokens_per_s: Span | None
    certainty: Certainty
    note: str = ""


@dataclass(frozen=True, slots=True)
class ConcurrencyFigures:
    """Requests of the mean input length: running at once on the GPUs, and prefixes kept with the CPU tier."""

    prompt_tokens: int
    gpu: float | None
    gpu_and_cpu: float | None


@dataclass(frozen=True, slots=True)
class InstancePlan:
    """One vLLM process group: the command that runs, and what it will be able to do."""

    name: str
    argv: tuple[str, ...]
    env: dict[str, str]
    shell: str
    host: str
    port: int
    gpu_indices: tuple[int, ...]
    max_model_len: int
    options: EngineOptions
    kv_cache: KvCapacity | None
    memory: MemoryBudget | None
    rope: RopePlan | None
    tiers: tuple[PlannedTier, ...]
    tier_forecasts: tuple[TierForecast, ...]
    speed: tuple[SpeedForecast, ...]
    concurrency_at_mean_input: ConcurrencyFigures | None

    @property
    def base_url(self) -> str:
        """Where a client on this machine finds it."""
        return base_url(self.host, self.port)

    @property
    def loads(self) -> bool:
        """Whether the weights leave the KV cache anything; False only when it is sure that they do not."""
        if self.memory is None or self.memory.kv_bytes is None:
            return True
        return self.memory.fits is not False or self.memory.kv_bytes[1] > 0


@dataclass(frozen=True, slots=True)
class PromptClass:
    """Prompts of one length in a mix; `share` is of all requests, 0 to 1."""

    share: float
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """What one class of prompts gets in a variant. `concurrency`: that many at once, when its instance serves no others."""

    share: float
    prompt_tokens: int
    instance: str
    yarn_factor: float | None  # None: positions as the model was trained with
    concurrency: float | None
    ttft_cold_s: Span
    decode_tokens_per_s: Span


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to serve a mix of prompts: "one" instance for all, or "two", the short one without YaRN."""

    name: VariantName
    verdict: Verdict
    chosen: bool
    why: str  # of the choice; for the other, what speaks against it
    instances: tuple[InstancePlan, ...]
    classes: tuple[ClassFigures, ...]
    requests_per_hour: float | None  # of the mix, one after another on each instance, nothing cached


@dataclass(frozen=True, slots=True)
class Plan:
    """A decision with its arithmetic. `findings` are of all instances, worst first."""

    verdict: Verdict
    model: PlannedModel
    machine: PlannedMachine
    release: str
    instances: tuple[InstancePlan, ...]
    findings: tuple[Finding, ...]
    choices: tuple[Choice, ...] = ()
    alternatives: tuple[Alternative, ...] = ()  # nearest first; empty where the goal fits as it is
    variants: tuple[Variant, ...] = ()  # of a mix of prompts; the chosen one's instances are those above
    schema: str = SCHEMA
