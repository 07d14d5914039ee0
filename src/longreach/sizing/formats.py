"""KV cache formats: the bytes of one token in one layer on one GPU, by `--kv-cache-dtype`.

Each format is a pair of formulas, read in vLLM 0.32's cache specs and attention backends: one for grouped-query
attention (bytes of one token and one KV head, from key and value dim) and one for latent attention (bytes of one token,
from the latent's width). A missing formula means that no backend stores such a layer in this format.
"""

from collections.abc import Callable
from dataclasses import dataclass

from longreach.errors import UnknownModelError, UsageError
from longreach.model.spec import AttentionLayer, CrossAttentionLayer, IndexerLayer, MlaLayer
from longreach.units import ceil_div, did_you_mean

DTYPE_BYTES = {"float32": 4, "float": 4, "float16": 2, "half": 2, "bfloat16": 2}

_SCALE_PAIR_BYTES = 8  # per-token-head formats: one float32 scale for the key, one for the value, stored inline
_INDEXER_GROUP = 128  # the indexer's key cache: one float32 scale for every 128 uint8 keys
_TURBOQUANT_BITS = {  # key bits, value bits
    "turboquant_k8v4": (8, 4),
    "turboquant_4bit_nc": (4, 4),
    "turboquant_k3v4_nc": (3, 4),
    "turboquant_3bit_nc": (3, 3),
}
_ULTRAQUANT_GROUP = 32


@dataclass(frozen=True, slots=True)
class KvFormat:
    """One `--kv-cache-dtype`. `kernel_block_sizes` is set where a backend takes these block sizes and no multiples."""

    name: str
    head_bytes: Callable[[int, int], int] | None  # (key dim, value dim) -> bytes of one token and KV head
    latent_bytes: Callable[[int], int] | None  # latent width -> bytes of one token
    kernel_block_sizes: tuple[int, ...] = ()
    value_bytes: int = 1  # of the tensor that stores it; packed formats are byte tensors
    keeps_boundary_layers: bool = False  # dense models: first and last two layers stay at the model's dtype


def _plain(name: str, size_bytes: int) -> KvFormat:
    return KvFormat(name, lambda k, v: (k + v) * size_bytes, lambda width: width * size_bytes, value_bytes=size_bytes)


def _per_token_head(name: str, values_per_byte: int) -> KvFormat:
    return KvFormat(
        name,
        lambda k, v: k // values_per_byte + v // values_per_byte + _SCALE_PAIR_BYTES,
        lambda width: width // values_per_byte + _SCALE_PAIR_BYTES,
    )


def _nvfp4(name: str) -> KvFormat:
    # fp4 data and one fp8 scale for 16 values, key and value as two head slots of equal width
    return KvFormat(name, lambda k, _: 2 * (k // 2 + k // 16), None)


def _turboquant(name: str) -> KvFormat:
    key_bits, value_bits = _TURBOQUANT_BITS[name]

    def head_bytes(k: int, _: int) -> int:
        key = k if key_bits == 8 else ceil_div(k * key_bits, 8) + 2  # a float16 norm beside packed keys
        value = ceil_div(k * value_bits, 8) + 4  # a float16 scale and zero
        return key + value + (key + value) % 2

    return KvFormat(name, head_bytes, None, kernel_block_sizes=(16, 32, 64, 128), keeps_boundary_layers=True)


def _ultraquant(name: str) -> KvFormat:
    return KvFormat(
        name,
        lambda k, _: 2 * (k // 2 + k // _ULTRAQUANT_GROUP),
        None,
        kernel_block_sizes=(16, 32, 64, 128),
        keeps_boundary_layers=True,
    )


def _opaque_latent(name: str, token_bytes: int) -> KvFormat:
    return KvFormat(name, None, lambda _: token_bytes)  # one blob a token: latent, rope part and scales


FORMATS: dict[str, KvFormat] = {
    found.name: found
    for found in (
        _plain("float32", 4),
        _plain("float16", 2),
        _plain("bfloat16", 2),
        *(_plain(name, 1) for name in ("fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc")),
        *(_per_token_head(name, 1) for name in ("int8_per_token_head", "fp8_per_token_head")),
        _per_token_head("int4_per_token_head", 2),
        _nvfp4("nvfp4"),
        _nvfp4("nvfp4_4over6"),
        *(_turboquant(name) for name in _TURBOQUANT_BITS),
        _ultraquant("ultraquant_4bit"),
        _opaque_latent("fp8_ds_mla", 656),
        _opaque_latent("nvfp4_ds_mla", 352),
    )
}


def get_kv_format(kv_cache_dtype: str, model_dtype: str) -> KvFormat:
    """The format of `--kv-cache-dtype`; `auto` is the model's dtype.

    Raises UnknownModelError for formats that exist but are not modelled (octave), UsageError for other names.
    """
    name = model_dtype if kv_cache_dtype == "auto" else kv_cache_dtype
    name = {"half": "float16", "float": "float32"}.get(name, name)
    if name in FORMATS:
        return FORMATS[name]
    if name.startswith("octave"):
        raise UnknownModelError(
            f"the KV cache format '{name}' is not modelled",
            "octave formats (vLLM 0.33 on ROCm) have a layout that longreach does not know",
            "--kv-cache-dtype fp8_e4m3, or auto",
        )
    known = ["auto", *FORMATS]
    raise UsageError(
        f"unknown KV cache dtype '{name}'",
        f"known are {', '.join(known)}",
        did_you_mean(name, known) or "--kv-cache-dtype auto",
    )


def token_bytes_per_gpu(
    layer: AttentionLayer | MlaLayer | IndexerLayer | CrossAttentionLayer, kv_format: KvFormat, tp_size: int
) -> int:
    """Bytes of one token in this layer on one GPU.

    KV heads are split over TP and never fall below one (more GPUs than heads hold copies); a latent and an indexer's keys
    are held whole by every GPU. Raises UsageError when the format cannot store the layer.
    """
    match layer:
        case IndexerLayer(head_dim):
            return head_dim + head_dim // _INDEXER_GROUP * 4  # uint8, whatever the format of the cache beside it
        case MlaLayer():
            if kv_format.latent_bytes is None:
                raise cannot_store(kv_format.name, "latent attention (MLA)", "fp8_e4m3")
            return kv_format.latent_bytes(layer.kv_lora_rank + layer.rope_head_dim)
        case AttentionLayer(num_kv_heads=heads, head_dim=key_dim, v_head_dim=value_dim):
            return _grouped_query_bytes(kv_format, heads, (key_dim, value_dim), tp_size)
        case CrossAttentionLayer(num_kv_heads=heads, head_dim=head_dim):
            return _grouped_query_bytes(kv_format, heads, (head_dim, head_dim), tp_size)


def _grouped_query_bytes(kv_format: KvFormat, num_kv_heads: int, dims: tuple[int, int], tp_size: int) -> int:
    if kv_format.head_bytes is None:
        raise cannot_store(kv_format.name, "grouped-query attention", "fp8_e4m3")
    if kv_format.name.startswith("nvfp4") and dims[0] != dims[1]:
        raise cannot_store(kv_format.name, f"keys of {dims[0]} beside values of {dims[1]}", "fp8_e4m3")
    return max(1, num_kv_heads // tp_size) * kv_format.head_bytes(*dims)


def cannot_store(name: str, layer: str, instead: str) -> UsageError:
    """The error for a format without a formula for this kind of layer."""
    return UsageError(
        f"--kv-cache-dtype {name} cannot hold {layer}",
        "no attention backend of vLLM stores such a layer in this format",
        f"--kv-cache-dtype {instead}, or auto",
    )
