"""What is verified, what is expected of it, and how the requests are made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from longreach.forecast.values import Span
from longreach.measure.client import Timeouts

Api = Literal["chat", "completions"]


@dataclass(frozen=True, slots=True)
class ExpectedSpeed:
    """The forecast for one prompt length."""

    prompt_tokens: int
    ttft_cold_s: Span
    ttft_warm_s: Span
    decode_tokens_per_s: Span


@dataclass(frozen=True, slots=True)
class ExpectedServer:
    """What a plan promises of the server. None: nothing was promised, so nothing is checked."""

    release: str | None = None
    max_model_len: int | None = None
    kv_capacity_tokens: int | None = None
    max_concurrency: float | None = None
    block_size: int | None = None
    num_blocks: int | None = None
    kv_cache_dtype: str | None = None
    capacity_is_exact: bool = True  # False: the plan calls its capacity an estimate, so a difference decides nothing
    prefix_caching: bool = True
    speculation: bool | None = None
    is_hybrid: bool | None = None  # attention and recurrent layers: the first repeat of a prompt may miss
    is_deterministic: bool = False  # the same prompt must give the same text (CPU); on GPUs numerics may differ
    speed: ExpectedSpeed | None = None


@dataclass(frozen=True, slots=True)
class VerifyTarget:
    """A running server. The API key is read from the environment variable `api_key_env` names."""

    base_url: str
    model: str | None = None  # as the server names it; None: the only one it serves
    api_key_env: str | None = None
    tokenizer: str | None = None  # folder, tokenizer.json or hub id; None: the server's own /tokenize counts
    expected: ExpectedServer = field(default_factory=ExpectedServer)


@dataclass(frozen=True, slots=True)
class VerifySettings:
    """How to verify. Depths are shares of the prompt, times seconds."""

    prompt_tokens: int | None = None  # at the server; None: the longest that leaves room for `output_tokens`
    output_tokens: int = 64
    extra_body: Mapping[str, object] = field(default_factory=dict)  # sampling, passed through; temperature 0 if unset
    prompt_file: Path | None = None  # the user's own text, sent as it is
    needle_depths: tuple[float, ...] = (0.1, 0.5, 0.9)
    needles_off_reason: str | None = None  # set: no needles, for this reason
    api: Api = "chat"
    max_warm_sends: int = 2  # of a prompt whose first repeat misses; a model known not to be hybrid gets one
    seed: str = "longreach"
    salt: str | None = None  # None: a fresh one, so that nothing sent before can be hit
    timeouts: Timeouts = field(default_factory=Timeouts)

    @property
    def body_fields(self) -> Mapping[str, object]:
        """The passed-through fields with the default of a comparison: greedy."""
        return {"temperature": 0, **self.extra_body}

    @property
    def is_greedy(self) -> bool:
        """Two equal prompts should give equal answers."""
        return self.body_fields["temperature"] == 0
