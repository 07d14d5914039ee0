"""A benchmark run as data: what was asked for, every request as it went, what the server counted meanwhile.

Times are seconds; moments count from the beginning of the run. None is unknown, never zero.
"""

from dataclasses import dataclass
from typing import Literal

from longreach.measure.stream import FailureKind
from longreach.measure.verify_report import ServerState

SCHEMA = "longreach/bench/1"

CacheState = Literal["cold", "warm", "evicted", "as_it_comes", "flood"]
"""What the prefix cache was meant to hold: nothing, all of the prompt, all of it outside the GPU, whatever is there.
`flood` requests push others out and are no part of any figure."""

Proof = Literal["proven", "disproven", "unattributed"]
"""Whether the server's own count of cached tokens says that the state was what it was meant to be."""

Arrivals = Literal["closed", "poisson", "constant", "trace"]


@dataclass(frozen=True, slots=True)
class Load:
    """How requests follow each other. A closed loop keeps `concurrency` of them under way; the others are open: they send
    when it is time, whatever the server does, and `concurrency` is None or a cap that is reported when it was reached.
    """

    arrivals: Arrivals = "closed"
    concurrency: int | None = 1
    rate_per_s: float | None = None  # poisson and constant
    time_scale: float = 1.0  # trace: 2 stretches its clock to twice the length


@dataclass(frozen=True, slots=True)
class PhaseSpec:
    """One pass over the workload's requests, after the one before it has ended."""

    name: str  # "cold", "warm 1", "flood", "evicted"
    state: CacheState


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request as it went. `sent_s` less `due_s` is how late this client itself was."""

    phase: str
    index: int  # of the request in the workload
    state: CacheState
    ok: bool
    error: str | None
    error_kind: FailureKind | None
    error_status: int | None
    wanted_prompt_tokens: int | None
    prompt_tokens: int | None  # by the server's count
    cached_tokens: int | None
    cached_tokens_source: Literal["usage", "metrics"] | None
    reusable_tokens: int | None
    wanted_output_tokens: int
    output_tokens: int | None  # by the server's count
    finish_reason: str | None
    due_s: float | None
    sent_s: float
    ttft_s: float | None
    time_to_first_answer_s: float | None
    itl_s: float | None
    e2e_latency_s: float
    num_chunks: int
    chunk_gap_p50_s: float | None
    chunk_gap_p99_s: float | None
    chunk_gap_max_s: float | None
    client_loop_lag_p99_s: float | None
    answer_digest: str | None  # of reasoning and content: the same answer has the same
    proof: Proof | None = None  # None: nothing was claimed
    hits_by_source: tuple[tuple[str, int], ...] = ()  # device, host, disk; only when nothing else ran
    session: int | None = None


@dataclass(frozen=True, slots=True)
class PhaseReport:
    """What the server counted during one phase. None: it does not count that.

    `attributed`: it finished exactly as many requests as were sent, so that the counts are ours alone.
    """

    name: str
    state: CacheState
    began_s: float
    ended_s: float
    num_sent: int
    attributed: bool = False
    prompt_tokens: int | None = None
    generation_tokens: int | None = None
    prefix_query_tokens: int | None = None
    prefix_hit_tokens: int | None = None
    external_hit_tokens: int | None = None
    hits_by_source: tuple[tuple[str, int], ...] = ()
    num_preemptions: int | None = None
    num_drafts: int | None = None
    num_draft_tokens: int | None = None
    num_accepted_tokens: int | None = None
    ttft_sum_s: float | None = None
    ttft_count: int | None = None
    queue_sum_s: float | None = None
    queue_count: int | None = None
    offload_load_bytes: int | None = None
    offload_load_s: float | None = None
    offload_store_bytes: int | None = None
    offload_store_s: float | None = None
    tier_read_bytes: tuple[tuple[str, int], ...] = ()
    tier_write_bytes: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ServerSample:
    """The server's gauges at one moment of the run."""

    at_s: float
    num_running: float | None
    num_waiting: float | None
    kv_cache_usage: float | None  # 0..1


@dataclass(frozen=True, slots=True)
class BenchHeader:
    """What was run, where and against whom: all that must agree before two runs are compared, or one is resumed."""

    started_at: str  # ISO 8601 with zone
    base_url: str
    model: str
    server: ServerState
    workload_digest: str
    workload_source: str
    seed: str
    tokenizer: str
    template_tokens: int
    num_requests: int
    load: Load
    phases: tuple[PhaseSpec, ...]
    api: Literal["chat", "completions"]
    longreach_version: str
    label: str = ""  # a name for people: "gpu + cpu", "before the driver update"
    cache_salt: str | None = None
    is_hybrid: bool | None = None
    is_deterministic: bool = False
    notes: tuple[str, ...] = ()
    schema: str = SCHEMA


@dataclass(frozen=True, slots=True)
class BenchResult:
    """A run, whole or cut short: what the results file holds, and what every figure is made from."""

    header: BenchHeader
    records: tuple[RequestRecord, ...]
    phases: tuple[PhaseReport, ...] = ()
    samples: tuple[ServerSample, ...] = ()
    client_loop_lag_p99_s: float | None = None
    interrupted: bool = False

    @property
    def counted(self) -> tuple[RequestRecord, ...]:
        """The records that figures are made from: no flood, and of several passes in one state only the last (a hybrid may
        need a repeat before it hits).
        """
        last: dict[CacheState, str] = {phase.state: phase.name for phase in self.header.phases}
        return tuple(r for r in self.records if r.state != "flood" and last.get(r.state) == r.phase)

    @property
    def num_wanted(self) -> int:
        """Requests that a complete run would have counted."""
        return self.header.num_requests * len({phase.state for phase in self.header.phases} - {"flood"})
