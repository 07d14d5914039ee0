"""What a server of known truth knows without serving: a prefix cache by blocks with tiers, and vLLM's counters."""

from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

BLOCK_SIZE = 16  # tokens
BYTES_PER_TOKEN = 512  # of KV, whatever the model
SOURCES = ("device", "host", "disk")


@dataclass(slots=True)
class Tier:
    """A place for so many blocks; the ones least lately used leave first, the end of a prompt before its beginning."""

    num_blocks: int
    keys: OrderedDict[int, None] = field(default_factory=OrderedDict)

    def store(self, keys: Sequence[int]) -> int:
        """Take blocks in as the latest used; gives how many are new here."""
        num_new = sum(key not in self.keys for key in keys)
        for key in reversed(keys):
            self.keys[key] = None
            self.keys.move_to_end(key)
        while len(self.keys) > self.num_blocks:
            self.keys.popitem(last=False)
        return num_new


@dataclass(slots=True)
class PrefixCache:
    """Device, host and disk hold what they can of every prompt that was computed: they overlap, as vLLM's tiers do.

    A hit is a whole block in an unbroken chain from the start of the prompt; the last token is always computed.
    `is_hybrid`: a prompt is hit from its third sending on, for recurrent state is kept on the second.
    """

    tiers: dict[str, Tier]
    is_hybrid: bool = False
    num_sent: Counter[int] = field(default_factory=Counter)
    num_stored_blocks: int = 0  # in the tiers outside the device

    def take(self, salt: str, token_ids: Sequence[int]) -> dict[str, int]:
        """Look a prompt up and store it: hit tokens by the tier that had them."""
        keys, key = [], hash(salt)
        for end in range(BLOCK_SIZE, len(token_ids) + 1, BLOCK_SIZE):
            key = hash((key, *token_ids[end - BLOCK_SIZE : end]))
            keys.append(key)
        self.num_sent[key] += 1
        is_kept = not self.is_hybrid or self.num_sent[key] > 2
        hits = self._look_up(keys[: (len(token_ids) - 1) // BLOCK_SIZE] if is_kept else [])
        for name, tier in self.tiers.items():
            num_new = tier.store(keys)
            self.num_stored_blocks += num_new if name != "device" else 0
        return hits

    def _look_up(self, keys: Sequence[int]) -> dict[str, int]:
        place, hits = 0, {}
        for name, tier in self.tiers.items():
            began = place
            while place < len(keys) and keys[place] in tier.keys:
                place += 1
            hits[name] = (place - began) * BLOCK_SIZE
        return hits


_COUNTED = (
    "prefix_cache_queries_total",
    "prefix_cache_hits_total",
    "external_prefix_cache_queries_total",
    "external_prefix_cache_hits_total",
    "num_preemptions_total",
    "prompt_tokens_total",
    "generation_tokens_total",
    *(f'prompt_tokens_by_source_total,source="{name}"' for name in ("local_compute", "local_cache_hit")),
    'prompt_tokens_by_source_total,source="external_kv_transfer"',
    *(f'prompt_tokens_cached_by_source_total,source="{name}"' for name in SOURCES),
    *(f'request_success_total,finished_reason="{reason}"' for reason in ("stop", "length", "error")),
    *(
        f"{name}_seconds_{part}"
        for name in ("time_to_first_token", "inter_token_latency", "request_queue_time", "e2e_request_latency")
        for part in ("sum", "count")
    ),
)


class VllmCounters:
    """The page of /metrics as 0.32 writes it, each number counted at the moment at which vLLM counts it."""

    def __init__(self) -> None:
        self.counts: dict[str, float] = dict.fromkeys(_COUNTED, 0)
        self.num_waiting = 0
        self.num_running = 0
        self.num_running_blocks = 0

    def add(self, name: str, number: float = 1) -> None:
        """Count; `name` may bring a label: `family,label="value"`."""
        self.counts[name] = self.counts.get(name, 0) + number

    def observe(self, name: str, seconds: float, number: int = 1) -> None:
        """Count into the sum and the count of a histogram."""
        self.add(f"{name}_seconds_sum", seconds)
        self.add(f"{name}_seconds_count", number)

    def count_prompt(self, num_tokens: int, hits: dict[str, int], *, is_offloading: bool) -> None:
        """One prompt as the scheduler takes it up."""
        device = hits.get("device", 0)
        external = sum(hits.values()) - device
        self.add("prefix_cache_queries_total", num_tokens)
        self.add("prefix_cache_hits_total", device)
        self.add("external_prefix_cache_queries_total", num_tokens - device if is_offloading else 0)
        self.add("external_prefix_cache_hits_total", external)
        self.add("prompt_tokens_total", num_tokens)
        self.add('prompt_tokens_by_source_total,source="local_compute"', num_tokens - device - external)
        self.add('prompt_tokens_by_source_total,source="local_cache_hit"', device)
        self.add('prompt_tokens_by_source_total,source="external_kv_transfer"', external)
        for source, tokens in hits.items():
            self.add(f'prompt_tokens_cached_by_source_total,source="{source}"', tokens)

    def render(self, num_gpu_blocks: int, max_model_len: int | None) -> str:
        """The page."""
        size = num_gpu_blocks * BLOCK_SIZE
        cache = (
            f'engine="0",block_size="{BLOCK_SIZE}",num_gpu_blocks="{num_gpu_blocks}",cache_dtype="auto",'
            f'kv_cache_size_tokens="{size}",kv_cache_max_concurrency="{size / (max_model_len or size)}"'
        )
        gauges = {
            "num_requests_running": self.num_running,
            "num_requests_waiting": self.num_waiting,
            "kv_cache_usage_perc": min(1.0, self.num_running_blocks / num_gpu_blocks),
        }
        lines = [f"vllm:cache_config_info{{{cache}}} 1.0"]
        for key, value in {**gauges, **self.counts}.items():
            name, _, label = key.partition(",")
            labels = f'engine="0",model_name="known"{"," if label else ""}{label}'
            lines.append(f"vllm:{name}{{{labels}}} {float(value)}")
        return "\n".join(lines) + "\n"
