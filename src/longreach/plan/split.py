"""How a model is spread over the GPUs of one instance: the ways worth counting, the largest tensor parallel size first. Pure."""

from dataclasses import dataclass, replace

from longreach.engine.options import EngineOptions
from longreach.engine.registry import get_registry
from longreach.engine.release import Release
from longreach.hardware.spec import Machine
from longreach.model.spec import ModelSpec
from longreach.plan.goal import Goal
from longreach.rules.deployment import Deployment
from longreach.rules.finding import Finding
from longreach.rules.parallel import SPLIT_RULES, dcp_impossible, quantization_group_split
from longreach.rules.split_blocks import fp8_blocks_split

WHOLE_EXPERTS = "--enable-expert-parallel"
_NO_WHOLE_EXPERTS = "--no-enable-expert-parallel"
_BLOCK_RULES = (fp8_blocks_split, quantization_group_split)


@dataclass(frozen=True, slots=True)
class Split:
    """Tensor x pipeline x data-parallel GPUs; DCP shares the tensor-parallel ones."""

    tp_size: int = 1
    pp_size: int = 1
    dp_size: int = 1
    dcp_size: int = 1

    @property
    def num_gpus(self) -> int:
        """GPUs that the instance occupies."""
        return self.tp_size * self.pp_size * self.dp_size

    def __str__(self) -> str:
        """`TP 2 x PP 2`."""
        sizes = (("PP", self.pp_size), ("DP", self.dp_size), ("DCP", self.dcp_size))
        return " x ".join([f"TP {self.tp_size}", *(f"{name} {size}" for name, size in sizes if size > 1)])


def possible_splits(
    model: ModelSpec, machine: Machine, release: Release, goal: Goal, num_gpus: int
) -> tuple[Split, ...]:
    """What was given as it is; else the largest TP that divides the model, then smaller ones with stages or replicas instead."""
    pp_size, dp_size = goal.pp_size or 1, goal.dp_size or 1
    if goal.tp_size is not None:
        return (Split(goal.tp_size, pp_size, dp_size, goal.dcp_size or 1),)
    dcp_size = goal.dcp_size or 1
    options = EngineOptions(reference_of(model, goal), data_parallel_size=dp_size, extra_args=goal.extra_args)
    probe = Deployment(model, machine, release, options, 1, 1, 1)
    even = [size for size in range(num_gpus // (pp_size * dp_size), 1, -1) if _divides(probe, size)]
    sizes = [size for size in even if not cut_blocks(probe, size)] or [size for size in even if _may_load(probe, size)]
    sizes = [size for size in sizes if size % dcp_size == 0] or sizes
    largest = Split((*sizes, 1)[0], pp_size, dp_size, dcp_size)
    if goal.pp_size is not None or goal.dp_size is not None or dcp_size > 1:
        return (largest,)
    others = [
        split
        for tp_size in (*sizes, 1)
        for split in (Split(tp_size, num_gpus // tp_size), Split(tp_size, 1, num_gpus // tp_size))
        if split.num_gpus > tp_size and (_can_replicate(model, goal) if split.dp_size > 1 else _can_stage(model, split))
    ]
    return (largest, *others)


def context_sizes(model: ModelSpec, machine: Machine, release: Release, goal: Goal, split: Split) -> tuple[int, ...]:
    """Decode context parallel sizes above 1 that this split may take: they spread copies of KV heads, or of the latent."""
    if goal.dcp_size is not None or split.tp_size == 1 or model.is_hybrid or machine.device_type != "cuda":
        return ()
    sizes = [size for size in range(2, split.tp_size + 1) if split.tp_size % size == 0]
    return tuple(
        size for size in sizes if not any(dcp_impossible.check(_probe(model, machine, release, split.tp_size, size)))
    )


def reference_of(model: ModelSpec, goal: Goal) -> str:
    """What `vllm serve` is given: the user's path, the published checkpoint in this weight format, or the model itself."""
    return goal.model_path or model.weights.checkpoint or model.hf_id or model.name


def with_whole_experts(deployment: Deployment) -> Deployment:
    """The same with expert parallelism, where experts would be cut in the middle of a block and that alone mends it."""
    if not any(True for rule in _BLOCK_RULES for _ in rule.check(deployment)):
        return deployment
    registry = get_registry(deployment.release.version)
    is_refused = _NO_WHOLE_EXPERTS in deployment.options.extra_args
    if is_refused or not deployment.model.is_moe or registry.find(WHOLE_EXPERTS) is None:
        return deployment
    options = replace(deployment.options, extra_args=(*deployment.options.extra_args, WHOLE_EXPERTS))
    mended = replace(deployment, options=options)
    return deployment if any(True for rule in _BLOCK_RULES for _ in rule.check(mended)) else mended


def cut_blocks(probe: Deployment, tp_size: int) -> tuple[Finding, ...]:
    """What is said of this size because blocks or groups of quantized weights are cut, whatever expert parallelism mends."""
    sized = with_whole_experts(_sized(probe, tp_size))
    return tuple(finding for rule in _BLOCK_RULES for finding in rule.check(sized))


def _may_load(probe: Deployment, tp_size: int) -> bool:
    """Groups of unknown size may survive the cut; blocks do not."""
    return all(finding.severity != "error" for finding in cut_blocks(probe, tp_size))


def _divides(probe: Deployment, tp_size: int) -> bool:
    return not any(True for rule in SPLIT_RULES for _ in rule.check(_sized(probe, tp_size)))


def _sized(probe: Deployment, tp_size: int) -> Deployment:
    return replace(probe, options=replace(probe.options, tensor_parallel_size=tp_size))


def _probe(model: ModelSpec, machine: Machine, release: Release, tp_size: int, dcp_size: int = 1) -> Deployment:
    options = EngineOptions(model.name, tensor_parallel_size=tp_size, decode_context_parallel_size=dcp_size)
    return Deployment(model, machine, release, options, 1, 1, 1)


def _can_replicate(model: ModelSpec, goal: Goal) -> bool:
    """Replicas serve many requests, none faster; vLLM spreads the experts of a MoE model over them, which is no replica."""
    return goal.concurrency is not None and goal.concurrency > 1 and not model.is_moe


def _can_stage(model: ModelSpec, split: Split) -> bool:
    return split.pp_size <= model.num_layers
