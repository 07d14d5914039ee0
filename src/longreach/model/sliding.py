"""Families whose layers alternate between a window and everything, some with other heads on each side."""

from dataclasses import replace

from longreach.model.attention import attention_layers, plain_layer, read_reaches
from longreach.model.decoder import Decoder
from longreach.model.fields import Fields
from longreach.model.spec import AttentionLayer


def read_alternating_2(decoder: Decoder) -> tuple[AttentionLayer, ...]:
    """Gemma 2, gpt-oss: every second layer sees everything."""
    return attention_layers(decoder, read_reaches(decoder, default_period=2))


def read_alternating_4(decoder: Decoder) -> tuple[AttentionLayer, ...]:
    """Cohere2, OLMo 3, EXAONE 4: every fourth layer sees everything."""
    return attention_layers(decoder, read_reaches(decoder, default_period=4))


def read_gemma3_layers(decoder: Decoder) -> tuple[AttentionLayer, ...]:
    """Gemma 3: every sixth layer sees everything."""
    return attention_layers(decoder, read_reaches(decoder, default_period=6))


def read_gemma3n_layers(decoder: Decoder) -> tuple[AttentionLayer, ...]:
    """Gemma 3n: every fifth layer sees everything; the last layers borrow earlier caches."""
    return _gemma3n(decoder)[: _num_owners(decoder)]


def read_gemma3n_borrowers(decoder: Decoder) -> tuple[AttentionLayer, ...]:
    """The last `num_kv_shared_layers` of Gemma 3n."""
    return _gemma3n(decoder)[_num_owners(decoder) :]


def read_gemma4_layers(decoder: Decoder) -> tuple[AttentionLayer, ...]:
    """Gemma 4: full layers have `global_head_dim` and, where keys serve as values, their own number of KV heads.

    The cache holds keys and values even where both come from one projection (vLLM gemma4.py).
    """
    return _gemma4(decoder)[: _num_owners(decoder)]


def read_gemma4_borrowers(decoder: Decoder) -> tuple[AttentionLayer, ...]:
    """The last `num_kv_shared_layers` of Gemma 4."""
    return _gemma4(decoder)[_num_owners(decoder) :]


def read_mimo_v2_layers(decoder: Decoder) -> tuple[AttentionLayer, ...]:
    """MiMo-V2: `hybrid_layer_pattern` with 1 for a sliding layer, which has heads of its own; values are narrower."""
    text = decoder.text
    pattern = text.per_layer(decoder.num_layers, text.counts("hybrid_layer_pattern"), "hybrid_layer_pattern")
    if pattern is None:
        text.note("hybrid_layer_pattern", text.values.get("hybrid_layer_pattern"), "0 or 1 for each layer")
    v_head_dim = text.optional_positive("v_head_dim", most=2**16) or decoder.head_dim
    full = replace(plain_layer(decoder, "full"), v_head_dim=v_head_dim)
    sliding = mimo_v2_sliding_layer(decoder)
    return tuple(sliding if mark else full for mark in pattern or ())


def mimo_v2_sliding_layer(decoder: Decoder) -> AttentionLayer:
    """The sliding layer, also the shape of MiMo-V2's MTP layer."""
    text = decoder.text
    head_dim = text.optional_positive("swa_head_dim", most=2**16) or decoder.head_dim
    return replace(
        plain_layer(decoder, "sliding"),
        num_heads=text.optional_positive("swa_num_attention_heads", most=2**16) or decoder.num_heads,
        num_kv_heads=text.optional_positive("swa_num_key_value_heads", most=2**16) or decoder.num_kv_heads,
        head_dim=head_dim,
        v_head_dim=text.optional_positive("swa_v_head_dim", most=2**16) or head_dim,
    )


def read_step_layers(decoder: Decoder) -> tuple[AttentionLayer, ...]:
    """Step-3.5: `attention_other_setting` gives the heads of the sliding layers."""
    return step_layers(decoder, 0, decoder.num_layers)


def step_layers(decoder: Decoder, first: int, last: int) -> tuple[AttentionLayer, ...]:
    """Layers first..last-1; `layer_types` goes on past the target with one entry for each MTP layer."""
    listed = decoder.text.texts("layer_types") or ()
    kinds = (*listed, *("sliding_attention",) * max(0, last - len(listed)))[first:last]
    if len(listed) < decoder.num_layers:
        decoder.text.note("layer_types", f"{len(listed)} entries", f"one for each of {decoder.num_layers} layers")
    other = decoder.text.nested("attention_other_setting")
    full, sliding = plain_layer(decoder, "full"), plain_layer(decoder, "sliding")
    if other is not None:
        sliding = _with_other_heads(sliding, other)
    return tuple(sliding if kind == "sliding_attention" else full for kind in kinds)


def read_llama4_layers(decoder: Decoder) -> tuple[AttentionLayer, ...]:
    """Llama 4: chunked local attention, except in the layers without rope (every fourth), which see everything."""
    text = decoder.text
    if text.has("layer_types") or not text.has("attention_chunk_size"):
        return attention_layers(decoder, read_reaches(decoder, default_period=None))
    rope_marks = text.per_layer(decoder.num_layers, text.counts("no_rope_layers") or None, "no_rope_layers")
    interval = text.optional_positive("no_rope_layer_interval", most=4096) or 4
    marks = rope_marks or tuple(int((index + 1) % interval != 0) for index in range(decoder.num_layers))
    return attention_layers(decoder, tuple("chunked" if mark else "full" for mark in marks))


def _with_other_heads(layer: AttentionLayer, other: Fields) -> AttentionLayer:
    head_dim = other.optional_positive("head_dim", most=2**16) or layer.head_dim
    return replace(
        layer,
        num_heads=other.optional_positive("num_attention_heads", most=2**16) or layer.num_heads,
        num_kv_heads=other.optional_positive("num_attention_groups", most=2**16) or layer.num_kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
    )


def _gemma3n(decoder: Decoder) -> tuple[AttentionLayer, ...]:
    return attention_layers(decoder, read_reaches(decoder, default_period=5))


def _gemma4(decoder: Decoder) -> tuple[AttentionLayer, ...]:
    text = decoder.text
    head_dim = text.optional_positive("global_head_dim", most=2**16) or decoder.head_dim
    own_heads = text.optional_positive("num_global_key_value_heads", most=2**16)
    full = replace(
        plain_layer(decoder, "full"),
        num_kv_heads=own_heads if own_heads and text.flag("attention_k_eq_v") else decoder.num_kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
    )
    sliding = plain_layer(decoder, "sliding")
    return tuple(sliding if reach == "sliding" else full for reach in read_reaches(decoder, default_period=6))


def _num_owners(decoder: Decoder) -> int:
    shared = decoder.text.count("num_kv_shared_layers", most=4096)
    if shared >= decoder.num_layers:
        decoder.text.note("num_kv_shared_layers", shared, f"fewer than the {decoder.num_layers} layers")
        return decoder.num_layers
    return decoder.num_layers - shared
