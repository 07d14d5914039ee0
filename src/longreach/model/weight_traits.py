"""What the weights of a family carry beyond the sizes in its config: a row each, as in `families`.

A family without a row has no parameter count; its KV cache is planned all the same.
"""

from dataclasses import dataclass
from typing import Literal

from longreach.model.decoder import Decoder
from longreach.model.feed_forward import (
    FeedForwardTraits,
    block_letters,
    dense_and_experts,
    laurel_blocks,
    removed_blocks,
    short_conv_blocks,
    shortcut_blocks,
)

_USUAL = FeedForwardTraits()


@dataclass(frozen=True, slots=True)
class WeightTraits:
    """`names` as in `families`. `attention_bias`: "config" follows the config's own `attention_bias`."""

    names: tuple[str, ...]
    feed_forward: FeedForwardTraits = _USUAL
    attention_bias: Literal["none", "config", "qkv", "both"] = "config"
    biases_output: bool = True  # whether "config" means the output projection too
    qk_norm: Literal["none", "head", "width"] = "none"
    output_gate: bool = False
    sinks: bool = False
    grouped_output: bool = False  # DeepSeek-V4: a low-rank output in `o_groups`, one vector for keys and values
    mtp: Literal["none", "own", "shared", "dense"] = "none"  # MTP layers: own embedding and head, shared, a dense MLP
    mtp_norms: int = 3


_BIASED_ROUTER = FeedForwardTraits(router_bias=1)
_FOUR_NORMS = FeedForwardTraits(norms=4)

TRAITS: tuple[WeightTraits, ...] = (
    WeightTraits(
        (
            "llama",
            "mistral",
            "ministral3",
            "mixtral",
            "phi3",
            "phi4mm",
            "granite",
            "granitemoe",
            "granitemoehybrid",
            "smollm3",
            "internlm2",
            "internlm3",
            "gemma",
            "falcon_h1",
            "jamba",
        )
    ),
    WeightTraits(
        (
            "qwen2",
            "qwen2_vl_text",
            "qwen2_vl",
            "qwen2_5_vl_text",
            "qwen2_5_vl",
            "qwen2_5_omni_text",
            "seed_oss",
            "glm",
        ),
        attention_bias="qkv",
    ),
    WeightTraits(("qwen2_moe",), FeedForwardTraits(shared_gate=True), "qkv"),
    WeightTraits(
        ("qwen3", "qwen3_moe", "qwen3_vl_text", "qwen3_vl_moe_text", "qwen3_vl", "qwen3_omni_moe_text"), qk_norm="head"
    ),
    WeightTraits(("hunyuan_v1_dense", "hunyuan_v1_moe"), qk_norm="head"),
    WeightTraits(("hy_v3",), _BIASED_ROUTER, qk_norm="head"),
    WeightTraits(("exaone4",), _USUAL, "none", qk_norm="head"),
    WeightTraits(("exaone_moe",), _BIASED_ROUTER, "none", qk_norm="head", mtp="dense"),
    WeightTraits(("apertus",), FeedForwardTraits(matrices=2, layer_extra=2), "none", qk_norm="head"),
    WeightTraits(("olmo2", "olmo3", "olmoe"), qk_norm="width"),
    WeightTraits(("cohere", "cohere2"), FeedForwardTraits(norms=1)),
    WeightTraits(("gemma2",), _FOUR_NORMS),
    WeightTraits(("gemma3_text",), _FOUR_NORMS, qk_norm="head"),
    WeightTraits(("gemma3n_text",), FeedForwardTraits(norms=4, reader=laurel_blocks), qk_norm="head"),
    WeightTraits(
        ("gemma4_text", "gemma4_unified_text"), FeedForwardTraits(norms=4, reader=dense_and_experts), qk_norm="head"
    ),
    WeightTraits(("glm4", "glm4v_text"), _FOUR_NORMS, biases_output=False),
    WeightTraits(("glm4_moe", "glm4v_moe_text"), _BIASED_ROUTER, biases_output=False, qk_norm="head", mtp="own"),
    WeightTraits(("gpt_oss",), FeedForwardTraits(router_bias=1, expert_biases=True), "both", sinks=True),
    WeightTraits(("minimax_m2",), _BIASED_ROUTER, "none", qk_norm="width"),
    WeightTraits(
        ("minimax_m3_vl_text",),
        FeedForwardTraits(router_bias=1, dense_size="dense_intermediate_size"),
        "none",
        qk_norm="head",
    ),
    WeightTraits(("minimax_text_01", "minimax_m1"), _USUAL, "none"),
    WeightTraits(("ernie4_5_moe", "ernie4_5_moe_vl"), _BIASED_ROUTER, "none", mtp="dense", mtp_norms=2),
    WeightTraits(
        ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "qwen4_exp_text"),
        FeedForwardTraits(shared_gate=True),
        qk_norm="head",
        output_gate=True,
        mtp="shared",
    ),
    WeightTraits(("deepseek_v2",)),
    WeightTraits(("deepseek_v3", "deepseek_v32", "kimi_k2", "mistral4", "bailing_hybrid"), _BIASED_ROUTER, mtp="own"),
    WeightTraits(("glm4_moe_lite",), FeedForwardTraits(router_bias=1, first_dense=1), mtp="own"),
    WeightTraits(("glm_moe_dsa", "glm5_next_text"), _BIASED_ROUTER, mtp="shared"),
    WeightTraits(("deepseek_v4",), _BIASED_ROUTER, sinks=True, grouped_output=True),
    WeightTraits(("kimi_linear",), _BIASED_ROUTER),
    WeightTraits(("longcat_flash",), FeedForwardTraits(reader=shortcut_blocks)),
    WeightTraits(
        ("lfm2", "lfm2_moe"), FeedForwardTraits(router_bias=1, reader=short_conv_blocks), "none", qk_norm="head"
    ),
    WeightTraits(
        ("nemotron_h",), FeedForwardTraits(norms=1, matrices=2, reader=block_letters), mtp="shared", mtp_norms=4
    ),
    WeightTraits(("nemotron-nas",), FeedForwardTraits(reader=removed_blocks)),
    WeightTraits(("mimo",), _USUAL, "qkv", mtp="shared"),
    WeightTraits(("mimo_v2", "mimo_v2_flash"), FeedForwardTraits(router_bias=1, first_dense=1)),
    WeightTraits(("step3p5",), FeedForwardTraits(router_bias=1, first_dense=3), "none", qk_norm="head"),
    WeightTraits(("step3_text",), FeedForwardTraits(first_dense=4), "none"),
    WeightTraits(("bailing_moe", "bailing_moe_v2"), _BIASED_ROUTER, "none", qk_norm="head"),
    WeightTraits(("llama4_text",), FeedForwardTraits(dense_size="intermediate_size_mlp", num_shared=1)),
)

_BY_NAME = {name: traits for traits in TRAITS for name in traits.names}


def find_traits(decoder: Decoder) -> WeightTraits | None:
    """The row of this model, by the model type of its language model."""
    for name in (decoder.model_type, decoder.root.text("model_type") or ""):
        if name in _BY_NAME:
            return _BY_NAME[name]
    return None
