"""Draft tokens: what the model has, what excludes what: LR411 to LR419. Pure."""

from collections.abc import Iterator
from dataclasses import replace

from longreach.engine.options import SpeculativeOptions
from longreach.model.spec import IndexerLayer, ModelSpec
from longreach.rules.deployment import Deployment
from longreach.rules.remedy import set_option
from longreach.rules.rule import Diagnosis, HasOptions, Rule, rule

_HOST_DRAFTS = ("ngram", "suffix", "medusa", "mlp_speculator")  # drafted on the host, after the step
_LOCAL_ARGMAX_SINCE = (0, 24)
_ASYNC_DRAFTS_SINCE = (0, 11, 2)  # before, no draft goes with it
_LOCAL_ARGMAX_FAMILIES = ("Qwen3_5", "Gemma4")  # MTP drafts with get_top_tokens() in 0.32


def _mtp(deployment: Deployment) -> SpeculativeOptions | None:
    spec = deployment.options.speculative
    return spec if spec is not None and (spec.method == "mtp" or spec.method.endswith("_mtp")) else None


def has_local_argmax(model: ModelSpec) -> bool:
    """Whether the MTP draft of this model can reduce its argmax on each GPU; up to 0.32 two families can."""
    return model.architecture.startswith(_LOCAL_ARGMAX_FAMILIES)


def _has_draft_of_its_own(spec: SpeculativeOptions) -> bool:
    """The draft layers come from another checkpoint, of which nothing is known here."""
    return "model" in dict(spec.extra)


def _num_mtp_layers(deployment: Deployment) -> int:
    return sum(not isinstance(layer, IndexerLayer) for layer in deployment.model.draft_layers)


@rule(
    "LR411",
    "error",
    "mtp_without_draft_layers",
    "there are no MTP layers that vLLM can run",
    outcome="refused_at_start",
)
def mtp_without_draft_layers(deployment: Deployment) -> Iterator[Diagnosis]:
    """The engine refuses MTP for a checkpoint without an MTP head."""
    spec, model, layers = _mtp(deployment), deployment.model, _num_mtp_layers(deployment)
    if spec is None or (layers and model.mtp_supported) or _has_draft_of_its_own(spec):
        return
    if not layers and "mtp" in model.spec_methods:
        return  # published with MTP; the copy of its config that is known lacks the count
    why = f"the config of {model.architecture} announces none"
    if layers:
        why = f"the checkpoint has {layers}, but no vLLM up to 0.33 has a class that runs those of {model.architecture}"
    yield Diagnosis(
        f"speculative method '{spec.method}' needs MTP layers and vLLM finds 0 for '{model.name}'",
        f"{why}; vLLM stops with 'Unsupported speculative method'",
        "leave --speculative-config out, or draft from the prompt with --spec ngram:5",
        set_option("speculative", None),
    )


@rule(
    "LR412",
    "advice",
    "argmax_reduction_without_effect",
    "use_local_argmax_reduction has no effect here",
    outcome="no_effect",
)
def argmax_reduction_without_effect(deployment: Deployment) -> Iterator[Diagnosis]:
    """It saves traffic between GPUs of a draft model; prompt look-up has none, and one GPU sends nothing."""
    spec = deployment.options.speculative
    if spec is None or not spec.use_local_argmax_reduction:
        return
    if spec.method not in _HOST_DRAFTS and deployment.tp_size > 1:
        return
    reason = (
        f"method '{spec.method}' has no draft model" if spec.method in _HOST_DRAFTS else "with TP 1 there is no gather"
    )
    yield Diagnosis(
        f"use_local_argmax_reduction does nothing with method '{spec.method}' on TP {deployment.tp_size}",
        f"{reason}; vLLM accepts the key silently",
        "leave use_local_argmax_reduction out of --speculative-config",
        set_option("speculative", replace(spec, use_local_argmax_reduction=False)),
    )


@rule(
    "LR413",
    "error",
    "argmax_reduction_unsupported",
    "the draft model has no local argmax",
    first="0.17.0",
    last="0.32.0",
    outcome="refused_at_start",
)
def argmax_reduction_unsupported(deployment: Deployment) -> Iterator[Diagnosis]:
    """Start-up asks the draft class for get_top_tokens() and stops when it is missing."""
    spec, architecture = _mtp(deployment), deployment.model.architecture
    if spec is None or not spec.use_local_argmax_reduction or _num_mtp_layers(deployment) == 0:
        return
    if has_local_argmax(deployment.model) and deployment.release.number >= _LOCAL_ARGMAX_SINCE:
        return
    yield Diagnosis(
        f"use_local_argmax_reduction is refused for the MTP draft of '{deployment.model.name}'",
        f"only the Qwen3.5 MTP draft (from 0.24) and few others have get_top_tokens(); for {architecture} vLLM stops with "
        "'use_local_argmax_reduction is enabled but draft model ... does not implement get_top_tokens()'",
        "leave use_local_argmax_reduction out of --speculative-config",
        set_option("speculative", replace(spec, use_local_argmax_reduction=False)),
    )


@rule("LR414", "warning", "mtp_may_lose_hybrid_hits", "MTP on a hybrid may lose prefix hits")
def mtp_may_lose_hybrid_hits(deployment: Deployment) -> Iterator[Diagnosis]:
    """One missing state turns a full attention match into no hit; there are reports of it with MTP."""
    spec, model = _mtp(deployment), deployment.model
    if spec is None or not model.is_hybrid or not deployment.prefix_caching or deployment.machine.device_type == "cpu":
        return
    yield Diagnosis(
        f"MTP with {spec.num_speculative_tokens} draft tokens may cost the prefix hits of '{model.name}'",
        "one report on a 27B hybrid: a repeated prompt took 0.989 s with MTP and 0.459 s without (2.227 s cold); "
        "another of wrong answers after a hit",
        "prove it on your box: longreach verify sends a prompt cold and warm and compares hits and answers",
    )


@rule("LR415", "advice", "mtp_layer_runs_again", "more draft tokens than MTP layers")
def mtp_layer_runs_again(deployment: Deployment) -> Iterator[Diagnosis]:
    """The one layer is trained for the next token; run again on its own output it is right less often."""
    spec, layers = _mtp(deployment), _num_mtp_layers(deployment)
    if spec is None or layers == 0 or spec.num_speculative_tokens <= layers or _has_draft_of_its_own(spec):
        return
    cost = (
        "; each draft token also costs a state block per recurrent group and request"
        if deployment.model.is_hybrid
        else ""
    )
    yield Diagnosis(
        f"{spec.num_speculative_tokens} draft tokens come from {layers} MTP layer(s), run again on their own output",
        f"acceptance falls with each of the {spec.num_speculative_tokens} positions{cost}",
        "read 'Per-position acceptance rate' in the log, and drop positions that are accepted less than half the time",
    )


@rule(
    "LR416",
    "error",
    "draft_tokens_not_multiple",
    "the draft tokens are not a multiple of the MTP layers",
    outcome="refused_at_start",
)
def draft_tokens_not_multiple(deployment: Deployment) -> Iterator[Diagnosis]:
    """Several MTP layers are run in turn, whole rounds only."""
    spec, layers = _mtp(deployment), _num_mtp_layers(deployment)
    if spec is None or layers == 0 or _has_draft_of_its_own(spec):
        return
    count = spec.num_speculative_tokens
    if count <= layers or count % layers == 0:
        return
    fewer = count - count % layers
    yield Diagnosis(
        f"{count} draft tokens are not a multiple of {layers} MTP layers",
        f"vLLM refuses: 'num_speculative_tokens:{count} must be divisible by n_predict={layers}'",
        f"set num_speculative_tokens to {fewer} or {fewer + layers}",
        set_option("speculative", replace(spec, num_speculative_tokens=fewer)),
    )


@rule(
    "LR417",
    "error",
    "host_drafts_exclude_async",
    "drafts made on the host exclude async scheduling",
    outcome="refused_at_start",
)
def host_drafts_exclude_async(deployment: HasOptions) -> Iterator[Diagnosis]:
    """The next step would be scheduled before the drafts exist."""
    spec, number = deployment.options.speculative, deployment.release.number
    if spec is None or not deployment.options.async_scheduling:
        return
    if number >= _ASYNC_DRAFTS_SINCE and spec.method not in _HOST_DRAFTS:
        return
    said = "Currently, speculative decoding is not supported with async scheduling."
    if number >= _ASYNC_DRAFTS_SINCE:
        said = (
            "async scheduling is only supported with EAGLE/MTP/Draft Model/NGram GPU ... kind of speculative decoding"
        )
    yield Diagnosis(
        f"--async-scheduling is refused with speculative method '{spec.method}'",
        f"vLLM: '{said}'",
        "leave --async-scheduling out",
        set_option("async_scheduling", None),
    )


@rule("LR418", "advice", "host_drafts_cost_async", "drafts made on the host turn async scheduling off", first="0.14.0")
def host_drafts_cost_async(deployment: Deployment) -> Iterator[Diagnosis]:
    """Prompt look-up pays only where answers repeat the prompt."""
    spec = deployment.options.speculative
    if spec is None or spec.method not in _HOST_DRAFTS or deployment.options.async_scheduling is not None:
        return
    if deployment.machine.device_type == "cpu":
        return
    yield Diagnosis(
        f"speculative method '{spec.method}' turns async scheduling off",
        f"drafts are looked up on the host after each step, {spec.num_speculative_tokens} at a time; the time between steps "
        "is no longer hidden, for answers without repetition as well",
        "use it for code edits and quotations, where answers repeat the prompt; compare decode speed without it",
        set_option("speculative", None),
    )


@rule("LR419", "error", "mtp_hybrid_hits_fail_on_cpu", "the CPU build fails on MTP with prefix caching on hybrids")
def mtp_hybrid_hits_fail_on_cpu(deployment: Deployment) -> Iterator[Diagnosis]:
    """The state copy exists as a GPU kernel only."""
    if deployment.machine.device_type != "cpu" or not deployment.model.is_hybrid:
        return
    if _mtp(deployment) is None or not deployment.prefix_caching:
        return
    yield Diagnosis(
        f"MTP with prefix caching on the hybrid '{deployment.model.name}' ends the CPU engine at the first request",
        "the copy of recurrent state is a Triton kernel: 'function' object is not subscriptable (tried on 0.32)",
        "set --no-enable-prefix-caching, or leave --speculative-config out",
        set_option("enable_prefix_caching", False),
    )


RULES: tuple[Rule, ...] = (
    mtp_without_draft_layers,
    argmax_reduction_without_effect,
    argmax_reduction_unsupported,
    mtp_may_lose_hybrid_hits,
    mtp_layer_runs_again,
    draft_tokens_not_multiple,
    host_drafts_exclude_async,
    host_drafts_cost_async,
    mtp_hybrid_hits_fail_on_cpu,
)
