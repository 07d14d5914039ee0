"""How far the model's rotary embedding reaches, and what YaRN costs: LR201 to LR215. Pure."""

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

from longreach.rules.deployment import Deployment
from longreach.rules.remedy import Remedy, set_option
from longreach.rules.rule import Diagnosis, HasOptions, Rule, rule
from longreach.sizing.kv_cache import size_kv_cache
from longreach.sizing.overrides import filled_theta
from longreach.units import MIB, format_bytes, format_room

_ALLOW_LONG = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"
_ROOMY_FACTOR = 1.25  # a factor this much above need is worth a word


def _native_tokens(deployment: Deployment) -> int:
    return deployment.model.native_context_tokens or deployment.model.max_position_embeddings


@rule(
    "LR201",
    "error",
    "max_len_over_derived",
    "max-model-len is beyond the model's positions and nothing stretches them",
    outcome="refused_at_start",
)
def max_len_over_derived(deployment: Deployment) -> Iterator[Diagnosis]:
    """The engine refuses a length above the derived one."""
    allowed, rope = deployment.model.max_position_embeddings, deployment.rope
    if deployment.options.yarn is not None or deployment.max_model_len <= allowed or _is_silenced(deployment):
        return
    if rope is not None and not rope.reachable:
        return
    ways = [f"--max-model-len {allowed}"]
    if rope is not None and rope.options is not None:
        ways.insert(
            0,
            f"YaRN factor {rope.options.factor:g} "
            + ("in --hf-overrides" if deployment.is_foreign else "in the plan (--yarn)"),
        )
    elif deployment.is_foreign:
        ways.append("override the rope with YaRN where the publisher states it reaches that length")
    yield Diagnosis(
        f"max-model-len {deployment.max_model_len} is beyond the {allowed} positions of the model",
        f"vLLM derives its limit from max_position_embeddings={allowed} and refuses a larger --max-model-len",
        f"set {', or '.join(ways)}",
        _remedy_for_length(deployment, allowed),
    )


def _is_silenced(deployment: Deployment) -> bool:
    return dict(deployment.options.env).get(_ALLOW_LONG) not in (None, "0", "")


def _remedy_for_length(deployment: Deployment, allowed: int) -> Remedy | None:
    rope = deployment.rope
    if rope is not None and rope.options is not None:
        return set_option("yarn", rope.options)
    return set_option("max_model_len", allowed) if deployment.is_foreign and not deployment.rope_is_overridden else None


@rule(
    "LR202", "error", "rope_cannot_stretch", "the model's rope cannot reach max-model-len", outcome="refused_at_start"
)
def rope_cannot_stretch(deployment: Deployment) -> Iterator[Diagnosis]:
    """No override makes this rotary embedding mean anything at that length."""
    rope = deployment.rope
    if rope is None or rope.reachable:
        return
    yield Diagnosis(
        f"max-model-len {deployment.max_model_len} is out of reach of the model's rope",
        f"{rope.reason} (native length {rope.native_tokens})",
        f"set --max-model-len to {rope.native_tokens}, or take a model made for long contexts",
        set_option("max_model_len", rope.native_tokens),
    )


@rule("LR203", "warning", "yarn_costs_short_prompts", "YaRN also changes short prompts")
def yarn_costs_short_prompts(deployment: Deployment) -> Iterator[Diagnosis]:
    """YaRN in vLLM is static: one factor at every length."""
    yarn, native = deployment.options.yarn, _native_tokens(deployment)
    if yarn is None or not (short_share := _share_within(deployment, native)):
        return
    whose = "prompts of every length"
    if deployment.prompt_shares:
        whose = f"the {short_share:.0%} of the prompts that do not need it, too"
    yield Diagnosis(
        f"YaRN factor {yarn.factor:g} is applied to {whose}",
        f"positions and attention scale change below {native} tokens too; reports with factor 4: Arena-Hard 39 to 26.5 on an "
        "8B, 15 to 20 % on agent tasks on a 32B (single runs); no controlled figure is known for other factors",
        _two_instances(deployment, native),
    )


def _share_within(deployment: Deployment, native: int) -> float:
    """Of the prompts those within the model's own positions; all, or none, where only their mean is known."""
    mean = deployment.mean_input_tokens
    if deployment.prompt_shares:
        return sum(share for share, tokens in deployment.prompt_shares if tokens <= native)
    return 0.0 if mean is not None and mean > native else 1.0


def _two_instances(deployment: Deployment, native: int) -> str:
    spare = deployment.machine.num_gpus - deployment.num_gpus_of_all
    if spare >= deployment.num_gpus_per_engine:
        split = "a second instance on the GPUs that are free"
    else:
        split = _half_each(deployment, native)
    return (
        f"serve prompts up to {native} tokens without YaRN and only longer ones with it: {split}, behind a router "
        "that knows prompt lengths; or take the smallest factor that reaches your length"
    )


def _half_each(deployment: Deployment, native: int) -> str:
    """Two instances on half the GPUs each, with the KV bytes either needs, unless that is sure not to fit."""
    request, memory, tp = deployment.kv_request, deployment.memory, deployment.tp_size
    if tp % 2:
        return "a second instance on GPUs of its own"
    split = f"two instances of --tp {tp // 2}"
    if (
        request is None
        or memory is None
        or not (memory.gpu_total_bytes and memory.weights_bytes and memory.other_bytes)
    ):
        return f"{split}, if the length still fits"
    half = replace(request, tp_size=tp // 2, dcp_size=1)
    short, long = (
        size_kv_cache(replace(half, max_model_len=length)).needed_bytes_per_gpu
        for length in (native, deployment.max_model_len)
    )
    left = [
        total - 2 * weights - other
        for total, weights, other in zip(
            memory.gpu_total_bytes, reversed(memory.weights_bytes), reversed(memory.other_bytes), strict=True
        )
    ]
    if long > left[1]:
        most = format_room(left[1], left[1])
        return f"a second instance on GPUs of its own (half of these leave {most} per GPU, and {format_bytes(long)} is needed)"
    return (
        f"{split}, which need {format_bytes(short)} and {format_bytes(long)} of KV per GPU for {native} and "
        f"{deployment.max_model_len} tokens where {format_room(*left)} is left"
    )


@rule(
    "LR204",
    "advice",
    "yarn_needs_max_position_embeddings",
    "YaRN needs max_position_embeddings beside it",
    first="0.30.0",
)
def yarn_needs_max_position_embeddings(deployment: Deployment) -> Iterator[Diagnosis]:
    """Up to 0.29 the factor widened the derived length; from 0.30 it does not."""
    yarn = deployment.options.yarn
    if yarn is None or not deployment.release.yarn_needs_max_position_embeddings or deployment.is_foreign:
        return
    length, version = yarn.max_position_embeddings, deployment.release.version
    yield Diagnosis(
        f"YaRN on {version} needs max_position_embeddings {length} in the same override",
        f"from 0.30 the factor is not multiplied: with the rope keys alone vLLM refuses a --max-model-len above "
        f"{deployment.model.max_position_embeddings}; --rope-scaling has been gone since 0.11.1",
        "none needed in the planned command, which sets both; a hand-written --hf-overrides needs both",
    )


@rule(
    "LR205",
    "error",
    "yarn_factor_too_small",
    "the YaRN factor does not reach max-model-len",
    outcome="refused_at_start",
)
def yarn_factor_too_small(deployment: Deployment) -> Iterator[Diagnosis]:
    """Factor x original length is below the wanted length."""
    yarn = deployment.options.yarn
    if yarn is None or yarn.max_position_embeddings >= deployment.max_model_len:
        return
    if deployment.is_foreign and deployment.max_model_len <= deployment.model.max_position_embeddings:
        return  # the length that the override states is not refused
    needed = deployment.max_model_len / yarn.original_max_position_embeddings
    factor = ceil(needed * 4) / 4
    yield Diagnosis(
        f"YaRN factor {yarn.factor:g} reaches {yarn.max_position_embeddings} tokens, max-model-len is "
        f"{deployment.max_model_len}",
        f"{yarn.factor:g} x {yarn.original_max_position_embeddings} = {yarn.max_position_embeddings}; {needed:.2f} is needed",
        f"set {_factor_words(deployment, factor)}, or --max-model-len to {yarn.max_position_embeddings}",
        _remedy_of_factor(deployment, factor),
    )


def _factor_words(deployment: Deployment, factor: float) -> str:
    return f'"factor": {factor:g} in {_rope_flag(deployment)}' if deployment.is_foreign else f"--yarn {factor:g}"


def _rope_flag(deployment: Deployment) -> str:
    """The flag that carries YaRN in a command that nobody planned."""
    words = (word.replace("_", "-") for word in deployment.options.extra_args)
    return "--rope-scaling" if any(word.startswith("--rope-scaling") for word in words) else "--hf-overrides"


def _remedy_of_factor(deployment: Deployment, factor: float) -> Remedy | None:
    """None for a command that nobody planned: its overrides may hold more than YaRN."""
    yarn = deployment.options.yarn
    if yarn is None or deployment.is_foreign:
        return None
    return set_option("yarn", replace(yarn, factor=factor))


@rule("LR206", "advice", "yarn_override_nested", "this model's rope override must be nested")
def yarn_override_nested(deployment: Deployment) -> Iterator[Diagnosis]:
    """A top-level override of a config with a nested text model is accepted and does nothing."""
    yarn, rope = deployment.options.yarn, deployment.model.rope
    if yarn is None or rope is None or not rope.override_path or yarn.override_path != rope.override_path:
        return
    if deployment.is_foreign:
        return
    path = ".".join(rope.override_path)
    yield Diagnosis(
        f"YaRN of '{deployment.model.name}' goes under '{path}' in --hf-overrides",
        f"its text model is nested: rope keys at the top level are accepted and do nothing, under '{path}' they are "
        "merged key by key",
        "none needed in the planned command; never copy a top-level override from a text-only model",
    )


@rule(
    "LR207",
    "error",
    "yarn_override_misplaced",
    "the rope override is where the model does not read it",
    outcome="no_effect",
)
def yarn_override_misplaced(deployment: Deployment) -> Iterator[Diagnosis]:
    """The engine starts, and the model runs unscaled."""
    yarn, rope = deployment.options.yarn, deployment.model.rope
    if yarn is None or rope is None or yarn.override_path == rope.override_path:
        return
    wrong, right = _place(yarn.override_path), _place(rope.override_path)
    yield Diagnosis(
        f"the rope override of '{deployment.model.name}' is {wrong}, the model reads it {right}",
        f"vLLM {deployment.release.version} accepts the keys {wrong} silently and runs without YaRN",
        f"put rope_parameters and max_position_embeddings {right} of --hf-overrides",
        set_option("yarn", replace(yarn, override_path=rope.override_path)),
    )


def _place(path: tuple[str, ...]) -> str:
    return f"under '{'.'.join(path)}'" if path else "at the top level"


@rule("LR208", "error", "rope_theta_lost", "the rope override drops rope_theta", outcome="no_effect")
def rope_theta_lost(deployment: Deployment) -> Iterator[Diagnosis]:
    """A top-level rope dict replaces the config's own; what is not repeated falls back to base 10000."""
    yarn, rope = deployment.options.yarn, deployment.model.rope
    if yarn is None or rope is None or rope.theta is None or yarn.override_path or deployment.is_foreign:
        return
    filled = filled_theta(deployment.model.architecture)
    if rope.theta == filled or "rope_theta" in dict(yarn.rope_parameters):
        return
    yield Diagnosis(
        f"the rope override does not repeat rope_theta {rope.theta:.0f}",
        f"a top-level rope_parameters replaces the whole dict: the base becomes {filled:.0f} instead of {rope.theta:.0f} and "
        "the answers garbage, without a message",
        f'add "rope_theta": {rope.theta:.0f} to the rope_parameters of --hf-overrides',
        set_option("yarn", replace(yarn, rope_parameters=rope.parameters)),
    )


@rule("LR209", "advice", "rope_table_bytes", "the rope table takes GPU memory")
def rope_table_bytes(deployment: Deployment) -> Iterator[Diagnosis]:
    """M-RoPE keeps four times the scaled length of rows on every GPU."""
    rope, spec = deployment.rope, deployment.model.rope
    if rope is None or rope.table_bytes_per_gpu < 128 * MIB or deployment.is_foreign:
        return
    rows = "M-RoPE: 4 x the scaled length" if spec is not None and spec.mrope_section else "one row per position"
    yield Diagnosis(
        f"the rope table takes {format_bytes(rope.table_bytes_per_gpu)} on each GPU",
        f"cos and sin are kept for every position ({rows}) of {deployment.max_model_len} tokens and more, not split by TP",
        "none needed: the plan counts it; take the smallest factor that reaches your length",
    )


@rule("LR210", "warning", "beyond_published_length", "max-model-len is beyond what the publisher tested")
def beyond_published_length(deployment: Deployment) -> Iterator[Diagnosis]:
    """The publisher names a target; above it nobody vouches for the answers."""
    yarn = deployment.model.yarn
    if yarn is None or yarn.target_tokens is None or deployment.max_model_len <= yarn.target_tokens:
        return
    yield Diagnosis(
        f"max-model-len {deployment.max_model_len} is beyond the publisher's {yarn.target_tokens} tokens",
        f"{yarn.source}: factor {yarn.factor:g} over {yarn.original_max_position_embeddings} for {yarn.target_tokens} tokens",
        f"set --max-model-len to {yarn.target_tokens} or less, or prove quality at your length before you rely on it",
        set_option("max_model_len", yarn.target_tokens),
    )


@rule("LR211", "advice", "yarn_factor_larger_than_needed", "a smaller YaRN factor reaches the length")
def yarn_factor_larger_than_needed(deployment: Deployment) -> Iterator[Diagnosis]:
    """Publishers advise the smallest factor: damage on short prompts grows with it."""
    yarn = deployment.options.yarn
    if yarn is None or deployment.max_model_len <= _native_tokens(deployment):
        return
    needed = deployment.max_model_len / yarn.original_max_position_embeddings
    smaller = ceil(needed * 4) / 4
    if yarn.factor < needed * _ROOMY_FACTOR or smaller >= yarn.factor:
        return
    yield Diagnosis(
        f"YaRN factor {yarn.factor:g} reaches {yarn.max_position_embeddings} tokens, {deployment.max_model_len} need "
        f"{needed:.2f}",
        f"factor {smaller:g} reaches {round(smaller * yarn.original_max_position_embeddings)}; publishers advise the "
        "smallest factor that does",
        f"set {_factor_words(deployment, smaller)}",
        _remedy_of_factor(deployment, smaller),
    )


@rule("LR212", "warning", "yarn_not_needed", "YaRN is on and the length does not need it")
def yarn_not_needed(deployment: Deployment) -> Iterator[Diagnosis]:
    """All of YaRN's cost, none of its use."""
    yarn, native = deployment.options.yarn, _native_tokens(deployment)
    if yarn is None or deployment.max_model_len > native:
        return
    yield Diagnosis(
        f"YaRN factor {yarn.factor:g} is on and max-model-len {deployment.max_model_len} does not need it",
        f"the model reaches {native} tokens by itself; static YaRN changes every prompt",
        "leave YaRN out" + (f" of {_rope_flag(deployment)}" if deployment.is_foreign else " (--yarn none)"),
        None if deployment.is_foreign else set_option("yarn", None),
    )


@rule("LR214", "warning", "yarn_unpublished", "no publisher statement about YaRN is known for this model")
def yarn_unpublished(deployment: Deployment) -> Iterator[Diagnosis]:
    """Nobody is known to have tested this model with YaRN."""
    yarn, spec = deployment.options.yarn, deployment.model.rope
    if yarn is None or deployment.model.yarn is not None or (spec is not None and spec.rope_type == "yarn"):
        return
    yield Diagnosis(
        f"YaRN factor {yarn.factor:g} on '{deployment.model.name}' has no publisher's word behind it",
        f"neither config nor catalogue names a factor; {_native_tokens(deployment)} tokens are what it was made for",
        "prove quality at your length before you rely on it, or take a model whose publisher states the length",
    )


@rule("LR215", "warning", "length_check_silenced", "the length check is silenced, not solved")
def length_check_silenced(deployment: HasOptions) -> Iterator[Diagnosis]:
    """The variable turns the refusal into a warning; positions beyond the trained ones stay untrained."""
    value = dict(deployment.options.env).get(_ALLOW_LONG)
    if value in (None, "0", ""):
        return
    yield Diagnosis(
        f"{_ALLOW_LONG}={value} only silences the length check",
        "a --max-model-len above the derived one becomes a warning; rope, its table and the answers do not change",
        f"unset {_ALLOW_LONG} and override max_position_embeddings together with YaRN",
        set_option("env", tuple(pair for pair in deployment.options.env if pair[0] != _ALLOW_LONG)),
    )


RULES: tuple[Rule, ...] = (
    max_len_over_derived,
    rope_cannot_stretch,
    yarn_costs_short_prompts,
    yarn_needs_max_position_embeddings,
    yarn_factor_too_small,
    yarn_override_nested,
    yarn_override_misplaced,
    rope_theta_lost,
    rope_table_bytes,
    beyond_published_length,
    yarn_factor_larger_than_needed,
    yarn_not_needed,
    yarn_unpublished,
    length_check_silenced,
)
