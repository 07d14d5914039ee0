"""Which attention backends vLLM may take on a CUDA device, most preferred first. Pure.

Read in the sources of 0.11.2 to 0.33.0 (priorities of the CUDA platform, limits of each backend); no choice was watched on a
GPU. Head size, sinks, sliding windows and multimodal prefixes narrow the list further.
"""

from dataclasses import dataclass

_PLAIN = ("auto", "float16", "bfloat16")
_FP8 = ("fp8", "fp8_e4m3")
_TURBOQUANT = ("turboquant_k8v4", "turboquant_4bit_nc", "turboquant_k3v4_nc", "turboquant_3bit_nc")
_ANY_MAJOR = (7, 8, 9, 10, 12)
_FIRST_KNOWN = (0, 11, 2)  # before, the choice is spread over the platform's code

Number = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Support:
    """One backend with some KV dtypes on some majors of compute capability, from one release to another."""

    backend: str
    kv_cache_dtypes: tuple[str, ...]
    majors: tuple[int, ...]
    first: Number = _FIRST_KNOWN
    last: Number = (1, 0)


_DENSE = (
    _Support("FLASH_ATTN", _PLAIN, (8, 9, 10, 12)),
    _Support("FLASH_ATTN", _FP8, (9,)),  # FA3; FA2, all that SM8x and SM12x have, reads no fp8
    _Support("FLASH_ATTN", _FP8, (10,), first=(0, 27)),  # FA4
    _Support("FLASHINFER", (*_PLAIN, *_FP8, "fp8_e5m2"), (8, 9, 10, 12)),
    _Support("FLASHINFER", (*_PLAIN, *_FP8, "fp8_e5m2"), (7,), last=(0, 26)),
    _Support("FLASHINFER", ("nvfp4",), (10,), first=(0, 20)),
    _Support("FLASHINFER", ("nvfp4",), (8, 9, 12), first=(0, 32)),  # FA2 kernels
    _Support("FLASHINFER", ("nvfp4_4over6",), (10,), first=(0, 28)),
    _Support("TRITON_ATTN", (*_PLAIN, *_FP8, "fp8_e5m2"), _ANY_MAJOR),
    _Support("TRITON_ATTN", ("int8_per_token_head", "fp8_per_token_head"), _ANY_MAJOR, first=(0, 20)),
    _Support("TRITON_ATTN", ("int4_per_token_head",), _ANY_MAJOR, first=(0, 25)),
    _Support("FLEX_ATTENTION", _PLAIN, _ANY_MAJOR),
    _Support("TURBOQUANT", _TURBOQUANT, _ANY_MAJOR, first=(0, 20)),
)
_MLA = (
    _Support("FLASHINFER_MLA", (*_PLAIN, *_FP8), (10,)),
    _Support("CUTLASS_MLA", (*_PLAIN, *_FP8), (10,)),
    _Support("FLASH_ATTN_MLA", _PLAIN, (9,)),
    _Support("FLASHMLA", (*_PLAIN, *_FP8), (9, 10)),
    _Support("TRITON_MLA", _PLAIN, _ANY_MAJOR),
    _Support("TRITON_MLA", _FP8, _ANY_MAJOR, first=(0, 18)),
)
_SPARSE_MLA = (  # DeepSeek-V3.2 and GLM-5: an indexer chooses the tokens
    _Support("FLASHINFER_MLA_SPARSE", _PLAIN, (10,), first=(0, 17)),
    _Support("FLASHINFER_MLA_SPARSE", _FP8, (10,), first=(0, 18)),
    _Support("FLASHINFER_MLA_SPARSE_SM120", ("auto", *_FP8, "fp8_ds_mla"), (12,), first=(0, 24)),
    _Support("FLASH_ATTN_MLA_SPARSE", _PLAIN, (9,), first=(0, 25)),
    _Support("FLASHMLA_SPARSE", ("auto", "bfloat16", "fp8_ds_mla"), (9, 10)),
    _Support("FLASHMLA_SPARSE", ("fp8_e4m3",), (9, 10), last=(0, 17, 99)),  # any fp8 became fp8_ds_mla
    _Support("FLASHMLA_SPARSE", ("fp8",), (9, 10)),
    _Support("FLASHMLA_SPARSE", ("nvfp4_ds_mla",), (9, 10), first=(0, 30)),
)
_MLA_BLOCK_SIZES = {"FLASH_ATTN_MLA": 16, "FLASHMLA": 64, "FLASHINFER_MLA": 32, "CUTLASS_MLA": 128, "TRITON_MLA": 16}
_INDEXER_BLOCK_SIZE = 64  # the sparse indexer's keys, and every sparse backend beside them
_FLASHINFER_FIRST = 10  # on SM10x FlashInfer comes before FlashAttention


def expected_attention_backends(
    compute_capability: str,
    kv_cache_dtype: str = "auto",
    *,
    is_mla: bool = False,
    is_sparse: bool = False,
    release: Number | None = None,
) -> tuple[str, ...] | None:
    """Backends that accept this KV dtype on this card, in vLLM's order; `("FLASHINFER", "TRITON_ATTN")` for "8.9", fp8.

    `release` (0, 23, 0): the newest when it is left out. None where the rules are not known: no CUDA capability ("gfx942"),
    another major, an older release. None as well where no backend accepts the dtype.
    """
    major = compute_capability.partition(".")[0]
    number = release or (1, 0)
    if not major.isdigit() or int(major) not in _ANY_MAJOR or number < _FIRST_KNOWN:
        return None
    rows = [
        row
        for row in (_SPARSE_MLA if is_sparse else _MLA if is_mla else _DENSE)
        if int(major) in row.majors and kv_cache_dtype in row.kv_cache_dtypes and row.first <= number <= row.last
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
