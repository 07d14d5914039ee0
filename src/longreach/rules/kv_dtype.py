"""The KV data type against GPU, backend and checkpoint: LR121 to LR127. Pure."""

from collections.abc import Iterator

from longreach.engine.attention import expected_attention_backends
from longreach.rules.deployment import Deployment
from longreach.rules.remedy import set_option
from longreach.rules.rule import Diagnosis, Rule, rule

_FP8 = ("fp8", "fp8_e4m3", "fp8_e5m2")
_PER_HEAD_ENDING = "_per_token_head"
_TURBOQUANT = "turboquant_"


def _backends(deployment: Deployment, kv_cache_dtype: str) -> tuple[str, ...] | None:
    gpu = deployment.machine.gpu
    if gpu is None or deployment.machine.device_type != "cuda":
        return None
    return expected_attention_backends(
        gpu.compute_capability,
        kv_cache_dtype,
        is_mla=deployment.has_mla,
        is_sparse=deployment.is_sparse,
        release=deployment.release.number,
    )


@rule("LR121", "advice", "fp8_kv_moves_backend", "FP8 KV takes another attention backend than plain KV")
def fp8_kv_moves_backend(deployment: Deployment) -> Iterator[Diagnosis]:
    """FlashAttention reads FP8 KV on SM90 and SM10x only."""
    gpu, dtype = deployment.machine.gpu, deployment.kv_cache_dtype
    plain, fp8 = _backends(deployment, "auto"), _backends(deployment, dtype)
    if gpu is None or dtype not in _FP8 or not plain or not fp8 or plain[0] == fp8[0]:
        return
    others = f", then {', '.join(fp8[1:])}" if fp8[1:] else ""
    yield Diagnosis(
        f"{dtype} KV moves attention from {plain[0]} to {fp8[0]} on compute capability {gpu.compute_capability}",
        f"{plain[0]} does not read {dtype} KV there; vLLM's order is {fp8[0]}{others}",
        f"keep the package that {fp8[0]} needs installed in the engine's environment, and check the log for "
        f"'Using {fp8[0]} attention backend'",
    )


@rule("LR122", "warning", "fp8_kv_emulated", "FP8 KV is emulated on this GPU")
def fp8_kv_emulated(deployment: Deployment) -> Iterator[Diagnosis]:
    """Below SM89 there is no FP8 unit; Triton refuses e4m3 and other backends convert."""
    gpu, dtype = deployment.machine.gpu, deployment.kv_cache_dtype
    if gpu is None or dtype not in _FP8 or gpu.fp8_support != "emulated":
        return
    yield Diagnosis(
        f"{dtype} KV is emulated on {gpu.name}",
        f"compute capability {gpu.compute_capability} has no FP8 unit: Triton refuses e4m3 there ('type fp8e4nv not "
        "supported'), FlashInfer converts every value it reads",
        "install FlashInfer in the engine's environment, and compare speed and answers with --kv-cache-dtype auto",
    )


@rule("LR123", "error", "fp8_kv_unsupported", "the GPU cannot store FP8 KV", outcome="refused_at_start")
def fp8_kv_unsupported(deployment: Deployment) -> Iterator[Diagnosis]:
    """No backend converts FP8 on this card."""
    gpu, dtype = deployment.machine.gpu, deployment.kv_cache_dtype
    if gpu is None or dtype not in _FP8 or gpu.fp8_support != "none":
        return
    yield Diagnosis(
        f"{dtype} KV is not supported on {gpu.name}",
        f"compute capability {gpu.compute_capability} neither computes nor converts FP8 in vLLM",
        "set --kv-cache-dtype auto, and plan again: a token then takes twice the bytes",
        set_option("kv_cache_dtype", None),
    )


@rule("LR124", "advice", "fp8_kv_uncalibrated", "FP8 KV runs without calibrated scales")
def fp8_kv_uncalibrated(deployment: Deployment) -> Iterator[Diagnosis]:
    """Without scales in the checkpoint every value is stored with scale 1.0."""
    dtype, forced = deployment.kv_cache_dtype, deployment.model.kv_cache_dtype_forced
    if dtype not in _FP8 or (forced or "").startswith("fp8"):
        return
    yield Diagnosis(
        f"{dtype} KV runs with scale 1.0",
        f"the checkpoint of '{deployment.model.name}' names no KV scheme; vLLM says 'Using uncalibrated q_scale ...' and "
        "values outside the range of FP8 are cut",
        "compare answers on your own long prompts with --kv-cache-dtype auto; a plain needle does not show KV damage",
    )


@rule(
    "LR125",
    "error",
    "no_backend_for_kv_dtype",
    "no attention backend takes this KV data type on this GPU",
    outcome="refused_at_start",
)
def no_backend_for_kv_dtype(deployment: Deployment) -> Iterator[Diagnosis]:
    """The backends of this capability are known, and none of them accepts the KV data type."""
    gpu, asked = deployment.machine.gpu, deployment.options.kv_cache_dtype
    if gpu is None or asked is None or not _backends(deployment, "auto") or _backends(deployment, asked):
        return
    if not asked.startswith(("fp8", "nvfp4", "int", _TURBOQUANT)) or asked.endswith("_ds_mla"):
        return
    yield Diagnosis(
        f"no attention backend takes {asked} KV on compute capability {gpu.compute_capability}",
        f"{gpu.name} can use {', '.join(_backends(deployment, 'auto') or ())}, none of which reads {asked}"
        f"{' latents' if deployment.has_mla else ''} there",
        "set --kv-cache-dtype auto" + (" or fp8_e4m3" if _backends(deployment, "fp8_e4m3") else ""),
        set_option("kv_cache_dtype", None),
    )


@rule("LR126", "advice", "packed_kv_needs_backend", "this KV data type has one backend only")
def packed_kv_needs_backend(deployment: Deployment) -> Iterator[Diagnosis]:
    """4-bit and per-token-head formats are read by a single backend; without it the engine does not start."""
    asked = deployment.options.kv_cache_dtype or ""
    if not (asked.startswith(("nvfp4", _TURBOQUANT)) or asked.endswith(_PER_HEAD_ENDING)) or asked.endswith("_ds_mla"):
        return
    backends = _backends(deployment, asked)
    if backends is None:
        return
    boundary = "; the first and last two layers of a dense model stay 16-bit" if asked.startswith(_TURBOQUANT) else ""
    yield Diagnosis(
        f"{asked} KV can be read by {' or '.join(backends)} only",
        f"no other backend of vLLM {deployment.release.version} accepts {asked}{boundary}",
        "make sure that backend is in the engine's environment; compare answers with --kv-cache-dtype fp8_e4m3",
    )


@rule("LR127", "warning", "kv_dtype_overrides_checkpoint", "the KV data type differs from the checkpoint's own")
def kv_dtype_overrides_checkpoint(deployment: Deployment) -> Iterator[Diagnosis]:
    """A checkpoint made for one KV scheme loses its scales under another."""
    asked, forced = deployment.options.kv_cache_dtype, deployment.model.kv_cache_dtype_forced
    if asked in (None, "auto") or forced is None or _family(asked) == _family(forced):
        return
    yield Diagnosis(
        f"--kv-cache-dtype {asked} overrides the checkpoint's own {forced}",
        f"the config of '{deployment.model.name}' brings a KV scheme for {forced}; its scales are not for {asked}",
        "leave --kv-cache-dtype out to use the checkpoint's scheme",
        set_option("kv_cache_dtype", None),
    )


def _family(kv_cache_dtype: str | None) -> str:
    return "fp8" if kv_cache_dtype in _FP8 else kv_cache_dtype or ""


RULES: tuple[Rule, ...] = (
    fp8_kv_moves_backend,
    fp8_kv_emulated,
    fp8_kv_unsupported,
    fp8_kv_uncalibrated,
    no_backend_for_kv_dtype,
    packed_kv_needs_backend,
    kv_dtype_overrides_checkpoint,
)
