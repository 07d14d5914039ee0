"""Which attention backends vLLM may take on a CUDA device, most preferred first. Pure.

Read in the source of 0.32.0 (priorities of its CUDA platform, limits of each backend); no choice was watched on a GPU.
Head size, sinks, sliding windows and multimodal prefixes narrow the list further.
"""

from dataclasses import dataclass

_PLAIN = ("auto", "float16", "bfloat16")
_FP8 = ("fp8", "fp8_e4m3")
_TURBOQUANT = ("turboquant_k8v4", "turboquant_4bit_nc", "turboquant_k3v4_nc", "turboquant_3bit_nc")
_ANY_MAJOR = (7, 8, 9, 10, 12)


@dataclass(frozen=True, slots=True)
class _Support:
    """One backend with some KV dtypes on some majors of compute capability."""

    backend: str
    kv_cache_dtypes: tuple[str, ...]
    majors: tuple[int, ...]


_DENSE = (
    _Support("FLASH_ATTN", _PLAIN, (8, 9, 10, 12)),
    _Support("FLASH_ATTN", _FP8, (9, 10)),  # FA3 and FA4 only; FA2, all that SM8x and SM12x have, reads no fp8
    _Support("FLASHINFER", (*_PLAIN, *_FP8, "fp8_e5m2", "nvfp4"), (8, 9, 10, 12)),
    _Support("FLASHINFER", ("nvfp4_4over6",), (10,)),
    _Support("TRITON_ATTN", (*_PLAIN, *_FP8, "fp8_e5m2"), _ANY_MAJOR),
    _Support("TRITON_ATTN", ("int4_per_token_head", "int8_per_token_head", "fp8_per_token_head"), _ANY_MAJOR),
    _Support("FLEX_ATTENTION", _PLAIN, _ANY_MAJOR),
    _Support("TURBOQUANT", _TURBOQUANT, _ANY_MAJOR),
)
_MLA = (
    _Support("FLASHINFER_MLA", (*_PLAIN, *_FP8), (10,)),
    _Support("CUTLASS_MLA", (*_PLAIN, *_FP8), (10,)),
    _Support("FLASH_ATTN_MLA", _PLAIN, (9,)),
    _Support("FLASHMLA", (*_PLAIN, *_FP8), (9, 10)),
    _Support("TRITON_MLA", (*_PLAIN, *_FP8), _ANY_MAJOR),
)
_MLA_BLOCK_SIZES = {"FLASH_ATTN_MLA": 16, "FLASHMLA": 64, "FLASHINFER_MLA": 32, "CUTLASS_MLA": 128, "TRITON_MLA": 16}
_INDEXER_BLOCK_SIZE = 64  # the sparse indexer's keys, and every sparse backend beside them
_FLASHINFER_FIRST = 10  # on SM10x FlashInfer comes before FlashAttention


def expected_attention_backends(
    compute_capability: str, kv_cache_dtype: str = "auto", *, is_mla: bool = False
) -> tuple[str, ...] | None:
    """Backends that accept this KV dtype on this card, in vLLM's order; `("FLASHINFER", "TRITON_ATTN")` for "8.9", fp8.

    None where the rules are not known: no CUDA capability ("gfx942"), another major, a sparse-MLA dtype.
    """
    major = compute_capability.partition(".")[0]
    if not major.isdigit() or int(major) not in _ANY_MAJOR:
        return None
    rows = [
        row
        for row in (_MLA if is_mla else _DENSE)
        if int(major) in row.majors and kv_cache_dtype in row.kv_cache_dtypes
    ]
    names = list(dict.fromkeys(row.backend for row in rows))
    if int(major) == _FLASHINFER_FIRST and "FLASHINFER" in names:
        names.sort(key=lambda name: name != "FLASHINFER")
    return tuple(names) or None


def latent_block_size(compute_capability: str, kv_cache_dtype: str, *, has_indexer: bool) -> int | None:
    """Tokens of a block that vLLM takes for latent attention (MLA) on a CUDA card when no --block-size is given.

    16 if the backend accepts it, else the smallest size it does; None where the backend is not known.
    """
    if has_indexer:
        return _INDEXER_BLOCK_SIZE
    backends = expected_attention_backends(compute_capability, kv_cache_dtype, is_mla=True)
    return _MLA_BLOCK_SIZES[backends[0]] if backends else None
