"""What vLLM printed as "Available KV cache memory" against the range and the best guess of `sizing.memory`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from tests.sizing.cases import read_cases

from longreach.engine.defaults import default_max_num_batched_tokens, default_max_num_seqs
from longreach.engine.release import DEFAULT_RELEASE, get_release
from longreach.hardware.catalogue import find_gpu
from longreach.hardware.spec import GpuSpec, Machine
from longreach.model.source import load_model
from longreach.model.spec import ModelSpec
from longreach.sizing.memory import MemoryRequest, budget_memory
from longreach.sizing.rope import rope_table_bytes
from longreach.units import GIB


@dataclass(frozen=True, slots=True)
class Forecast:
    """One start: GiB of KV cache foreseen and printed."""

    case: Mapping[str, Any]
    low: float
    middle: float
    high: float

    @property
    def printed(self) -> float:
        """What the engine logged, to 0.01 GiB."""
        return float(self.case["available_gib"])

    @property
    def inside(self) -> bool:
        """Whether the range holds what was printed."""
        return self.low <= self.printed <= self.high

    @property
    def error(self) -> float:
        """How far the best guess lies off, as a share of what was printed."""
        return (self.middle - self.printed) / self.printed

    @property
    def width(self) -> float:
        """The range's width, as a share of what was printed."""
        return (self.high - self.low) / self.printed


def forecasts() -> tuple[Forecast, ...]:
    """Every start whose model, checkpoint and GPU are known; settings that the source does not show are vLLM's defaults."""
    return tuple(_forecast(case) for case in read_cases("available_memory"))


def stated(found: Sequence[Forecast]) -> tuple[Forecast, ...]:
    """Those whose source shows every setting and the release."""
    return tuple(item for item in found if not item.case["assumed"])


def section() -> str:
    """The table and its summary, in Markdown."""
    found = sorted(forecasts(), key=lambda item: (bool(item.case["assumed"]), item.case["id"]))
    skipped = Counter(case["why"] for case in read_cases("available_memory_not_counted"))
    lines = [
        "## Available KV memory under --gpu-memory-utilization",
        "",
        "GiB on one GPU. The error is the best guess over the printed figure. Settings that a source does not show are taken",
        f"for vLLM's defaults, a release that it does not name for {DEFAULT_RELEASE}.",
        "",
        "| start | release | GPUs | low | best guess | high | printed | inside | error | not shown |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(_row(item) for item in found),
        "",
        f"- {_summary('all of them', found)}",
        f"- {_summary('every setting shown', stated(found))}",
        f"- {sum(skipped.values())} more starts print the figure and are not counted: {_reasons(skipped)}",
    ]
    return "\n".join(lines) + "\n"


def request_of(case: Mapping[str, Any]) -> MemoryRequest:
    """The start as a request."""
    gpu, settings = find_gpu(case["gpu"]), dict(case["settings"])
    settings.pop("max_model_len", None)
    release = get_release(case["release"] or DEFAULT_RELEASE)
    settings.setdefault("gpu_memory_utilization", release.default_gpu_memory_utilization)
    seen = _seen_bytes(gpu)
    tokens = int(settings.pop("max_num_batched_tokens", 0) or default_max_num_batched_tokens(seen, gpu.name) or 0)
    sequences = int(settings.pop("max_num_seqs", 0) or default_max_num_seqs(seen, gpu.name) or 0)
    model = _checkpoint(case)
    return MemoryRequest(
        model=model,
        machine=Machine(gpu=gpu, num_gpus=case["num_gpus"], link=None),
        tp_size=case["num_gpus"],
        pp_size=1,
        max_num_batched_tokens=tokens,
        max_num_seqs=min(sequences, tokens),
        release=release,
        rope_table_bytes=rope_table_bytes(model, None),
        **settings,
    )


def _checkpoint(case: Mapping[str, Any]) -> ModelSpec:
    """The model in its published form; a size that the log prints replaces the catalogue's."""
    model = load_model(case["model"], case["weights"])
    if "checkpoint_gib" not in case:
        return model
    size = int(case["checkpoint_gib"] * GIB)
    return replace(model, weights=replace(model.weights, total_bytes=size, source="printed while loading"))


def _seen_bytes(gpu: GpuSpec) -> int:
    """What vLLM's defaults hang on: the driver's total; where it prints none (GB10), those of a small card hold."""
    return gpu.memory_bytes or 0


def _forecast(case: Mapping[str, Any]) -> Forecast:
    budget = budget_memory(request_of(case))
    assert budget.kv_bytes is not None, case["id"]
    assert budget.kv_middle_bytes is not None, case["id"]
    low, high = budget.kv_bytes
    return Forecast(case, low / GIB, budget.kv_middle_bytes / GIB, high / GIB)


def _row(item: Forecast) -> str:
    case = item.case
    cells = (
        case["id"],
        case["release"] or "",
        f"{case['num_gpus']} x {case['gpu']}",
        f"{item.low:.2f}",
        f"{item.middle:.2f}",
        f"{item.high:.2f}",
        f"{item.printed:.2f}",
        "yes" if item.inside else "no",
        f"{item.error:+.1%}",
        ", ".join(case["assumed"]),
    )
    return f"| {' | '.join(cells)} |"


def _summary(name: str, found: Sequence[Forecast]) -> str:
    inside = sum(item.inside for item in found)
    error, width = median(abs(item.error) for item in found), median(item.width for item in found)
    share = f"{inside} of {len(found)} inside ({inside / len(found):.0%})"
    return f"{name}: {share}, median error {error:.1%}, median width of the range {width:.0%}"


def _reasons(counted: Counter[str]) -> str:
    return "; ".join(f"{why} ({count})" for why, count in sorted(counted.items()))
