"""Changes of a goal that may make it fit: settings, more of the machine, smaller weights, more GPUs. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from longreach.engine.options import EngineOptions
from longreach.engine.registry import get_registry
from longreach.errors import UsageError
from longreach.hardware.links import default_link, find_link
from longreach.hardware.spec import GpuSpec, LinkSpec, Machine
from longreach.model.catalogue import find_catalogue_model, with_quantization
from longreach.model.spec import QuantizationName
from longreach.plan.count import Case, Decision
from longreach.plan.extra import read_extra
from longreach.rules.deployment import Deployment
from longreach.rules.kv_dtype import RULES as KV_DTYPE_RULES

SMALL_CHUNK = 2048
"""VLLM's default on cards below 70 GiB."""

_TEXT_ONLY = "--language-model-only"
_USUAL_BOX = 8  # GPUs; a box that has them already may double
_WEIGHT_BITS: dict[QuantizationName, int] = {"fp8": 8, "w4a16": 4, "nvfp4": 4}
_OTHER_BITS = {"fp8-weight-only": 8, "w8a8-int8": 8, "w4a8-int8": 4, "mxfp4": 4, "other": 4}


@dataclass(frozen=True, slots=True)
class Change:
    """One change of what was asked, and the words that ask for it."""

    words: str
    options: tuple[str, ...]
    goal: Mapping[str, Any]  # fields of Goal
    case: Mapping[str, Any] = field(default_factory=dict)  # fields of Case

    def applied(self, case: Case) -> Case:
        """The case as it would be asked."""
        return replace(case, **self.case, goal=replace(case.goal, **self.goal))


NO_CHANGE = Change("", (), {})


def setting_changes(case: Case, taken: Decision) -> Iterator[Change]:
    """Settings that were given and may be given otherwise, the least change first. What was not given is chosen already."""
    goal = case.goal
    if goal.kv_cache_memory_bytes is not None:
        yield Change("more KV cache", (), {"kv_cache_memory_bytes": None})
    share = case.release.default_gpu_memory_utilization
    if goal.gpu_memory_utilization is not None and goal.gpu_memory_utilization < share:
        options = ("--gpu-memory-utilization", f"{share:g}")
        yield Change(f"{share:.0%} of the card", options, {"gpu_memory_utilization": share})
    if goal.speculation not in (None, "none"):
        yield Change(f"no drafts ({goal.speculation})", ("--spec", "none"), {"speculation": "none"})
    if goal.max_num_batched_tokens is not None and goal.max_num_batched_tokens > SMALL_CHUNK:
        options = ("--max-num-batched-tokens", str(SMALL_CHUNK))
        yield Change(f"chunks of {SMALL_CHUNK:,}", options, {"max_num_batched_tokens": SMALL_CHUNK})
    if goal.dcp_size is not None:
        yield Change("more DCP", (), {"dcp_size": None})
    for dtype in _narrow_dtypes(case, taken):
        yield Change(f"{dtype.partition('_')[0]} KV cache", ("--kv-cache-dtype", dtype), {"kv_cache_dtype": dtype})
    if goal.yarn == "none" and not taken.rope.reachable:
        yield Change("YaRN", ("--yarn", "auto"), {"yarn": "auto"})
    if case.model.is_multimodal and not case.extra.text_only and goal.images_per_prompt is None:
        yield from _text_only(case)


def _text_only(case: Case) -> Iterator[Change]:
    """Without its towers a multimodal model leaves more to the KV cache."""
    if get_registry(case.release.version).find(_TEXT_ONLY) is not None:
        words = (*case.goal.extra_args, _TEXT_ONLY)
        yield Change(
            "text alone", ("--", _TEXT_ONLY), {"extra_args": words}, {"extra": read_extra(words, case.release)}
        )


def together(changes: list[Change]) -> Change | None:
    """All settings at once, of two values for one option the first; None where that is one change."""
    first: dict[str, Change] = {}
    for change in changes:
        if not change.goal.keys() & first.keys():
            first |= dict.fromkeys(change.goal, change)
    taken = list(dict.fromkeys(change.words for change in first.values()))
    if len(taken) < 2:
        return None
    merged = [change for change in changes if change.words in taken]
    options = tuple(word for change in merged for word in change.options)
    case = {name: value for change in merged for name, value in change.case.items()}
    return Change(", ".join(taken), options, {name: change.goal[name] for name, change in first.items()}, case)


def larger_changes(case: Case, taken: Decision) -> Iterator[Change]:
    """All GPUs of the machine, other weights, more GPUs; for an instance that has the machine to itself."""
    free: dict[str, Any] = {"tp_size": None, "pp_size": None, "dp_size": None, "dcp_size": None}
    if case.goal.kv_cache_memory_bytes is not None:
        free["kv_cache_memory_bytes"] = None  # given for fewer GPUs, each of which held more of the weights
    if taken.settled.split.num_gpus < case.num_gpus:
        yield Change(f"all {case.num_gpus} GPUs", (), free)
    split = taken.settled.split
    taken_split = {"tp_size": split.tp_size, "pp_size": split.pp_size, "dp_size": split.dp_size}
    yield from _weight_changes(case, taken_split)
    yield from _more_gpus(case, taken, free)


def _more_gpus(case: Case, taken: Decision, free: Mapping[str, Any]) -> Iterator[Change]:
    """The next powers of two of the same card, fewest first, from where the weights leave anything."""
    gpu, count, own = case.machine.gpu, case.machine.num_gpus, case.machine.num_gpus
    while gpu is not None and count and (count := _next_power_of_two(count)) <= max(_USUAL_BOX, 2 * own):
        if _is_filled(taken, count):
            continue
        machine = replace(case.machine, num_gpus=count, link=_link(case.machine, gpu, count))
        words = f"{count - own} GPU{'s' if count - own > 1 else ''} more"
        yield Change(words, ("--gpus", f"{count}x{typed_name(gpu)}"), free, {"machine": machine, "num_gpus": count})


def _narrow_dtypes(case: Case, taken: Decision) -> Iterator[str]:
    """KV dtypes below the planned one that the card, its backends and the release take."""
    gpu, own = case.machine.gpu, taken.fit.kv_cache_dtype
    if gpu is None or gpu.fp8_support not in ("native", "emulated") or case.model.kv_cache_dtype_forced is not None:
        return
    wider = own in ("auto", "bfloat16", "float16")
    narrow = (("fp8_e4m3",) if wider else ()) + (
        ("nvfp4",) if gpu.fp4_flops and (wider or own.startswith("fp8")) else ()
    )
    for dtype in narrow:
        options = EngineOptions(case.model.name, kv_cache_dtype=dtype)
        probe = Deployment(case.model, case.machine, case.release, options, 1, 1, 1)
        is_known = dtype in get_registry(case.release.version).names("kv_cache_dtype")
        if is_known and not any(
            finding.severity == "error" for rule in KV_DTYPE_RULES for finding in rule.check(probe)
        ):
            yield dtype


def _is_filled(taken: Decision, count: int) -> bool:
    """The least that the weights take fills even this many GPUs."""
    memory = taken.fit.memory
    if memory.weights_bytes is None or memory.gpu_total_bytes is None:
        return False
    split = taken.settled.split
    return memory.weights_bytes[0] * split.tp_size * split.pp_size / count > memory.gpu_total_bytes[1]


def _weight_changes(case: Case, split: Mapping[str, Any]) -> Iterator[Change]:
    """Published checkpoints of the same model with fewer bits, where the card computes with them."""
    model, gpu = case.model, case.machine.gpu
    if model.hf_id is None or find_catalogue_model(model.name) is None:
        return
    own = model.weights.quantization
    own_bits = 16 if own == "none" else _WEIGHT_BITS.get(own) or _OTHER_BITS[own]
    for form, bits in _WEIGHT_BITS.items():
        smaller = with_quantization(model, model.name, form)
        is_native = form != "nvfp4" or (gpu is not None and gpu.fp4_flops is not None)
        if smaller.weights.checkpoint is not None and bits < own_bits and is_native:
            yield Change(f"{form} weights", ("--weights", form), split, {"model": smaller})


def _next_power_of_two(count: int) -> int:
    return 1 << count.bit_length()


def _link(machine: Machine, gpu: GpuSpec, count: int) -> LinkSpec | None:
    try:
        return find_link(machine.link.name, gpu, count) if machine.link else default_link(gpu, count)
    except UsageError:
        return default_link(gpu, count)


def typed_name(gpu: GpuSpec) -> str:
    """`GeForce RTX 4090` to `RTX4090`, `H100 SXM5 80GB` to `H100-SXM5-80GB`: one word for --gpus."""
    family, *rest = gpu.name.removeprefix("GeForce ").split()
    return ("" if family == "RTX" and len(rest) == 1 else "-").join((family, *rest))
