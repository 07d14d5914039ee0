"""Which KV cache dtypes each attention backend takes, release by release: `supported_kv_cache_dtypes` of its class.

Read in 23 releases, 0.11.2 to 0.33.0. FlashAttention, FlashInfer's own veto and ROCm's classes before 0.18.1 decide by more than
the name, so they are not rows here: what is not a row is not known.
"""

from longreach.engine.registry import version_key
from longreach.engine.release import Release

_PLAIN = ("auto", "float16", "bfloat16", "float32")
_FP8 = (*_PLAIN, "fp8", "fp8_e4m3")
_FP8_BOTH = (*_FP8, "fp8_e5m2")
_PER_TOKEN = (*_FP8_BOTH, "int8_per_token_head", "fp8_per_token_head")

_ROWS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("CUTLASS_MLA", "0.11.2", _FP8),
    ("FLASHINFER_MLA", "0.11.2", _FP8),
    ("FLASHMLA", "0.11.2", _FP8),
    ("FLASHMLA_SPARSE", "0.11.2", (*_PLAIN, "fp8_ds_mla")),
    ("FLASHMLA_SPARSE", "0.18.1", (*_PLAIN, "fp8_ds_mla", "fp8")),
    ("FLASHMLA_SPARSE", "0.30.0", (*_PLAIN, "fp8_ds_mla", "fp8", "nvfp4_ds_mla")),
    ("FLASH_ATTN_MLA", "0.11.2", _PLAIN),
    ("FLEX_ATTENTION", "0.11.2", _PLAIN),
    ("ROCM_AITER_FA", "0.18.1", _FP8_BOTH),
    ("ROCM_AITER_MLA", "0.18.1", _FP8_BOTH),
    ("ROCM_ATTN", "0.18.1", _FP8_BOTH),
    ("TOKENSPEED_MLA", "0.21.0", ("fp8", "fp8_e4m3")),
    ("TREE_ATTN", "0.11.2", _PLAIN),
    ("TRITON_ATTN", "0.11.2", _FP8_BOTH),
    ("TRITON_ATTN", "0.20.2", _PER_TOKEN),
    ("TRITON_ATTN", "0.25.1", (*_PER_TOKEN, "int4_per_token_head")),
    ("TRITON_MLA", "0.11.2", _PLAIN),
    ("TRITON_MLA", "0.18.1", _FP8),
    ("TURBOQUANT", "0.20.2", ("turboquant_k8v4", "turboquant_4bit_nc", "turboquant_k3v4_nc", "turboquant_3bit_nc")),
    ("ULTRAQUANT", "0.32.0", ("ultraquant_4bit",)),
    ("XFORMERS", "0.11.2", _PLAIN),
)


def backend_kv_dtypes(backend: str, release: Release) -> tuple[str, ...] | None:
    """The dtypes that a backend takes in a release, plain ones included; None where that is not known."""
    known = [row for row in _ROWS if row[0] == backend and version_key(row[1]) <= release.number]
    return known[-1][2] if known else None
