"""What the card or its software lacks for a foreign command: LR994 to LR996. Pure."""

from collections.abc import Iterator, Mapping

from longreach.hardware.spec import GpuSpec
from longreach.model.catalogue import catalogue_config, catalogue_names
from longreach.rules.named_backend import named_backend
from longreach.rules.overrides import overrides_of
from longreach.rules.rule import Diagnosis, rule
from longreach.rules.written import CommandRule, WrittenCommand
from longreach.sizing.overrides import TEXT_KEYS

_CUDA_ONLY = (
    "FLASHINFER",
    "FLASHMLA",
    "CUTLASS_MLA",
    "FLASHINFER_MLA",
    "FLASH_ATTN_MLA",
    "FLASHMLA_SPARSE",
    "XFORMERS",
)
_DATACENTER_ROCM = ("gfx90a", "gfx942", "gfx950")


def _gpu(written: WrittenCommand) -> GpuSpec | None:
    return written.machine.gpu if written.machine is not None else None


@rule(
    "LR994",
    "error",
    "backend_not_on_platform",
    "the attention backend does not exist on this platform",
    outcome="refused_at_start",
)
def backend_not_on_platform(written: WrittenCommand) -> Iterator[Diagnosis]:
    """NVIDIA's kernels on AMD, and the other way round."""
    backend, gpu = named_backend(written), _gpu(written)
    if gpu is None or not backend:
        return
    wrong = backend in _CUDA_ONLY if gpu.vendor == "AMD" else backend.startswith("ROCM_") and gpu.vendor == "NVIDIA"
    if not wrong:
        return
    yield Diagnosis(
        f"attention backend {backend} does not exist for {gpu.name}",
        f"its kernels are for {'NVIDIA' if gpu.vendor == 'AMD' else 'AMD'} cards, this one is by {gpu.vendor}",
        "leave the backend out: vLLM picks one that the card has",
    )


@rule("LR995", "warning", "rocm_consumer", "vLLM on a consumer Radeon")
def rocm_consumer(written: WrittenCommand) -> Iterator[Diagnosis]:
    """ROCm wheels and kernels are made and tested for Instinct cards."""
    gpu = _gpu(written)
    if gpu is None or gpu.vendor != "AMD" or gpu.compute_capability.startswith(_DATACENTER_ROCM):
        return
    yield Diagnosis(
        f"few of vLLM's ROCm kernels are made for {gpu.name}",
        f"{gpu.compute_capability} has neither AITER nor the ROCm flash attention; starts end in missing kernels or out of memory "
        "more often than on Instinct cards",
        "try the Triton backend first (--attention-backend TRITON_ATTN), a small --max-model-len and --enforce-eager",
    )


@rule("LR996", "warning", "hf_override_maybe_wrong_level", "models of this family read overrides at another level")
def hf_override_maybe_wrong_level(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Which model it is cannot be told; its name holds that of a multimodal family."""
    overrides = overrides_of(written)
    name = (written.parsed.model or written.value("--model") or "").lower()
    if written.model is not None or not overrides or not name or not any(key in overrides for key in TEXT_KEYS):
        return
    family = next((family for family in _families() if family in name), None)
    config = catalogue_config(_families()[family]) if family is not None else {}
    path = next((key for key in ("text_config", "llm_config") if isinstance(config.get(key), Mapping)), None)
    if path is None:
        return
    keys = ", ".join(key for key in TEXT_KEYS if key in overrides)
    yield Diagnosis(
        f"{keys} at the top level of --hf-overrides does nothing where the language model is nested",
        f"models of the family {family} nest it under '{path}'; vLLM sets the outer keys and reads the inner ones",
        f"put {keys} under '{path}'",
    )


def _families() -> Mapping[str, str]:
    """The names of families, longest first, with one model of each: `qwen3-vl` -> `qwen3-vl-8b`."""
    families: dict[str, str] = {}
    for name in catalogue_names():
        parts = name.split("-")
        stem = [part for part in parts if not part[:1].isdigit() or "." in part]
        families.setdefault("-".join(stem), name)
    return dict(sorted(families.items(), key=lambda item: -len(item[0])))


RULES: tuple[CommandRule, ...] = (backend_not_on_platform, rocm_consumer, hf_override_maybe_wrong_level)
