"""Lines of an engine's log as typed events. Pure."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KvCapacityLine:
    """The KV capacity vLLM prints. Up to 0.27 tokens and concurrency come on two lines; the missing half is None."""

    device: str | None  # "GPU", "CPU", ...
    kv_capacity_tokens: int | None
    max_model_len: int | None
    max_concurrency: float | None


_CAPACITY = re.compile(r"(\w+) KV cache size: ([\d,]+) tokens")
_CONCURRENCY = re.compile(r"Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x")


def parse_kv_capacity(line: str) -> KvCapacityLine | None:
    """Capacity, concurrency or both, in either form and for any device word."""
    size, concurrency = _CAPACITY.search(line), _CONCURRENCY.search(line)
    if size is None and concurrency is None:
        return None
    return KvCapacityLine(
        size and size[1],
        size and int(size[2].replace(",", "")),
        concurrency and int(concurrency[1].replace(",", "")),
        concurrency and float(concurrency[2]),
    )
