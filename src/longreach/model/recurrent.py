"""Layers whose cache does not grow with the prompt: gated delta, Kimi delta, Mamba, short convolution, linear attention."""

from longreach.model.decoder import Decoder
from longreach.model.spec import (
    GatedDeltaNetLayer,
    KdaLayer,
    LinearAttentionLayer,
    Mamba1Layer,
    Mamba2Layer,
    ShortConvLayer,
)

_MOST = 2**20


def gated_delta_layer(decoder: Decoder) -> GatedDeltaNetLayer:
    """Qwen3-Next, Qwen3.5 and later."""
    text = decoder.text
    return GatedDeltaNetLayer(
        num_k_heads=text.positive("linear_num_key_heads", most=_MOST),
        num_v_heads=text.positive("linear_num_value_heads", most=_MOST),
        k_head_dim=text.positive("linear_key_head_dim", most=_MOST),
        v_head_dim=text.positive("linear_value_head_dim", most=_MOST),
        conv_kernel=text.positive("linear_conv_kernel_dim", most=_MOST),
    )


def kimi_delta_layer(decoder: Decoder, *, checkpoints_prefill: bool) -> KdaLayer:
    """Kimi-Linear and Kimi-K3 keep the sizes in `linear_attn_config`, GLM-5.3-Flash in fields that start `linear_`."""
    inner, names = decoder.text.nested("linear_attn_config"), ("num_heads", "head_dim", "short_conv_kernel_size")
    if inner is None:
        inner, names = decoder.text, ("linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim")
    num_heads, head_dim, conv_kernel = (inner.positive(name, most=_MOST) for name in names)
    return KdaLayer(num_heads, head_dim, conv_kernel, checkpoints_prefill)


def bailing_delta_layer(decoder: Decoder) -> KdaLayer:
    """Ling 3: as many delta heads as attention heads."""
    return KdaLayer(
        num_heads=decoder.num_heads,
        head_dim=decoder.head_dim,
        conv_kernel=decoder.text.positive("short_conv_kernel_size", most=_MOST),
    )


def mamba2_layer(decoder: Decoder) -> Mamba2Layer:
    """Granite and Falcon-H1 spell the sizes `mamba_*`."""
    text = decoder.text
    inner_size = text.optional_positive("mamba_d_ssm")
    expand = text.optional_positive("mamba_expand", most=_MOST)
    intermediate_size = inner_size or (expand or 2) * decoder.hidden_size
    num_heads = text.positive("mamba_n_heads", most=_MOST)
    return Mamba2Layer(
        intermediate_size=intermediate_size,
        num_groups=text.positive("mamba_n_groups", most=_MOST),
        state_size=text.positive("mamba_d_state", most=_MOST),
        num_heads=num_heads,
        head_dim=_mamba_head_dim(decoder, intermediate_size, num_heads),
        conv_kernel=text.positive("mamba_d_conv", most=_MOST),
    )


def nemotron_mamba2_layer(decoder: Decoder) -> Mamba2Layer:
    """Nemotron-H: inner size = heads x head_dim."""
    text = decoder.text
    num_heads, head_dim = text.positive("mamba_num_heads", most=_MOST), text.positive("mamba_head_dim", most=_MOST)
    return Mamba2Layer(
        intermediate_size=num_heads * head_dim,
        num_groups=text.positive("n_groups", most=_MOST),
        state_size=text.positive("ssm_state_size", most=_MOST),
        num_heads=num_heads,
        head_dim=head_dim,
        conv_kernel=text.positive("conv_kernel", most=_MOST),
    )


def mamba1_layer(decoder: Decoder) -> Mamba1Layer:
    """Jamba: inner size = expansion x hidden size."""
    text = decoder.text
    return Mamba1Layer(
        intermediate_size=text.positive("mamba_expand", most=_MOST) * decoder.hidden_size,
        state_size=text.positive("mamba_d_state", most=_MOST),
        conv_kernel=text.positive("mamba_d_conv", most=_MOST),
    )


def short_conv_layer(decoder: Decoder) -> ShortConvLayer:
    """LFM2: as wide as the model unless `conv_dim` says otherwise."""
    text = decoder.text
    return ShortConvLayer(
        dim=text.optional_positive("conv_dim") or decoder.hidden_size,
        conv_kernel=text.positive("conv_L_cache", most=_MOST),
    )


def linear_attention_layer(decoder: Decoder) -> LinearAttentionLayer:
    """MiniMax-Text-01 and Ling 2.6: one head_dim x head_dim state a head."""
    return LinearAttentionLayer(num_heads=decoder.num_heads, head_dim=decoder.head_dim)


def _mamba_head_dim(decoder: Decoder, intermediate_size: int, num_heads: int) -> int:
    """`mamba_d_head` may be "auto": inner size / heads."""
    if decoder.text.values.get("mamba_d_head") in (None, "auto"):
        return max(1, intermediate_size // num_heads)
    return decoder.text.positive("mamba_d_head", most=_MOST)
