"""What `verify` hands back: every request as measured, and a checklist with evidence. All of it is plain data."""

from dataclasses import dataclass
from typing import Literal

from longreach.measure.prompts import Needle
from longreach.measure.stream import StreamFailure
from longreach.wire.chunks import Usage

Verdict = Literal["pass", "fail", "cannot_tell"]


@dataclass(frozen=True, slots=True)
class ChecklistItem:
    """One promise. `name` is a stable snake_case word, `title` the promise in words, `evidence` what was seen, `fix` what
    to do about a server that is not there or refuses.
    """

    name: str
    title: str
    verdict: Verdict
    evidence: str
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class ServerState:
    """What the server says of itself. None where it does not."""

    version: str | None = None
    max_model_len: int | None = None
    kv_capacity_tokens: int | None = None
    max_concurrency: float | None = None
    block_size: int | None = None
    num_blocks: int | None = None
    kv_cache_dtype: str | None = None


@dataclass(frozen=True, slots=True)
class Counters:
    """What the server's metrics counted during one request. None: this server does not count it.

    `attributed` says that no other request ran meanwhile, so that every count belongs to this one.
    """

    attributed: bool
    prompt_tokens: int | None = None
    prefix_hit_tokens: int | None = None  # device cache
    external_hit_tokens: int | None = None  # offload tiers
    hits_by_source: tuple[tuple[str, int], ...] = ()  # device, host, disk, ...
    preemptions: int | None = None
    num_drafts: int | None = None
    num_draft_tokens: int | None = None
    num_accepted_tokens: int | None = None

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted draft tokens / draft tokens."""
        if not self.num_draft_tokens or self.num_accepted_tokens is None:
            return None
        return self.num_accepted_tokens / self.num_draft_tokens

    @property
    def mean_acceptance_length(self) -> float | None:
        """Tokens per step: 1 + accepted / drafts."""
        if not self.num_drafts or self.num_accepted_tokens is None:
            return None
        return 1 + self.num_accepted_tokens / self.num_drafts


@dataclass(frozen=True, slots=True)
class SendReport:
    """One request. Times are seconds after sending, rates tokens per second, all measured."""

    label: str  # "cold", "warm 1", "warm 2"
    failure: StreamFailure | None
    usage: Usage | None
    cached_tokens: int | None  # of the prompt, from any tier
    cached_tokens_source: Literal["usage", "metrics"] | None
    counters: Counters | None
    ttft_s: float | None
    first_answer_s: float | None
    itl_s: float | None
    chunk_gap_p99_s: float | None
    output_tokens_per_s: float | None
    e2e_latency_s: float
    event_loop_lag_p99_s: float | None
    finish_reason: str | None
    content: str
    reasoning: str
    needles_found: tuple[Needle, ...] = ()

    @property
    def is_warm(self) -> bool:
        """A repeat of a prompt that was sent before."""
        return self.label != "cold"


@dataclass(frozen=True, slots=True)
class PromptReport:
    """What was sent. `template_tokens` is what the server's chat template adds to the text."""

    wanted_tokens: int | None  # None: the user's own text, as long as it is
    tokenizer: str | None
    template_tokens: int | None
    salt: str
    seed: str | None
    needles: tuple[Needle, ...] = ()
    needles_off_reason: str | None = None
    build_s: float = 0.0
    source: str = "generated"  # or the path of the user's file


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The whole outcome. `interrupted` means that it was cut short and holds what was known until then."""

    base_url: str
    model: str | None
    server: ServerState
    prompt: PromptReport | None
    sends: tuple[SendReport, ...]
    items: tuple[ChecklistItem, ...]
    interrupted: bool = False

    @property
    def num_failed(self) -> int:
        """How many promises are broken."""
        return sum(item.verdict == "fail" for item in self.items)
