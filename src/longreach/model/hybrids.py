"""Models that mix layer kinds: which layer caches what."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from longreach.errors import UnknownModelError
from longreach.model.attention import plain_layer
from longreach.model.decoder import Decoder
from longreach.model.fields import Fields
from longreach.model.latent import indexer_layer, mla_layer
from longreach.model.recurrent import (
    bailing_delta_layer,
    gated_delta_layer,
    kimi_delta_layer,
    linear_attention_layer,
    mamba1_layer,
    mamba2_layer,
    nemotron_mamba2_layer,
    short_conv_layer,
)
from longreach.model.spec import AttentionLayer, KvLayer

Caches = Mapping[str, tuple[KvLayer, ...]]
"""What a layer of each kind caches: nothing (an MLP block), one cache, or two (Falcon-H1)."""

COUNTED = ("num_attention_layers", "num_full_attention_layers")
"""Not in published configs: how catalogues state a mix whose order they do not know."""

_NEMOTRON_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def read_gated_delta_layers(decoder: Decoder) -> tuple[tuple[KvLayer, ...], ...]:
    """`layer_types`, else full attention in every `full_attention_interval`-th layer (4 when absent)."""
    text = decoder.text
    interval = text.optional_positive("full_attention_interval", most=4096) or 4
    kinds = _listed(decoder, "layer_types") or _every_nth("full_attention", "linear_attention", interval, decoder)
    caches: Caches = {"linear_attention": (gated_delta_layer(decoder),), "full_attention": _full(decoder)}
    return pick_caches(decoder, kinds, caches)


def read_kimi_layers(decoder: Decoder) -> tuple[tuple[KvLayer, ...], ...]:
    """Kimi-Linear: layers named in `linear_attn_config.kda_layers` (from 1) keep a delta state, the rest a latent."""
    return _kimi_layers(decoder, checkpoints_prefill=False)


def read_kimi_k3_layers(decoder: Decoder) -> tuple[tuple[KvLayer, ...], ...]:
    """As Kimi-Linear, with a prefill kernel that keeps checkpoints."""
    return _kimi_layers(decoder, checkpoints_prefill=True)


def read_bailing_v3_layers(decoder: Decoder) -> tuple[tuple[KvLayer, ...], ...]:
    """Ling 3 (vLLM bailing_moe_v3): MLA in every `layer_group_size`-th layer and in an incomplete last group."""
    group = decoder.text.positive("layer_group_size", most=4096)
    complete = decoder.num_layers // group * group
    kinds = ["mla" if (index + 1) % group == 0 or index >= complete else "delta" for index in range(decoder.num_layers)]
    return pick_caches(decoder, kinds, {"delta": (bailing_delta_layer(decoder),), "mla": (mla_layer(decoder),)})


def read_bailing_linear_layers(decoder: Decoder) -> tuple[tuple[KvLayer, ...], ...]:
    """Ling 2.6 (vLLM bailing_moe_linear): MLA in every `layer_group_size`-th layer, plain linear attention elsewhere.

    Its class takes 128 for head widths that the config leaves out.
    """
    group = decoder.text.positive("layer_group_size", most=4096)
    kinds = _every_nth("mla", "linear", group, decoder)
    return pick_caches(
        decoder, kinds, {"linear": (linear_attention_layer(decoder),), "mla": (mla_layer(decoder, 128),)}
    )


def read_glm5_next_layers(decoder: Decoder) -> tuple[tuple[KvLayer, ...], ...]:
    """GLM-5.3-Flash: delta attention, and MLA with an indexer that keeps one key per `index_kpool` tokens."""
    kinds = _listed(decoder, "layer_types")
    if kinds is None:
        decoder.text.note("layer_types", None, "one kind for each layer")
    pool = decoder.text.optional_positive("index_kpool", most=4096) or 1
    caches: Caches = {
        "linear_attention": (kimi_delta_layer(decoder, checkpoints_prefill=True),),
        "indexed_attention": (mla_layer(decoder), indexer_layer(decoder, tokens_per_state=pool)),
    }
    return pick_caches(decoder, kinds or (), caches)


def read_removed_attention_layers(decoder: Decoder) -> tuple[tuple[KvLayer, ...], ...]:
    """Nemotron-NAS: `block_configs` say which layers keep their attention, and in groups of how many query heads."""
    blocks = decoder.text.per_layer(decoder.num_layers, decoder.text.mappings("block_configs"), "block_configs")
    if blocks is None:
        decoder.text.note("block_configs", None, "one object for each layer")
    layers = (_removed_attention_layer(decoder, block) for block in blocks or ())
    return tuple((layer,) if layer is not None else () for layer in layers)


def read_granite_hybrid_layers(decoder: Decoder) -> tuple[tuple[KvLayer, ...], ...]:
    """Granite 4: `layer_types` of "mamba" and "attention"."""
    kinds = _listed(decoder, "layer_types", "layers_block_type") or _counted(decoder, "attention", "mamba")
    has_mamba = "mamba" in kinds
    caches: Caches = {"attention": _full(decoder), **({"mamba": (mamba2_layer(decoder),)} if has_mamba else {})}
    return pick_caches(decoder, kinds, caches)


def read_falcon_h1_layers(decoder: Decoder) -> tuple[tuple[KvLayer, ...], ...]:
    """Every layer runs a Mamba2 mixer and attention side by side and caches both."""
    return ((mamba2_layer(decoder), *_full(decoder)),) * decoder.num_layers


def read_nemotron_h_layers(decoder: Decoder) -> tuple[tuple[KvLayer, ...], ...]:
    """`hybrid_override_pattern` ("M-M*E") or `layers_block_type`; MLP and MoE blocks are layers of their own."""
    text = decoder.text
    kinds = _listed(decoder, "layers_block_type", "layer_types")
    if kinds is None:
        letters = text.text("hybrid_override_pattern")
        if letters is None:
            text.note("hybrid_override_pattern", None, "one letter a layer (or layers_block_type)")
        kinds = text.per_layer(decoder.num_layers, letters or "-" * decoder.num_layers, "hybrid_override_pattern")
    kinds = tuple(_NEMOTRON_LETTERS.get(kind, kind) for kind in kinds or ())
    caches: Caches = {"mamba": (nemotron_mamba2_layer(decoder),), "attention": _full(decoder), "mlp": (), "moe": ()}
    return pick_caches(decoder, kinds, caches)


def read_jamba_layers(decoder: Decoder) -> tuple[tuple[KvLayer, ...], ...]:
    """Attention where layer % `attn_layer_period` == `attn_layer_offset`, Mamba1 elsewhere."""
    period = decoder.text.positive("attn_layer_period", most=4096)
    offset = decoder.text.count("attn_layer_offset", most=4096)
    kinds = ["attention" if index % period == offset else "mamba" for index in range(decoder.num_layers)]
    return pick_caches(decoder, kinds, {"mamba": (mamba1_layer(decoder),), "attention": _full(decoder)})


def read_short_conv_layers(decoder: Decoder) -> tuple[tuple[KvLayer, ...], ...]:
    """LFM2: `layer_types`, or the older list of attention layers."""
    kinds = _listed(decoder, "layer_types")
    attention = decoder.text.counts("full_attn_idxs")
    if kinds is None and attention is not None:
        kinds = tuple("full_attention" if index in attention else "conv" for index in range(decoder.num_layers))
    kinds = kinds or _counted(decoder, "full_attention", "conv")
    return pick_caches(decoder, kinds, {"conv": (short_conv_layer(decoder),), "full_attention": _full(decoder)})


def read_minimax_linear_layers(decoder: Decoder) -> tuple[tuple[KvLayer, ...], ...]:
    """MiniMax-Text-01, M1: `attn_type_list` with 1 for attention and 0 for linear attention."""
    text = decoder.text
    listed = text.per_layer(decoder.num_layers, text.counts("attn_type_list"), "attn_type_list")
    if listed is None:
        text.note("attn_type_list", text.values.get("attn_type_list"), "0 or 1 for each layer")
    kinds = ["attention" if found else "linear" for found in listed or ()]
    return pick_caches(decoder, kinds, {"linear": (linear_attention_layer(decoder),), "attention": _full(decoder)})


def pick_caches(decoder: Decoder, kinds: Sequence[str], caches: Caches) -> tuple[tuple[KvLayer, ...], ...]:
    """The caches of each layer by its listed kind; a kind outside the family is refused."""
    for kind in kinds:
        if kind not in caches:
            raise UnknownModelError(
                f"layer kind '{kind}' of '{decoder.root.name}' is not understood",
                f"{decoder.architecture or decoder.model_type} is known with {', '.join(caches)}",
                "none: how vLLM sizes the cache of this layer is not known to longreach",
            )
    return tuple(caches[kind] for kind in kinds)


def _full(decoder: Decoder) -> tuple[KvLayer, ...]:
    return (plain_layer(decoder, "full"),)


def _listed(decoder: Decoder, *names: str) -> tuple[str, ...] | None:
    return decoder.text.per_layer(decoder.num_layers, decoder.text.texts(*names), names[0])


def _every_nth(kind: str, other: str, interval: int, decoder: Decoder) -> tuple[str, ...]:
    return tuple(kind if (index + 1) % interval == 0 else other for index in range(decoder.num_layers))


def _counted(decoder: Decoder, attention: str, other: str, missing: str = "layer_types") -> tuple[str, ...]:
    """No order published, only the number of attention layers: spread them evenly (sums do not depend on the order)."""
    text = decoder.text
    if not text.has(*COUNTED):
        text.note(missing, None, "the kind of each layer")
        return ()
    wanted = min(text.positive(*COUNTED, most=4096), decoder.num_layers)
    marks = {(index + 1) * decoder.num_layers // wanted - 1 for index in range(wanted)}
    return tuple(attention if index in marks else other for index in range(decoder.num_layers))


def _kimi_layers(decoder: Decoder, *, checkpoints_prefill: bool) -> tuple[tuple[KvLayer, ...], ...]:
    caches: Caches = {
        "delta": (kimi_delta_layer(decoder, checkpoints_prefill=checkpoints_prefill),),
        "mla": (mla_layer(decoder),),
    }
    inner = decoder.text.nested("linear_attn_config")
    listed = inner.counts("kda_layers") if inner is not None else None
    if listed is None:
        return pick_caches(decoder, _counted(decoder, "mla", "delta", "linear_attn_config.kda_layers"), caches)
    kinds = ["delta" if index + 1 in listed else "mla" for index in range(decoder.num_layers)]
    return pick_caches(decoder, kinds, caches)


def _removed_attention_layer(decoder: Decoder, block: Fields) -> AttentionLayer | None:
    attention = block.nested("attention")
    if attention is None:
        block.note("attention", None, "an object")
        return None
    if attention.flag("no_op"):
        return None
    changed = next(
        (key for key in ("replace_with_linear", "window_length", "sparsify") if attention.values.get(key)), None
    )
    if changed is not None:
        raise UnknownModelError(
            f"an attention block of '{decoder.root.name}' is not understood",
            f"'{'.'.join((*attention.path, changed))}' is set; known are blocks kept whole or removed",
            "none: how vLLM sizes the cache of this block is not known to longreach",
        )
    group = attention.positive("n_heads_in_group", most=2**16)
    return replace(plain_layer(decoder, "full"), num_kv_heads=max(1, decoder.num_heads // group))
