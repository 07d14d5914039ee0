"""What tensor, pipeline and context parallel sizes must divide, and what they do not divide: LR501 to LR510. Pure."""

from collections.abc import Iterator
from dataclasses import replace

from longreach.engine.options import EngineOptions
from longreach.model.spec import (
    AttentionLayer,
    GatedDeltaNetLayer,
    KdaLayer,
    LinearAttentionLayer,
    Mamba2Layer,
    MlaLayer,
)
from longreach.rules.deployment import Deployment
from longreach.rules.remedy import Remedy, set_option
from longreach.rules.rule import Diagnosis, Rule, rule
from longreach.units import round_up

_VOCAB_PADDING = 64  # the engine pads the vocabulary to a multiple of this before it splits it
_GROUP_SIZE = 128  # the usual group of W4A16 checkpoints


_MANY_NODES = (
    "--nnodes",
    "--node-rank",
    "--headless",
    "--data-parallel-size-local",
    "--data-parallel-address",
    "--data-parallel-start",
)
_DCP_SINCE = (0, 11)
_EXPERTS_STAY_WHOLE = frozenset(("--enable-expert-parallel", "--enable_expert_parallel", "-ep"))


def largest_even_size(deployment: Deployment, most: int) -> int | None:
    """The largest tensor parallel size up to `most` that divides all that must be whole on a GPU; None: there is none."""
    return next(
        (size for size in range(min(most, deployment.model.num_attention_heads), 0, -1) if _is_even(deployment, size)),
        None,
    )


def _is_even(deployment: Deployment, tp: int) -> bool:
    model, options = deployment.model, deployment.options
    whole = {model.num_attention_heads, round_up(model.vocab_size, _VOCAB_PADDING)}
    whole |= {heads for heads, _ in _state_heads(deployment)}
    if model.widths is not None and not experts_stay_whole(options):
        whole.add(model.widths.expert)
    return (
        all(size % tp == 0 for size in whole)
        and all(heads % tp == 0 or tp % heads == 0 for heads in _kv_heads(deployment))
        and tp % options.decode_context_parallel_size == 0
    )


def experts_stay_whole(options: EngineOptions) -> bool:
    """Whether expert parallelism spreads whole experts over the GPUs."""
    return not _EXPERTS_STAY_WHOLE.isdisjoint(options.extra_args)


def _kv_heads(deployment: Deployment) -> set[int]:
    return {layer.num_kv_heads for layer in deployment.model.layers if isinstance(layer, AttentionLayer)}


def _fewer_gpus(deployment: Deployment, most: int) -> Remedy | None:
    size = largest_even_size(deployment, most)
    return None if size is None else set_option("tensor_parallel_size", size)


def _divisors_below(value: int, limit: int) -> str:
    return ", ".join(str(size) for size in range(1, min(value, limit) + 1) if value % size == 0)


@rule(
    "LR501",
    "error",
    "tp_not_dividing_heads",
    "the tensor parallel size does not divide the attention heads",
    outcome="refused_at_start",
)
def tp_not_dividing_heads(deployment: Deployment) -> Iterator[Diagnosis]:
    """Each GPU computes whole heads."""
    heads, tp = deployment.model.num_attention_heads, deployment.tp_size
    if heads % tp == 0:
        return
    yield Diagnosis(
        f"tensor-parallel-size {tp} does not divide {heads} attention heads",
        f"vLLM refuses: 'Total number of attention heads ({heads}) must be divisible by tensor parallel size ({tp})'",
        f"set --tensor-parallel-size to one of {_divisors_below(heads, max(deployment.machine.num_gpus, tp))}",
        _fewer_gpus(deployment, tp - 1),
    )


@rule(
    "LR502",
    "error",
    "tp_does_not_divide_vocabulary",
    "the tensor parallel size does not divide the vocabulary",
    outcome="refused_at_start",
)
def tp_does_not_divide_vocabulary(deployment: Deployment) -> Iterator[Diagnosis]:
    """Embedding and output head are split by rows, after padding to a multiple of 64."""
    tp, vocabulary = deployment.tp_size, deployment.model.vocab_size
    padded = round_up(vocabulary, _VOCAB_PADDING)
    if padded % tp == 0:
        return
    yield Diagnosis(
        f"tensor-parallel-size {tp} does not divide the vocabulary of {vocabulary}",
        f"vLLM pads it to {padded} rows and asserts that {tp} divides them",
        f"set --tensor-parallel-size to one of {_divisors_below(padded, max(deployment.machine.num_gpus, tp))}",
        _fewer_gpus(deployment, tp - 1),
    )


@rule(
    "LR503",
    "error",
    "tp_splits_kv_heads_unevenly",
    "KV heads can be neither split nor copied evenly",
    outcome="refused_at_start",
)
def tp_splits_kv_heads_unevenly(deployment: Deployment) -> Iterator[Diagnosis]:
    """Either TP divides the KV heads or the KV heads divide TP."""
    tp = deployment.tp_size
    for heads in sorted(_kv_heads(deployment)):
        if heads % tp == 0 or tp % heads == 0:
            continue
        yield Diagnosis(
            f"tensor-parallel-size {tp} neither divides {heads} KV heads nor is a multiple of them",
            f"vLLM asserts {heads} % {tp} == 0 to split them, or {tp} % {heads} == 0 to copy them",
            f"set --tensor-parallel-size to one of {_divisors_below(heads, heads)}, or a multiple of {heads}",
            _fewer_gpus(deployment, tp - 1),
        )


@rule(
    "LR504",
    "error",
    "tp_splits_state_unevenly",
    "the recurrent layers cannot be split evenly",
    outcome="refused_at_start",
)
def tp_splits_state_unevenly(deployment: Deployment) -> Iterator[Diagnosis]:
    """State is split by heads, whole ones only."""
    tp = deployment.tp_size
    for heads, kind in sorted(_state_heads(deployment)):
        if heads % tp == 0:
            continue
        yield Diagnosis(
            f"tensor-parallel-size {tp} does not divide the {heads} {kind} heads of the recurrent layers",
            f"each GPU keeps the state of whole heads; vLLM stops with '{heads} is not divisible by {tp}'",
            f"set --tensor-parallel-size to one of {_divisors_below(heads, max(deployment.machine.num_gpus, tp))}",
            _fewer_gpus(deployment, tp - 1),
        )


def _state_heads(deployment: Deployment) -> set[tuple[int, str]]:
    heads: set[tuple[int, str]] = set()
    for layer in deployment.model.layers:
        if isinstance(layer, GatedDeltaNetLayer):
            heads |= {(layer.num_k_heads, "key"), (layer.num_v_heads, "value")}
        elif isinstance(layer, KdaLayer | Mamba2Layer | LinearAttentionLayer):
            heads.add((layer.num_heads, "state"))
    return heads


@rule("LR505", "advice", "kv_heads_replicated", "KV heads are copied, not divided")
def kv_heads_replicated(deployment: Deployment) -> Iterator[Diagnosis]:
    """Beyond the number of KV heads, more GPUs hold copies."""
    tp, heads, dcp = deployment.tp_size, deployment.model.num_kv_heads, deployment.options.decode_context_parallel_size
    if deployment.has_mla or heads >= tp or tp % heads or dcp >= tp // heads:
        return
    if not any(isinstance(layer, AttentionLayer) for layer in deployment.model.layers):
        return
    copies = tp // heads
    instances = f"run {copies} instances of --tensor-parallel-size {heads} where the weights fit"
    spread = f"spread the tokens instead of copies with --decode-context-parallel-size {copies}, or "
    has_flag = deployment.release.number >= _DCP_SINCE
    can_spread = has_flag and not deployment.model.is_hybrid and _why_dcp_is_impossible(deployment, tp, copies) is None
    yield Diagnosis(
        f"each of {heads} KV heads is kept {copies} times on tensor-parallel-size {tp}",
        f"a GPU keeps at least one head: a token takes as many bytes per GPU as with --tensor-parallel-size {heads}",
        (spread if can_spread else "") + instances,
        set_option("decode_context_parallel_size", copies) if can_spread else None,
    )


@rule("LR506", "advice", "mla_latent_replicated", "every GPU keeps the whole latent", first="0.11.0")
def mla_latent_replicated(deployment: Deployment) -> Iterator[Diagnosis]:
    """A latent has no heads to divide."""
    tp, dcp = deployment.tp_size, deployment.options.decode_context_parallel_size
    if not deployment.has_mla or tp in (1, dcp):
        return
    all_latent = all(isinstance(layer, MlaLayer) for layer in deployment.model.layers)
    yield Diagnosis(
        f"tensor-parallel-size {tp} does not enlarge the KV cache of '{deployment.model.name}'",
        f"its attention keeps one latent per token and every one of {tp} GPUs holds all of it",
        f"add --decode-context-parallel-size {tp} to spread the tokens over the GPUs, where its attention backend has it",
        set_option("decode_context_parallel_size", tp) if all_latent else None,
    )


@rule("LR507", "error", "more_workers_than_gpus", "more GPUs are asked for than there are", outcome="refused_at_start")
def more_workers_than_gpus(deployment: Deployment) -> Iterator[Diagnosis]:
    """TP x PP x DP of all instances."""
    options, machine = deployment.options, deployment.machine
    if machine.device_type == "cpu" or machine.num_gpus == 0 or _spans_nodes(deployment):
        return
    needed = deployment.num_gpus_of_all
    if needed <= machine.num_gpus:
        return
    most = machine.num_gpus // (options.pipeline_parallel_size * options.data_parallel_size)
    fewer = None if deployment.others else _fewer_gpus(deployment, most) or one_engine(deployment)
    yield Diagnosis(
        f"{needed} GPUs are asked for and the machine has {machine.num_gpus}",
        f"tensor {deployment.tp_size} x pipeline {options.pipeline_parallel_size} x data {options.data_parallel_size}"
        + (f", beside {len(deployment.others)} other instances" if len(deployment.others) > 1 else "")
        + (", beside another instance" if len(deployment.others) == 1 else ""),
        "lower --tensor-parallel-size, --pipeline-parallel-size or --data-parallel-size"
        if fewer is None
        else f"set {_as_flags(fewer, options)}",
        fewer,
    )


def _as_flags(remedy: Remedy, options: EngineOptions) -> str:
    """The sizes that a remedy changes, as words of a command."""
    changed = ((name, value) for name, value in remedy.changes if getattr(options, name) != value)
    return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in changed)


def one_engine(deployment: Deployment) -> Remedy | None:
    """Tensor parallelism alone over the GPUs that are there."""
    options = replace(deployment.options, decode_context_parallel_size=1)
    size = largest_even_size(replace(deployment, options=options), deployment.machine.num_gpus)
    if size is None:
        return None
    names = ("pipeline_parallel_size", "data_parallel_size", "decode_context_parallel_size")
    return Remedy((("tensor_parallel_size", size), *((name, 1) for name in names)))


def _spans_nodes(deployment: Deployment) -> bool:
    """Words by which a command says that more than this machine takes part."""
    words = deployment.options.extra_args
    return any(word.replace("_", "-").startswith(_MANY_NODES) for word in words) or "ray" in words


@rule("LR508", "error", "dcp_impossible", "the decode context parallel size cannot be", outcome="refused_at_start")
def dcp_impossible(deployment: Deployment) -> Iterator[Diagnosis]:
    """DCP shares one TP group's copies: it divides TP, and for grouped attention only what is left after the KV heads."""
    tp, dcp = deployment.tp_size, deployment.options.decode_context_parallel_size
    if dcp == 1:
        return
    reason = _why_dcp_is_impossible(deployment, tp, dcp)
    if reason is None:
        return
    yield Diagnosis(
        f"decode-context-parallel-size {dcp} does not go with tensor-parallel-size {tp}",
        reason,
        "leave --decode-context-parallel-size out",
        set_option("decode_context_parallel_size", 1),
    )


def _why_dcp_is_impossible(deployment: Deployment, tp: int, dcp: int) -> str | None:
    model = deployment.model
    if tp % dcp:
        return f"it must divide it: {tp} % {dcp} is {tp % dcp}"
    if deployment.has_mla:
        return None
    copies = tp // model.num_kv_heads
    if dcp > copies:
        return f"it spreads copies of KV heads, and {model.num_kv_heads} heads over {tp} GPUs leave {max(copies, 1)} of each"
    queries = model.num_attention_heads // model.num_kv_heads
    return f"it must divide the {queries} query heads of each KV head" if queries % dcp else None


@rule("LR509", "warning", "quantization_group_split", "a quantization group may not survive the split")
def quantization_group_split(deployment: Deployment) -> Iterator[Diagnosis]:
    """Projections split over their inputs must get whole groups: heads x head_dim / TP, the feed-forward width / TP."""
    model, tp = deployment.model, deployment.tp_size
    split = next(
        (found for found in _split_inputs(deployment) if found[1] % tp == 0 and (found[1] // tp) % _GROUP_SIZE), None
    )
    if model.weights.quantization != "w4a16" or tp == 1 or split is None:
        return
    name, inputs = split
    yield Diagnosis(
        f"tensor-parallel-size {tp} cuts W4A16 groups of {_GROUP_SIZE} in {name}",
        f"{inputs} inputs / {tp} = {inputs // tp} per GPU, no multiple of {_GROUP_SIZE}; vLLM then stops with 'not divisible by "
        "group_size' unless the checkpoint's group is smaller",
        "read group_size in quantization_config, and use fewer GPUs per instance or a checkpoint with smaller groups",
    )


@rule("LR510", "advice", "pp_stages_uneven", "the pipeline stages are uneven")
def pp_stages_uneven(deployment: Deployment) -> Iterator[Diagnosis]:
    """The stage with most layers has least room, and the smallest pool counts for all."""
    pp, layers = deployment.options.pipeline_parallel_size, deployment.model.num_layers
    if pp == 1 or layers % pp == 0:
        return
    yield Diagnosis(
        f"pipeline-parallel-size {pp} splits {layers} layers into stages of {layers // pp} and {layers // pp + 1}",
        f"every GPU gets the number of KV blocks of the fullest stage ({layers // pp + 1} layers); the others stay part empty",
        f"set --pipeline-parallel-size to a divisor of {layers}: {_divisors_below(layers, max(pp, 8))}",
    )


_PADDED_WIDTHS = {29_568: 29_696}  # Qwen pads its 72B checkpoints of AWQ and GPTQ so that eight GPUs can share them


def _split_inputs(deployment: Deployment) -> Iterator[tuple[str, int]]:
    """(projection, its inputs) of those that TP cuts along their inputs."""
    model = deployment.model
    yield "the output projection", model.num_attention_heads * model.head_dim
    if model.widths is not None and model.widths.dense:
        yield "the feed-forward layers", _PADDED_WIDTHS.get(model.widths.dense, model.widths.dense)
    if model.widths is not None and model.widths.expert and not experts_stay_whole(deployment.options):
        yield "the experts", model.widths.expert


SPLIT_RULES: tuple[Rule, ...] = (
    tp_not_dividing_heads,
    tp_does_not_divide_vocabulary,
    tp_splits_kv_heads_unevenly,
    tp_splits_state_unevenly,
)
"""Those that decide whether a tensor parallel size is possible at all."""

RULES: tuple[Rule, ...] = (
    tp_not_dividing_heads,
    tp_does_not_divide_vocabulary,
    tp_splits_kv_heads_unevenly,
    tp_splits_state_unevenly,
    kv_heads_replicated,
    mla_latent_replicated,
    more_workers_than_gpus,
    dcp_impossible,
    quantization_group_split,
    pp_stages_uneven,
)
