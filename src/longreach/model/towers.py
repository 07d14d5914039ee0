"""Parameters of vision towers, so that the weights of a multimodal checkpoint are not underestimated."""

from collections.abc import Callable, Mapping

from longreach.model.decoder import Decoder
from longreach.model.fields import Fields

Tower = Callable[[Fields, Decoder], int]


def tower_parameters(decoder: Decoder) -> int:
    """Vision tower and projector; 0 where there is none or its shape is not known."""
    vision = decoder.root.nested("vision_config")
    if vision is None:
        return 0
    for name in (decoder.root.text("model_type"), vision.text("model_type")):
        tower = _TOWERS.get(name or "")
        if tower is not None:
            return tower(vision, decoder)
    return 0


def _merged_patches(vision: Fields, decoder: Decoder) -> int:
    """Qwen3-VL, Qwen3.5: a plain encoder, one merger, one more for each deep-stacked layer."""
    width, merged = vision.count("hidden_size"), _merged_width(vision)
    merger = merged * merged + merged + merged * decoder.hidden_size + decoder.hidden_size
    deep = len(vision.counts("deepstack_visual_indexes") or ()) * (merger + 2 * merged)
    positions = vision.count("num_position_embeddings") * width
    blocks = vision.count("depth") * _plain_block(width, vision.count("intermediate_size"))
    return _patches(vision) + width + positions + blocks + merger + 2 * width + deep


def _embedded_patches(vision: Fields, _decoder: Decoder) -> int:
    """Qwen2-VL: a plain encoder `embed_dim` wide; its `hidden_size` is that of the language model."""
    width, out = vision.count("embed_dim"), vision.count("hidden_size")
    merged = width * (vision.count("spatial_merge_size") or 1) ** 2
    block = _plain_block(width, width * vision.count("mlp_ratio"))
    patches = _patch_size(vision) * width
    return patches + vision.count("depth") * block + 2 * width + merged * merged + merged + (merged + 1) * out


def _intern_vit(vision: Fields, decoder: Decoder) -> int:
    """InternVL: two scales a block and a class token; the large encoder norms queries and keys and has no bias there."""
    width, patch = vision.count("hidden_size"), vision.count("patch_size") or 1
    block = _plain_block(width, vision.count("intermediate_size")) + 2 * width
    block -= 0 if vision.flag("qkv_bias", default=True) else 3 * width
    block += 2 * width if vision.flag("qk_normalization") else 0
    block -= 2 * width if vision.text("norm_type") == "rms_norm" else 0
    positions = ((vision.count("image_size") // patch) ** 2 + 1) * width
    merged, out = 4 * width, decoder.hidden_size  # a pixel shuffle of two by two patches
    projector = 2 * merged + (merged + 1) * out + (out + 1) * out
    return (3 * patch * patch + 2) * width + positions + vision.count("num_hidden_layers") * block + projector


def _window_attention(vision: Fields, decoder: Decoder) -> int:
    """Qwen2.5-VL: gated MLPs with biases, RMS norms."""
    width, merged, inner = vision.count("hidden_size"), _merged_width(vision), vision.count("intermediate_size")
    block = 4 * width * width + 4 * width + 3 * width * inner + 2 * inner + width + 2 * width
    merger = width + merged * merged + merged + merged * decoder.hidden_size + decoder.hidden_size
    return _patches(vision) + vision.count("depth") * block + merger


def _siglip(vision: Fields, decoder: Decoder) -> int:
    """Gemma 3."""
    width, patch = vision.count("hidden_size"), vision.count("patch_size") or 1
    positions = (vision.count("image_size") // patch) ** 2 * width
    blocks = vision.count("num_hidden_layers") * _plain_block(width, vision.count("intermediate_size"))
    return 3 * patch * patch * width + width + positions + blocks + 2 * width + width * decoder.hidden_size + width


def _pixtral(vision: Fields, decoder: Decoder) -> int:
    """Mistral 3: gated MLPs without biases; a patch merger and a two-layer projector."""
    width, patch = vision.count("hidden_size"), vision.count("patch_size")
    block = 4 * width * width + 3 * width * vision.count("intermediate_size") + 2 * width
    merge = (decoder.root.count("spatial_merge_size") or 1) ** 2
    projector = width + merge * width * width + width * decoder.hidden_size + decoder.hidden_size**2
    return (3 * patch * patch * width + width + vision.count("num_hidden_layers") * block + projector) if width else 0


def _gemma4(vision: Fields, decoder: Decoder) -> int:
    """Gemma 4: two position tables, gated MLPs, four norms a block."""
    width, patch = vision.count("hidden_size"), vision.count("patch_size")
    block = 4 * width * width + 3 * width * vision.count("intermediate_size") + 4 * width + 2 * vision.count("head_dim")
    tables = 2 * vision.count("position_embedding_size") * width + 3 * patch * patch * width
    return tables + vision.count("num_hidden_layers") * block + width * decoder.hidden_size


def _glm4v(vision: Fields, _decoder: Decoder) -> int:
    """GLM-4.5V: gated MLPs as wide as the text model, a convolution that merges patches, a gated projector."""
    width, out, patch = vision.count("hidden_size"), vision.count("out_hidden_size"), vision.count("patch_size") or 1
    block = 4 * width * width + 3 * width * out + 2 * width
    merge = (vision.count("spatial_merge_size") or 1) ** 2
    positions = (vision.count("image_size") // patch) ** 2 * width
    merger = out * out + 2 * out + 3 * out * vision.count("intermediate_size")
    return (
        _patches(vision)
        + width
        + positions
        + vision.count("depth") * block
        + merger
        + merge * width * out
        + out
        + 2 * width
    )


def _plain_block(width: int, inner: int) -> int:
    """Attention and a two-layer MLP, all with biases, two layer norms."""
    return 4 * width * width + 4 * width + 2 * width * inner + inner + width + 4 * width


def _patches(vision: Fields) -> int:
    return _patch_size(vision) * vision.count("hidden_size")


def _patch_size(vision: Fields) -> int:
    patch, frames = vision.count("patch_size"), vision.count("temporal_patch_size") or 1
    return (vision.count("in_channels") or 3) * frames * patch * patch


def _merged_width(vision: Fields) -> int:
    return vision.count("hidden_size") * (vision.count("spatial_merge_size") or 1) ** 2


_TOWERS: Mapping[str, Tower] = {
    "qwen3_vl": _merged_patches,
    "qwen3_vl_moe": _merged_patches,
    "qwen3_5": _merged_patches,
    "qwen3_5_moe": _merged_patches,
    "qwen4_exp": _merged_patches,
    "qwen2_vl": _embedded_patches,
    "qwen2_5_vl": _window_attention,
    "internvl_chat": _intern_vit,
    "gemma3": _siglip,
    "mistral3": _pixtral,
    "gemma4": _gemma4,
    "glm4v": _glm4v,
    "glm4v_moe": _glm4v,
}
