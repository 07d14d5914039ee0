"""Drafts against the model that they draft for: LR425 to LR428, LR430, LR431. Pure."""

import re
from collections.abc import Iterator, Mapping

from longreach.engine.registry import releases_with_name
from longreach.errors import LongreachError
from longreach.model.catalogue import load_catalogue_model
from longreach.model.likeness import recognise_model
from longreach.model.spec import GatedDeltaNetLayer, ModelSpec
from longreach.rules.edit import remove_flag
from longreach.rules.rule import Diagnosis, rule
from longreach.rules.written import CommandRule, WrittenCommand
from longreach.sizing.kernels import prefills_on_flashinfer

_FLAG = "--speculative-config"

_MTP_CLASSES: Mapping[str, str] = {
    "Qwen3Next": "Qwen3NextMTP",
    "Qwen3_5Moe": "Qwen3_5MoeMTP",
    "Qwen3_5For": "Qwen3_5MTP",
    "DeepseekV3For": "DeepSeekMTPModel",
    "DeepseekV32For": "DeepSeekMTPModel",
    "DeepseekV4For": "DeepSeekV4MTPModel",
    "GlmMoeDsaFor": "DeepSeekMTPModel",
    "Glm4MoeFor": "Glm4MoeMTPModel",
    "Glm4MoeLiteFor": "Glm4MoeLiteMTPModel",
    "MiMoFor": "MiMoMTPModel",
    "MiMoV2": "MiMoV2MTPModel",
    "Ernie4_5_MoeFor": "ErnieMTPModel",
    "NemotronHFor": "NemotronHMTPModel",
    "LongcatFlashFor": "LongCatFlashMTPModel",
    "Step3p5For": "Step3p5MTP",
    "ExaoneMoE": "ExaoneMoeMTP",
    "HYV3For": "HYV3MTPModel",
}
"""Start of a target's architecture -> the class that runs its MTP layers."""

_MOST_FLASHINFER_DRAFTS = 4
_HEADS = ("eagle", "dflash", "dspark", "mtp", "assistant", "medusa", "speculator")  # in names of heads for one target
_HEAD_SUFFIX = re.compile(r"[-_.](?:speculator[-_.])?(?:eagle3?|dflash|dspark)(?:[-_.].*)?$", re.IGNORECASE)
_LAYERED_DRAFTS = ("draft_model", "eagle", "eagle3", "dflash")


def _method(written: WrittenCommand) -> str | None:
    method = (written.speculative or {}).get("method")
    return method if isinstance(method, str) else None


def _uses_own_mtp(written: WrittenCommand) -> bool:
    method, spec = _method(written), written.speculative or {}
    return method is not None and (method == "mtp" or method.endswith("_mtp")) and "model" not in spec


@rule(
    "LR425",
    "error",
    "mtp_not_in_release",
    "the release cannot run this model's MTP layers",
    outcome="refused_at_start",
)
def mtp_not_in_release(written: WrittenCommand) -> Iterator[Diagnosis]:
    """The draft has an architecture of its own, which came with a release."""
    model = written.model
    if model is None or not _uses_own_mtp(written):
        return
    name = next((draft for start, draft in _MTP_CLASSES.items() if model.architecture.startswith(start)), None)
    if name is None or name in written.registry.names("architecture"):
        return
    releases = releases_with_name("architecture", name)
    if not releases:
        return
    yield Diagnosis(
        f"vLLM {written.release.version} has no {name}, which runs the MTP layers of '{model.name}'",
        f"{name} is registered from {releases[0]} on; before, the method is not supported for {model.architecture}",
        f"use vLLM {releases[0]} or later, or leave {_FLAG} out",
        edit=remove_flag(_FLAG),
    )


@rule(
    "LR426",
    "error",
    "draft_vocabulary_differs",
    "the draft model has another vocabulary",
    outcome="refused_at_start",
    first="0.15.0",
)
def draft_vocabulary_differs(written: WrittenCommand) -> Iterator[Diagnosis]:
    """A plain draft model proposes token ids, so both must number tokens alike."""
    model, draft = written.model, _draft_model(written)
    if model is None or draft is None or draft.vocab_size == model.vocab_size:
        return
    if _method(written) not in (None, "draft_model"):
        return
    yield Diagnosis(
        f"the draft '{draft.name}' has {draft.vocab_size} tokens and '{model.name}' {model.vocab_size}",
        "vLLM stops: 'Target and draft model should have the same vocabulary size'",
        "take a draft of the same family and size of vocabulary, or MTP or EAGLE weights made for this model",
    )


def _draft_model(written: WrittenCommand) -> ModelSpec | None:
    """A plain model that drafts; None where a head for one target does."""
    name = (written.speculative or {}).get("model")
    if not isinstance(name, str) or any(mark in name.lower() for mark in _HEADS):
        return None
    return _recognised(name)


def _recognised(name: str) -> ModelSpec | None:
    match = recognise_model(name)
    if match is None:
        return None
    try:
        return load_catalogue_model(match.name)
    except LongreachError:
        return None


@rule("LR427", "warning", "mtp_too_many_draft_tokens", "more draft tokens than the gated-delta kernel takes")
def mtp_too_many_draft_tokens(written: WrittenCommand) -> Iterator[Diagnosis]:
    """FlashInfer's kernel checks at most four drafts in a step."""
    model, machine, count = written.model, written.machine, (written.speculative or {}).get("num_speculative_tokens")
    if model is None or not isinstance(count, int) or count <= _MOST_FLASHINFER_DRAFTS:
        return
    if not any(isinstance(layer, GatedDeltaNetLayer) for layer in model.layers):
        return
    if machine is None or not prefills_on_flashinfer(model, machine.gpu):
        return
    yield Diagnosis(
        f"{count} draft tokens on '{model.name}' where its gated-delta layers may run on FlashInfer",
        f"that kernel takes at most {_MOST_FLASHINFER_DRAFTS}; with 5 a report ends in cudaErrorIllegalAddress in gdn_attn.py",
        f"set num_speculative_tokens to {_MOST_FLASHINFER_DRAFTS} or less",
    )


@rule("LR428", "advice", "drafter_group_padding", "a draft's layers are padded beside a hybrid's")
def drafter_group_padding(written: WrittenCommand) -> Iterator[Diagnosis]:
    """They form a group of their own, which is padded to the target's group size."""
    model, method = written.model, _method(written)
    if model is None or not model.is_hybrid or method not in _LAYERED_DRAFTS:
        return
    yield Diagnosis(
        f"the layers of the {method} draft take KV cache by whole groups of '{model.name}'",
        "vLLM pads the draft's group to the size of the others: 'Add 6 padding layers, may waste at most 60.00% KV cache memory' "
        "was printed for a hybrid with a DFlash draft",
        "prefer the model's own MTP layers where it has them",
    )


@rule(
    "LR430",
    "error",
    "draft_model_not_supported",
    "the release has no plain draft models",
    first="0.10.0",
    last="0.14.1",
    outcome="refused_at_start",
)
def draft_model_not_supported(written: WrittenCommand) -> Iterator[Diagnosis]:
    """The former engine had them; the new one got them with 0.15."""
    method, draft = _method(written), _draft_model(written)
    if method != "draft_model" and not (method is None and draft is not None):
        return
    yield Diagnosis(
        f"vLLM {written.release.version} does not draft with a model of its own"
        + (f" like '{draft.name}'" if draft is not None else ""),
        "vLLM stops: 'Speculative decoding with draft model is not supported yet. Please consider using other speculative decoding "
        "methods such as ngram, medusa, eagle, or mtp.'",
        f"use vLLM 0.15 or later, or leave {_FLAG} out",
        edit=remove_flag(_FLAG),
    )


@rule("LR431", "warning", "draft_of_another_model", "the draft head was trained for another model")
def draft_of_another_model(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Its name says the target; a head reads the target's hidden states, so the widths must agree."""
    model, name = written.model, (written.speculative or {}).get("model")
    if model is None or not isinstance(name, str) or _HEAD_SUFFIX.search(name) is None:
        return
    target = _recognised(_HEAD_SUFFIX.sub("", name))
    if target is None or target.hidden_size == model.hidden_size:
        return
    yield Diagnosis(
        f"'{name}' says it drafts for '{target.name}', not for '{model.name}'",
        f"a head reads hidden states of {target.hidden_size} values, and '{model.name}' has {model.hidden_size}; loading it fails, "
        "or no draft is accepted",
        f"take a head made for '{model.name}', or leave {_FLAG} out",
        edit=remove_flag(_FLAG),
    )


RULES: tuple[CommandRule, ...] = (
    mtp_not_in_release,
    draft_vocabulary_differs,
    mtp_too_many_draft_tokens,
    drafter_group_padding,
    draft_model_not_supported,
    draft_of_another_model,
)
