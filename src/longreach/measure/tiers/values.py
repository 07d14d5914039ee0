"""A comparison of KV tiers as data: what was run, what each variant did, and whether each tier pays.

Times are seconds, rates per second, shares 0 to 1. None is unknown, never zero.
"""

from dataclasses import dataclass
from typing import Literal

from longreach.measure.bench.summary_values import Distribution, Interval
from longreach.measure.bench.values import BenchResult

SCHEMA = "longreach/tiers/1"

TierName = Literal["gpu", "cpu", "disk"]
Policy = Literal["lru", "arc"]
StepVerdict = Literal["keep", "drop", "not_enough_data"]

SOURCE_OF_TIER: dict[TierName, str] = {"gpu": "device", "cpu": "host", "disk": "disk"}
"""How vLLM's metrics call the tier that a hit came from."""

TIER_WORDS: dict[TierName, str] = {"gpu": "GPU", "cpu": "CPU", "disk": "disk"}
"""How people do."""

UNSPECIFIED_SOURCE = "external_unspecified"
"""How they call a hit in some offload tier; it stands for all of them where only their sum is counted."""


@dataclass(frozen=True, slots=True)
class TierSet:
    """The tiers of one variant; `policy` is the CPU tier's, None without one."""

    tiers: tuple[TierName, ...]
    policy: Policy | None = None

    @property
    def name(self) -> str:
        """`gpu`, `gpu+cpu`, `gpu+cpu+disk`, `gpu+cpu+arc`."""
        return "+".join((*self.tiers, *(("arc",) if self.policy == "arc" else ())))

    @property
    def title(self) -> str:
        """The name for people: `GPU`, `GPU+CPU`, `GPU+CPU+disk`, `GPU+CPU+ARC`."""
        return "+".join((*(TIER_WORDS[tier] for tier in self.tiers), *(("ARC",) if self.policy == "arc" else ())))

    @property
    def slug(self) -> str:
        """The name as a file name and as a part of a deployment's name."""
        return self.name.replace("+", "-")

    @property
    def added(self) -> TierName:
        """The tier that it has over the variant before it."""
        return self.tiers[-1]


@dataclass(frozen=True, slots=True)
class WorkloadSizing:
    """How large the generated workload is, and why. Tokens are prompt tokens.

    Prompts are sent in groups: each group `sends_per_group` times over before the next one, all groups `num_passes` times.
    """

    prompt_tokens: int
    num_prompts: int
    group_size: int  # prompts
    sends_per_group: int
    num_passes: int
    gpu_capacity_tokens: int
    cpu_capacity_tokens: int | None
    is_shuffled: bool = False  # each time over in another order; otherwise always in the same, the worst for LRU
    notes: tuple[str, ...] = ()

    @property
    def distinct_tokens(self) -> int:
        """Tokens of all prompts, each counted once."""
        return self.num_prompts * self.prompt_tokens

    @property
    def num_requests(self) -> int:
        """Requests of one run."""
        return self.num_prompts * self.sends_per_prompt

    @property
    def sends_per_prompt(self) -> int:
        """How often each prompt comes."""
        return self.sends_per_group * self.num_passes


@dataclass(frozen=True, slots=True)
class TierRun:
    """One start of one variant with its results; `result` is None where it failed, and `failure` says how."""

    variant: TierSet
    repeat: int  # from 1
    result: BenchResult | None = None
    failure: str | None = None

    @property
    def journal(self) -> str:
        """The name of its results file."""
        return f"{self.variant.slug}.{self.repeat}.jsonl"


@dataclass(frozen=True, slots=True)
class RoundFigures:
    """The requests that were the n-th send of their prompt. `round` counts from 1: the first is cold."""

    round: int
    num_requests: int
    ttft_mean_s: float


@dataclass(frozen=True, slots=True)
class VariantFigures:
    """Everything measured of one variant, all its runs together."""

    variant: TierSet
    num_runs: int
    num_ok: int
    num_failed: int
    prompt_tokens: int
    hits_by_source: tuple[tuple[str, int], ...] | None  # device, host, disk
    cached_tokens: int | None  # from wherever
    ttft_s: Distribution | None
    rounds: tuple[RoundFigures, ...]
    prompt_tokens_per_s: float | None  # of the whole run, cached ones included
    output_tokens_per_s: float | None
    duration_s: float
    num_preemptions: int | None = None
    stored_bytes: int | None = None  # GPU to CPU tier
    loaded_bytes: int | None = None  # CPU tier to GPU
    reload_bytes_per_s: float | None = None
    reload_tokens_per_s: float | None = None
    disk_written_bytes: int | None = None
    disk_read_bytes: int | None = None
    disk_written_bytes_per_s: float | None = None  # over the whole run, waiting included
    block_size: int | None = None
    kv_capacity_tokens: int | None = None
    engine_version: str | None = None
    num_mixed_runs: int = 0  # of which the engine counted requests of others, too

    @property
    def hit_share(self) -> float | None:
        """Cached tokens of all prompt tokens."""
        if self.cached_tokens is None or not self.prompt_tokens:
            return None
        return self.cached_tokens / self.prompt_tokens

    def hits_from(self, tier: TierName) -> int | None:
        """Prompt tokens that came from this tier; None where the server does not tell one offload tier from another."""
        if self.hits_by_source is None:
            return None
        hits = dict(self.hits_by_source)
        if tier != "gpu" and hits.get(UNSPECIFIED_SOURCE):
            return None
        return hits.get(SOURCE_OF_TIER[tier], 0)


@dataclass(frozen=True, slots=True)
class Gain:
    """What of a time is saved: 1 - with / without. 0.25: a quarter less; negative: longer. `interval` is of 95 %."""

    value: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class TierStep:
    """A variant against the best one before it."""

    base: TierSet
    variant: TierSet
    verdict: StepVerdict
    why: str
    num_pairs: int  # requests that both variants answered, in the same repeat and place
    num_repeats: int
    ttft_gain: Gain | None = None
    latency_gain: Gain | None = None  # of the whole answer
    gain_by_round: tuple[tuple[int, float], ...] = ()
    added_hit_share: float | None = None  # of all prompt tokens; what the step added, not what the tier served
    more_runs: int | None = None  # of each variant, until the interval is likely to decide; None: it has, or never will
    drift: Gain | None = (
        None  # by how much first sends, which no tier serves, surely came sooner: the machine was faster
    )
    is_mixed: bool = False  # the engines had requests of others, too: more runs like these decide nothing

    @property
    def is_policy(self) -> bool:
        """The same tiers under another policy."""
        return self.base.tiers == self.variant.tiers


@dataclass(frozen=True, slots=True)
class TiersReport:
    """The whole comparison."""

    model: str
    instance: str
    release: str
    device_type: str  # "cpu": the engine is the CPU build, and no figure of it is a bandwidth
    is_hybrid: bool
    margin: float
    workload_source: str
    workload_digest: str
    sizing: WorkloadSizing | None  # None: the workload was given
    figures: tuple[VariantFigures, ...]
    steps: tuple[TierStep, ...]
    winner: TierSet | None  # None: nothing was measured
    runs: tuple[TierRun, ...]
    notes: tuple[str, ...] = ()
    results_folder: str | None = None
    interrupted: bool = False

    @property
    def failures(self) -> tuple[TierRun, ...]:
        """Runs that did not come to an end."""
        return tuple(run for run in self.runs if run.failure is not None)

    @property
    def is_complete(self) -> bool:
        """Every variant was measured as often as asked, so that a tier that is not kept was judged."""
        return self.winner is not None and not self.interrupted and not self.failures
