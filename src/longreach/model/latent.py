"""Multi-head latent attention and the sparse indexer beside it."""

from dataclasses import replace

from longreach.model.decoder import Decoder
from longreach.model.spec import CompressedCache, IndexerLayer, KvLayer, MlaLayer


def mla_layer(decoder: Decoder, default_head_dim: int | None = None) -> MlaLayer:
    """One latent per token. A qk_rope_head_dim of 0 is real (NoPE models); `default_head_dim` stands for absent widths."""
    text = decoder.text
    if not text.has("qk_rope_head_dim"):
        text.positive("qk_rope_head_dim")
    return MlaLayer(
        num_heads=decoder.num_heads,
        kv_lora_rank=text.positive("kv_lora_rank", most=2**20),
        rope_head_dim=text.count("qk_rope_head_dim", most=2**16),
        nope_head_dim=_width(decoder, "qk_nope_head_dim", default_head_dim),
        v_head_dim=_width(decoder, "v_head_dim", default_head_dim),
    )


def read_mla_layers(decoder: Decoder) -> tuple[MlaLayer, ...]:
    """Every layer holds one latent cache."""
    return (mla_layer(decoder),) * decoder.num_layers


def read_sparse_mla_layers(decoder: Decoder) -> tuple[tuple[KvLayer, ...], ...]:
    """MLA, and an index key cache beside each layer that owns an indexer."""
    return sparse_mla_layers(decoder, range(decoder.num_layers))


def sparse_mla_layers(decoder: Decoder, layer_ids: range) -> tuple[tuple[KvLayer, ...], ...]:
    """The caches of these layers; ids past the last target layer are MTP layers."""
    mla = mla_layer(decoder)
    indexer = indexer_layer(decoder)
    return tuple((mla, indexer) if _owns_indexer(decoder, layer_id) else (mla,) for layer_id in layer_ids)


def indexer_layer(decoder: Decoder, tokens_per_state: int = 1) -> IndexerLayer:
    """The key cache of a sparse-attention indexer."""
    return IndexerLayer(
        head_dim=decoder.text.positive("index_head_dim", most=2**16),
        num_heads=decoder.text.optional_positive("index_n_heads", most=2**16),
        tokens_per_state=tokens_per_state,
    )


def read_double_mla_layers(decoder: Decoder) -> tuple[tuple[MlaLayer, ...], ...]:
    """LongCat-Flash: two attention sub-layers in each decoder layer."""
    return ((mla_layer(decoder),) * 2,) * decoder.num_layers


def read_compressed_layers(decoder: Decoder) -> tuple[tuple[KvLayer, ...], ...]:
    """DeepSeek-V4: each layer keeps one vector per `compress_ratios` tokens (0 and 1: a window only, not counted here);
    ratio 4 adds an index key cache of the same ratio. The vector is `head_dim` wide and serves as key and value.
    """
    rope_head_dim = decoder.text.positive("qk_rope_head_dim", most=decoder.head_dim)
    nope = decoder.head_dim - rope_head_dim
    whole = MlaLayer(decoder.num_heads, nope, rope_head_dim, nope, decoder.head_dim)
    return tuple(_compressed(decoder, whole, ratio) for ratio in _ratios(decoder))


def read_compressed_cache(decoder: Decoder) -> CompressedCache:
    """All that DeepSeek-V4 keeps; `compress_ratios` goes on past the target with one entry for each MTP layer."""
    ratios, window = _ratios(decoder), decoder.text.positive("sliding_window")
    listed = decoder.text.counts("compress_ratios") or ()
    num_drafts = decoder.text.count("num_nextn_predict_layers", most=64)
    drafts = (*listed[len(ratios) :], *(0,) * num_drafts)[:num_drafts]
    return CompressedCache(ratios, drafts, decoder.head_dim, indexer_layer(decoder).head_dim, window)


def _ratios(decoder: Decoder) -> tuple[int, ...]:
    text = decoder.text
    ratios = text.per_layer(decoder.num_layers, text.counts("compress_ratios"), "compress_ratios")
    if ratios is None:
        text.note("compress_ratios", text.values.get("compress_ratios"), "one number for each layer")
    return tuple(ratios or ())


def _compressed(decoder: Decoder, whole: MlaLayer, ratio: int) -> tuple[KvLayer, ...]:
    if ratio <= 1:
        return ()
    vectors = replace(whole, tokens_per_state=ratio)
    return (vectors, indexer_layer(decoder, tokens_per_state=ratio)) if ratio == 4 else (vectors,)


def _owns_indexer(decoder: Decoder, layer_id: int) -> bool:
    """As deepseek_v2.py of vLLM 0.32: `index_topk_pattern` ("F"/"S" a layer), else every `index_topk_freq`-th layer."""
    text = decoder.text
    types = text.per_layer(decoder.num_layers, text.texts("indexer_types"), "indexer_types")
    if types is not None and layer_id < decoder.num_layers:
        return types[layer_id] != "shared"
    pattern = text.text("index_topk_pattern")
    if pattern is not None:
        return layer_id >= len(pattern) or pattern[layer_id] != "S"
    offset = text.count("index_skip_topk_offset") if text.has("index_skip_topk_offset") else 2
    return max(layer_id - offset + 1, 0) % (text.optional_positive("index_topk_freq") or 1) == 0


def _width(decoder: Decoder, name: str, default: int | None) -> int:
    if default is not None and not decoder.text.has(name):
        return default
    return decoder.text.positive(name, most=2**16)
