"""Attention backends that do not serve the model or the card: LR134, LR135. Pure."""

from collections.abc import Iterator, Mapping

from longreach.hardware.spec import GpuSpec
from longreach.model.spec import AttentionLayer, IndexerLayer, MlaLayer, ModelSpec
from longreach.rules.edit import Edit, remove_flag
from longreach.rules.named_backend import has_flash_attention_2, named_backend
from longreach.rules.overrides import overrides_of
from longreach.rules.rule import Diagnosis, rule
from longreach.rules.written import CommandRule, WrittenCommand

_FLAG = "--attention-backend"
_SINK_ARCHITECTURES = ("GptOssForCausalLM",)
_FLASHINFER_SINKS_ELSEWHERE = (0, 28)  # before on datacenter Blackwell only
_SPARSE_ON_CONSUMER_BLACKWELL = (0, 24)

_LATENT: Mapping[str, tuple[str, ...]] = {
    "FLASHMLA": ("9", "10"),
    "FLASH_ATTN_MLA": ("9",),
    "CUTLASS_MLA": ("10",),
    "FLASHINFER_MLA": ("10",),
    "TOKENSPEED_MLA": ("10",),
    "TRITON_MLA": ("7", "8", "9", "10", "12"),
}
"""Backends of latent attention, and the majors of compute capability that each takes."""

_SPARSE: Mapping[str, tuple[str, ...]] = {
    "FLASHMLA_SPARSE": ("9", "10"),
    "FLASH_ATTN_MLA_SPARSE": ("9",),
    "FLASHINFER_MLA_SPARSE": ("9", "10", "12"),
}
_KEYS_AND_VALUES: Mapping[str, tuple[str, ...]] = {
    "FLASH_ATTN": ("8", "9", "10", "12"),
    "FLASHINFER": ("7", "8", "9", "10", "12"),
    "TRITON_ATTN": ("7", "8", "9", "10", "12"),
    "FLEX_ATTENTION": ("7", "8", "9", "10", "12"),
}


@rule(
    "LR134",
    "error",
    "named_backend_not_valid",
    "the attention backend that was named does not serve this model or card",
    first="0.11.2",
    outcome="refused_at_start",
)
def named_backend_not_valid(written: WrittenCommand) -> Iterator[Diagnosis]:
    """VLLM replaces no backend that was asked for by name."""
    backend, model = named_backend(written), written.model
    reason = _why_not(written, backend, model) if model is not None else None
    if reason is None or model is None:
        return
    yield Diagnosis(
        f"attention backend {backend} does not serve '{model.name}'" + _on_card(written, reason),
        f"vLLM stops: 'Selected backend {backend} is not valid for this configuration. Reason: [{reason}]'",
        "leave the backend out: vLLM picks one that serves both",
        edit=remove_flag(_FLAG) if written.parsed.named(_FLAG) else Edit(unset_env=("VLLM_ATTENTION_BACKEND",)),
    )


def _on_card(written: WrittenCommand, reason: str) -> str:
    gpu = _gpu(written)
    return f" on {gpu.name}" if gpu is not None and ("capability" in reason or "sink" in reason) else ""


def _gpu(written: WrittenCommand) -> GpuSpec | None:
    gpu = written.machine.gpu if written.machine is not None else None
    return gpu if gpu is not None and gpu.vendor == "NVIDIA" else None


def _why_not(written: WrittenCommand, backend: str, model: ModelSpec) -> str | None:
    kind = _kind(written, model)
    majors = {**_LATENT, **_SPARSE, **_KEYS_AND_VALUES}.get(backend)
    if kind is None or majors is None:
        return None
    if kind == "plain":
        wrong_kind = None if backend in _KEYS_AND_VALUES else "'non-MLA not supported'"
    elif backend in _KEYS_AND_VALUES:
        wrong_kind = "'MLA not supported'"
    elif kind == "sparse":
        wrong_kind = "'sparse not supported'" if backend in _LATENT else None
    else:
        wrong_kind = "'non-sparse not supported'" if backend in _SPARSE else None
    return wrong_kind or _why_not_on_card(written, backend, model, majors)


def _why_not_on_card(written: WrittenCommand, backend: str, model: ModelSpec, majors: tuple[str, ...]) -> str | None:
    gpu = _gpu(written)
    if gpu is None:
        return None
    major = gpu.compute_capability.partition(".")[0]
    if major not in majors:
        return "'compute capability not supported'"
    if model.architecture in _SINK_ARCHITECTURES and _lacks_sinks(written, backend, major):
        return "'attention sinks not supported'"
    return None


def _lacks_sinks(written: WrittenCommand, backend: str, major: str) -> bool:
    if backend == "FLASH_ATTN":
        return has_flash_attention_2(written)
    elsewhere = ("9", "12") if written.release.number >= _FLASHINFER_SINKS_ELSEWHERE else ()
    return backend == "FLASHINFER" and major not in ("10", *elsewhere)


def _kind(written: WrittenCommand, model: ModelSpec) -> str | None:
    """plain, latent or sparse attention in every layer that has any; None where kinds are mixed, special or overridden."""
    overrides = overrides_of(written)
    if overrides is None or "architectures" in overrides or written.variable("VLLM_MLA_DISABLE") is not None:
        return None
    latents = [layer for layer in model.layers if isinstance(layer, MlaLayer)]
    has_plain = any(isinstance(layer, AttentionLayer) for layer in model.layers)
    if any(layer.tokens_per_state != 1 for layer in latents) or (latents and has_plain):
        return None
    if latents:
        return "sparse" if any(isinstance(layer, IndexerLayer) for layer in model.layers) else "latent"
    return "plain" if has_plain else None


@rule(
    "LR135",
    "error",
    "no_backend_for_sparse_attention",
    "no backend for this model's sparse attention on this card",
    first="0.11.2",
    outcome="refused_at_start",
)
def no_backend_for_sparse_attention(written: WrittenCommand) -> Iterator[Diagnosis]:
    """An indexer chooses the tokens; its kernels are made for Hopper and Blackwell."""
    gpu, model = _gpu(written), written.model
    if gpu is None or model is None or named_backend(written) or _kind(written, model) != "sparse":
        return
    major = gpu.compute_capability.partition(".")[0]
    if major not in ("7", "8") and not (major == "12" and written.release.number < _SPARSE_ON_CONSUMER_BLACKWELL):
        return
    yield Diagnosis(
        f"no attention backend serves the sparse attention of '{model.name}' on {gpu.name}",
        f"compute capability {gpu.compute_capability} has none: 'No valid attention backend found for cuda with ...'; Hopper and "
        "datacenter Blackwell have, consumer Blackwell from 0.24 on",
        "take other cards, or a model without an indexer",
    )


RULES: tuple[CommandRule, ...] = (named_backend_not_valid, no_backend_for_sparse_attention)
