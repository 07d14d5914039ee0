"""Numbers that vLLM's parser takes and its settings classes, or the first use of them, refuse. Pure.

Read in the fields of vllm/config; the upper ends of counts are those of the 32-bit integers that hold them on the GPU.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from longreach.engine.flag_values import ABSENT_TEXTS, parse_size
from longreach.engine.parsing.parsed import Use, is_open

_INT32 = 2**31 - 1
_INT64 = 2**63 - 1
_MOST_GPUS = 2**16  # far beyond any cluster
_COUNTS = "it counts something and starts at 1"
_WHOLE = "vLLM holds it in a 32-bit integer"


@dataclass(frozen=True, slots=True)
class Range:
    """From `low` (not itself where it is `open`) to `high`."""

    low: float
    high: float
    too_low: str = _COUNTS
    too_high: str = _WHOLE
    is_open: bool = False

    def holds(self, number: float) -> bool:
        """Whether the number is in the range; NaN is in none."""
        return (self.low < number if self.is_open else self.low <= number) and number <= self.high


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value outside the range of its flag. `meant`: what can only have been meant, if anything."""

    what: str
    why: str
    fix: str
    meant: str | None = None


_GPUS = Range(1, _MOST_GPUS, too_high="no cluster has so many GPUs")
_COUNT = Range(1, _INT32)
_FROM_ZERO = Range(0, _INT32, too_low="it cannot be less than nothing")
_BYTES = Range(1, _INT64, too_low="it is a size in bytes", too_high="no GPU has so much memory")
_GIB = Range(0, 1e6, too_low="it is a size in GiB", too_high="no machine has so much memory")
_SHARE = Range(
    0, 1, "it is the share of GPU memory that vLLM may use", "it is the share of GPU memory that vLLM may use", True
)
_PORT = Range(1, 65535, "ports are 1 to 65535", "ports are 1 to 65535")

RANGES: Mapping[str, Range] = {
    "--tensor-parallel-size": _GPUS,
    "--pipeline-parallel-size": _GPUS,
    "--data-parallel-size": _GPUS,
    "--prefill-context-parallel-size": _GPUS,
    "--decode-context-parallel-size": _GPUS,
    "--data-parallel-size-local": Range(0, _MOST_GPUS, "it cannot be less than nothing", "no cluster has so many GPUs"),
    "--nnodes": _GPUS,
    "--max-model-len": _COUNT,
    "--max-num-seqs": _COUNT,
    "--max-num-batched-tokens": _COUNT,
    "--max-num-scheduled-tokens": _COUNT,
    "--max-num-partial-prefills": _COUNT,
    "--max-long-partial-prefills": _COUNT,
    "--long-prefill-token-threshold": _FROM_ZERO,
    "--block-size": _COUNT,
    "--mamba-block-size": _COUNT,
    "--num-gpu-blocks-override": _COUNT,
    "--max-loras": _COUNT,
    "--stream-interval": _COUNT,
    "--kv-cache-memory-bytes": _BYTES,
    "--gpu-memory-utilization": _SHARE,
    "--cpu-offload-gb": _GIB,
    "--swap-space": _GIB,
    "--mm-processor-cache-gb": _GIB,
    "--mm-ipc-gpu-memory-gb": _GIB,
    "--kv-offloading-size": Range(
        0, 1e6, "it is the size of the CPU tier in GiB", "no machine has so much memory", is_open=True
    ),
    "--port": _PORT,
}


def find_misfit(use: Use) -> Misfit | None:
    """What is wrong with the number that a flag carries; None where it may be right, or is no number."""
    limits, text = RANGES.get(use.name), use.value
    number = None if limits is None or text is None or use.entry is None or use.path else _number(use.entry.kind, text)
    if limits is None or text is None or number is None or limits.holds(number):
        return None
    ends = (
        f"above {limits.low:g} and up to {limits.high:.0f}"
        if limits.is_open
        else f"{limits.low:g} to {limits.high:.0f}"
    )
    why = limits.too_high if number > limits.high else limits.too_low
    shown = text if len(text) <= 24 else f"{text[:21]}..."
    what = f"{use.name} {shown} is out of range"
    if limits is _SHARE and 1 < number <= 100:
        meant = f"{number / 100:g}"
        return Misfit(what, f"{why}, {ends}", f"{use.name} {meant}", meant)
    return Misfit(what, f"{why}: {ends}", f"give {use.name} {ends}, or remove it")


def _number(kind: str, text: str) -> float | None:
    """The number as the parser reads it; None for `auto` and -1 of a length, and for what is no number."""
    if text in ABSENT_TEXTS or is_open(text) or (kind == "length" and text.strip().lower() in ("auto", "-1")):
        return None
    try:
        return float(text) if kind == "float" else parse_size(text) if kind in ("size", "length") else int(text)
    except ValueError:
        return None
