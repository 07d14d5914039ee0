"""Images and what they cost a text server: LR701 to LR703. Pure."""

from collections.abc import Iterator

from longreach.engine.options import EngineOptions
from longreach.rules.deployment import Deployment
from longreach.rules.remedy import Remedy, set_option
from longreach.rules.rule import Diagnosis, Rule, rule
from longreach.units import GIB, format_bytes

_FLAGS = {
    "limit_mm_per_prompt": "--limit-mm-per-prompt",
    "mm_processor_kwargs": "--mm-processor-kwargs",
    "mm_ipc_gpu_memory_gb": "--mm-ipc-gpu-memory-gb",
}


_TEXT_ONLY_SINCE = (0, 17)


def _given(options: EngineOptions) -> list[str]:
    return [field for field in _FLAGS if getattr(options, field) is not None]


@rule(
    "LR701",
    "advice",
    "mm_options_on_text_model",
    "multimodal flags do nothing on a text model",
    outcome="no_effect",
    first="0.10.1",
)
def mm_options_on_text_model(deployment: Deployment) -> Iterator[Diagnosis]:
    """Accepted silently; only the IPC memory is still taken from KV."""
    given = _given(deployment.options)
    if deployment.model.is_multimodal or not given:
        return
    names = ", ".join(_FLAGS[field] for field in given)
    yield Diagnosis(
        f"{names} on '{deployment.model.name}', which takes text only",
        f"{deployment.model.architecture} has no image input; vLLM accepts the flags without a message",
        f"leave {names} out",
        Remedy(tuple((field, None) for field in given)),
    )


@rule(
    "LR711",
    "error",
    "mm_options_refused_on_text_model",
    "multimodal flags are refused for a text model",
    last="0.10.0",
    outcome="refused_at_start",
)
def mm_options_refused_on_text_model(deployment: Deployment) -> Iterator[Diagnosis]:
    """From 0.10.1 on they are accepted and do nothing (LR701)."""
    given = [field for field in _given(deployment.options) if field != "mm_ipc_gpu_memory_gb"]
    if deployment.model.is_multimodal or not given:
        return
    names = ", ".join(_FLAGS[field] for field in given)
    yield Diagnosis(
        f"{names} on '{deployment.model.name}', which takes text only",
        f"vLLM {deployment.release.version} stops: '`{given[0]}` is only supported for multimodal models.'",
        f"leave {names} out",
        Remedy(tuple((field, None) for field in given)),
    )


@rule("LR702", "advice", "mm_ipc_taken_from_kv", "multimodal IPC memory is taken out of the KV cache")
def mm_ipc_taken_from_kv(deployment: Deployment) -> Iterator[Diagnosis]:
    """Also out of explicit KV bytes."""
    reserved = deployment.options.mm_ipc_gpu_memory_gb
    if not reserved or not deployment.model.is_multimodal:
        return
    asked = deployment.options.kv_cache_memory_bytes
    left = "" if asked is None else f": {format_bytes(asked - int(reserved * GIB))} of {format_bytes(asked)} are left"
    yield Diagnosis(
        f"--mm-ipc-gpu-memory-gb {reserved:g} is taken out of the KV cache of each GPU",
        f"{reserved:g} GiB are carved from the KV bytes, explicit ones too{left}",
        "leave it out unless images are handed over in GPU memory",
        set_option("mm_ipc_gpu_memory_gb", None),
    )


@rule("LR703", "advice", "mm_limits_unset", "images are allowed without a limit")
def mm_limits_unset(deployment: Deployment) -> Iterator[Diagnosis]:
    """The engine sizes its encoder and profiles for what a prompt may hold."""
    options = deployment.options
    if not deployment.model.is_multimodal or options.limit_mm_per_prompt is not None or options.language_model_only:
        return
    text_only = "for text alone: --language-model-only; else " if deployment.release.number >= _TEXT_ONLY_SINCE else ""
    yield Diagnosis(
        f"'{deployment.model.name}' takes images and --limit-mm-per-prompt is not set",
        "the default is 999 of each kind per prompt; the tower is loaded and memory for its largest input is set aside "
        "before KV is sized",
        f'{text_only}--limit-mm-per-prompt \'{{"image": 4, "video": 0}}\'',
        set_option("language_model_only", True) if text_only else None,
    )


RULES: tuple[Rule, ...] = (
    mm_options_on_text_model,
    mm_options_refused_on_text_model,
    mm_ipc_taken_from_kv,
    mm_limits_unset,
)
