"""How wide a forward pass is: the columns of activations that a token, or a patch of an image, leaves in memory.

Nothing here is noted as a mistake: a size in an unknown form is an unknown size, and the model can be planned without it.
"""

from longreach.model.decoder import Decoder
from longreach.model.feed_forward import EXPERT_SIZE, NUM_EXPERTS, TOP_K, has_experts
from longreach.model.fields import Fields
from longreach.model.spec import PassWidths, TowerWidths
from longreach.model.towers import tower_parameters

_DENSE_SIZE = ("intermediate_size", "ffn_hidden_size", "block_ff_dim")
_SHARED_SIZE = ("shared_expert_intermediate_size", "shared_intermediate_size")
_TYPICAL_FACTOR = 4  # an MLP's width over the hidden size, where the config does not say
_LARGEST_IMAGE_TOKENS = {"qwen": 16384}  # the processor's largest image, which is not in the config


def read_widths(decoder: Decoder) -> PassWidths:
    """The widths a config states, whole model; a dense MLP of unstated width is taken for four hidden sizes."""
    text, sparse = decoder.text, has_experts(decoder.text)
    return PassWidths(
        dense=_size(text, *_DENSE_SIZE) or (0 if sparse else _TYPICAL_FACTOR * decoder.hidden_size),
        expert=_size(text, *EXPERT_SIZE) if sparse else 0,
        shared=_size(text, *_SHARED_SIZE) if sparse else 0,
        num_experts=_size(text, *NUM_EXPERTS) if sparse else 0,
        experts_per_token=_size(text, *TOP_K) if sparse else 0,
        tower=_read_tower(decoder),
    )


def _read_tower(decoder: Decoder) -> TowerWidths | None:
    """A vision encoder's widths; None where there is none or the config does not state its hidden size."""
    vision = decoder.root.nested("vision_config")
    hidden = _size(vision, "hidden_size", "embed_dim") if vision is not None else 0
    if vision is None or not hidden:
        return None
    merge = _size(vision, "spatial_merge_size", "pooling_kernel_size") or _size(decoder.root, "spatial_merge_size") or 1
    patch, side, pooled = (
        _size(vision, "patch_size"),
        _size(vision, "image_size"),
        _size(decoder.root, "mm_tokens_per_image"),
    )
    patches = (side // patch) ** 2 if patch else 0
    per_token = max(1, patches // pooled) if pooled else merge**2
    deep = vision.values.get("deepstack_visual_indexes")
    return TowerWidths(
        hidden=hidden,
        inner=_size(vision, "intermediate_size") or _TYPICAL_FACTOR * hidden,
        patches_per_token=per_token,
        largest_image_tokens=next(
            (size for prefix, size in _LARGEST_IMAGE_TOKENS.items() if decoder.model_type.startswith(prefix)),
            patches // per_token,
        ),
        outputs_per_token=1 + (len(deep) if isinstance(deep, list) else 0),
        parameters=tower_parameters(decoder),
    )


def _size(fields: Fields, *names: str) -> int:
    """The first stated whole number (of a list its first); 0 where there is none."""
    for name in names:
        value = fields.values.get(name)
        value = value[0] if isinstance(value, list) and value else value
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return 0
