"""Multi-head latent attention and the sparse indexer beside it."""

from longreach.model.decoder import Decoder
from longreach.model.spec import IndexerLayer, KvLayer, MlaLayer


def mla_layer(decoder: Decoder) -> MlaLayer:
    """One latent per token. A qk_rope_head_dim of 0 is real (NoPE models)."""
    text = decoder.text
    if not text.has("qk_rope_head_dim"):
        text.positive("qk_rope_head_dim")
    return MlaLayer(
        num_heads=decoder.num_heads,
        kv_lora_rank=text.positive("kv_lora_rank", most=2**20),
        rope_head_dim=text.count("qk_rope_head_dim", most=2**16),
        nope_head_dim=text.positive("qk_nope_head_dim", most=2**16),
        v_head_dim=text.positive("v_head_dim", most=2**16),
    )


def read_mla_layers(decoder: Decoder) -> tuple[MlaLayer, ...]:
    """Every layer holds one latent cache."""
    return (mla_layer(decoder),) * decoder.num_layers


def read_sparse_mla_layers(decoder: Decoder) -> tuple[KvLayer, ...]:
    """MLA, and an index key cache beside each layer that owns an indexer."""
    return sparse_mla_layers(decoder, range(decoder.num_layers))


def sparse_mla_layers(decoder: Decoder, layer_ids: range) -> tuple[KvLayer, ...]:
    """The caches of these layers; ids past the last target layer are MTP layers."""
    mla = mla_layer(decoder)
    indexer = IndexerLayer(head_dim=decoder.text.positive("index_head_dim", most=2**16))
    layers: list[KvLayer] = []
    for layer_id in layer_ids:
        layers.append(mla)
        if _owns_indexer(decoder, layer_id):
            layers.append(indexer)
    return tuple(layers)


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
