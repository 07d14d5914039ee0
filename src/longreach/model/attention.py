"""Which layers cache keys and values, and how far back they look: full, sliding window, chunked local, shared."""

from collections.abc import Sequence
from typing import Literal

from longreach.errors import UnknownModelError
from longreach.model.decoder import Decoder
from longreach.model.spec import AttentionLayer, CrossAttentionLayer

Reach = Literal["full", "sliding", "chunked"]

_LAYER_TYPES: dict[str, Reach] = {
    "full_attention": "full",
    "attention": "full",
    "sliding_attention": "sliding",
    "chunked_attention": "chunked",
}


_SLIDES_FROM_A_LAYER = frozenset(("qwen2", "qwen3", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"))


def read_attention_layers(decoder: Decoder) -> tuple[AttentionLayer, ...]:
    """Every layer caches; `layer_types`, a pattern or a window tells how far it looks."""
    return attention_layers(decoder, read_reaches(decoder, default_period=None))


def attention_layers(decoder: Decoder, reaches: Sequence[Reach]) -> tuple[AttentionLayer, ...]:
    """One layer a reach, all with the model-wide heads."""
    return tuple(plain_layer(decoder, reach) for reach in reaches)


def plain_layer(decoder: Decoder, reach: Reach) -> AttentionLayer:
    """A layer with the model-wide heads and head_dim."""
    return AttentionLayer(
        num_heads=decoder.num_heads,
        num_kv_heads=decoder.num_kv_heads,
        head_dim=decoder.head_dim,
        v_head_dim=decoder.head_dim,
        window_tokens=window_tokens(decoder) if reach == "sliding" else None,
        chunk_tokens=decoder.text.positive("attention_chunk_size") if reach == "chunked" else None,
    )


def window_tokens(decoder: Decoder) -> int:
    """The sliding window; required once a layer slides."""
    return decoder.text.positive("sliding_window", "sliding_window_size")


def full_layers(decoder: Decoder) -> tuple[AttentionLayer, ...]:
    """Every layer sees everything, whatever window fields stand in the config."""
    return (plain_layer(decoder, "full"),) * decoder.num_layers


def read_reaches(decoder: Decoder, default_period: int | None) -> tuple[Reach, ...]:
    """`layer_types`, else `sliding_window_pattern` (6, or "LLLG"), else the family's period, else one window for all."""
    full: Reach = "full"
    everywhere = (full,) * decoder.num_layers
    listed = decoder.text.per_layer(decoder.num_layers, decoder.text.texts("layer_types"), "layer_types")
    if listed is not None:
        return tuple(_reach(decoder, found) for found in listed)
    if decoder.text.values.get("sliding_window") in (None, 0):  # vLLM: a window of 0 means none
        return everywhere
    if not decoder.text.flag("use_sliding_window", default=True):
        return everywhere
    period = _pattern(decoder) or default_period
    if period is None:
        return _from_window_only(decoder)
    return tuple("full" if (index + 1) % period == 0 else "sliding" for index in range(decoder.num_layers))


def _reach(decoder: Decoder, layer_type: str) -> Reach:
    if layer_type not in _LAYER_TYPES:
        raise UnknownModelError(
            f"layer type '{layer_type}' of '{decoder.root.name}' is not understood",
            f"{decoder.architecture or decoder.model_type} is known with {', '.join(_LAYER_TYPES)}",
            "none: how vLLM sizes the cache of this layer is not known to longreach",
        )
    return _LAYER_TYPES[layer_type]


def _pattern(decoder: Decoder) -> int | None:
    name = next((key for key in ("sliding_window_pattern", "_sliding_window_pattern") if decoder.text.has(key)), None)
    if name is None:
        return None
    value = decoder.text.values[name]
    if isinstance(value, str):  # "LLLG": local, local, local, global
        if value.lstrip("L") != "G":
            decoder.text.note(name, value, "a number, or L's with one G at the end")
        return max(1, len(value))
    return decoder.text.positive(name, most=4096)


def _from_window_only(decoder: Decoder) -> tuple[Reach, ...]:
    """Qwen2 and Qwen3 slide from `max_window_layers` on; elsewhere one window holds for every layer (vLLM's CacheConfig)."""
    switched = decoder.text.has("use_sliding_window")
    if switched and decoder.model_type not in _SLIDES_FROM_A_LAYER:
        raise UnknownModelError(
            f"which layers of '{decoder.root.name}' slide is not understood",
            f"use_sliding_window is true, and {decoder.architecture or decoder.model_type} is known with false only",
            "none: publish layer_types in the config, or serve the model as it was published",
        )
    first = decoder.text.count("max_window_layers") if switched else 0
    return tuple("full" if index < first else "sliding" for index in range(decoder.num_layers))


def read_encoder_decoder_layers(decoder: Decoder) -> tuple[tuple[AttentionLayer, CrossAttentionLayer], ...]:
    """Whisper: every decoder layer caches its own tokens and the encoder's."""
    cross = CrossAttentionLayer(
        num_kv_heads=decoder.num_kv_heads,
        head_dim=decoder.head_dim,
        max_encoder_tokens=decoder.text.positive("max_source_positions"),
    )
    return ((plain_layer(decoder, "full"), cross),) * decoder.num_layers
