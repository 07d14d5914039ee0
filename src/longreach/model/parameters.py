"""Parameters counted from a config: total, embeddings, and what one token multiplies."""

from dataclasses import replace

from longreach.model.decoder import Decoder
from longreach.model.feed_forward import Block, read_blocks, total_of
from longreach.model.mixers import MixerRecipe, mixer_parameters
from longreach.model.spec import AttentionLayer, IndexerLayer, KvLayer, ParameterCount
from longreach.model.towers import tower_parameters
from longreach.model.weight_traits import WeightTraits, find_traits


def count_parameters(
    decoder: Decoder,
    layers: tuple[KvLayer, ...],
    borrowing_layers: tuple[AttentionLayer, ...],
    draft_layers: tuple[KvLayer, ...],
) -> ParameterCount:
    """Sum over mixers, feed-forward blocks, norms, embeddings, the vision tower and MTP layers.

    Total and active are None where the config lacks a size or the family's weights are not described. A checkpoint may
    hold more than its config tells: quantization scales, an output head saved though tied.
    """
    embedding = embedding_parameters(decoder)
    traits = find_traits(decoder)
    blocks = read_blocks(decoder, traits.feed_forward) if traits is not None else None
    if traits is None or not blocks:
        return ParameterCount(total=None, embedding=embedding, active=None, certainty="estimate")
    recipe = _mixer_recipe(decoder, traits)
    mixed = sum(mixer_parameters(layer, recipe) for layer in layers)
    mixed += sum(mixer_parameters(replace(layer, num_kv_heads=0), recipe) for layer in borrowing_layers)
    body = total_of(blocks) + Block(mixed, mixed) + _beside_layers(decoder)
    drafts = _mtp_parameters(decoder, traits, recipe, draft_layers, blocks)
    return ParameterCount(
        total=embedding + body.total + drafts + tower_parameters(decoder),
        embedding=embedding,
        active=body.active,
        certainty="estimate",
    )


def embedding_parameters(decoder: Decoder) -> int:
    """Tables that are looked up: input embedding, an untied output head, the per-layer inputs of Gemma 3n and 4."""
    text = decoder.text
    tied = decoder.root.flag("tie_word_embeddings", "tie_embedding") or text.flag("tie_word_embeddings")
    per_layer = text.count("hidden_size_per_layer_input") * decoder.num_layers
    vocab = text.optional_positive("vocab_size_per_layer_input") or decoder.vocab_size
    return decoder.vocab_size * decoder.hidden_size * (1 if tied else 2) + vocab * per_layer


def _beside_layers(decoder: Decoder) -> Block:
    """The last norm, and the projection of Gemma's per-layer inputs."""
    width = decoder.text.count("hidden_size_per_layer_input")
    size = decoder.hidden_size * (1 + width * decoder.num_layers) + width
    return Block(size, size)


def _mixer_recipe(decoder: Decoder, traits: WeightTraits) -> MixerRecipe:
    text = decoder.text
    stated = traits.attention_bias == "config" and text.flag("attention_bias")
    delta = text.nested("linear_attn_config")
    return MixerRecipe(
        hidden_size=decoder.hidden_size,
        qkv_bias=stated or traits.attention_bias in ("qkv", "both"),
        output_bias=(stated and traits.biases_output) or traits.attention_bias == "both",
        qk_norm=traits.qk_norm if text.flag("use_qk_norm", default=True) else "none",
        output_gate=traits.output_gate or text.flag("mla_use_output_gate"),
        sinks=traits.sinks,
        shared_kv_projection=text.flag("attention_k_eq_v"),
        q_lora_rank=text.optional_positive("q_lora_rank"),
        output_rank=text.count("o_lora_rank") if traits.grouped_output else 0,
        output_groups=text.count("o_groups") if traits.grouped_output else 0,
        full_rank_delta_gate=delta.flag("use_full_rank_gate") if delta is not None else False,
        low_rank_delta=not text.flag("no_kda_lora"),
        mamba_norm=text.flag("mamba_rms_norm", default=True),
        mamba_dt_rank=text.count("mamba_dt_rank") if text.values.get("mamba_dt_rank") != "auto" else 0,
        mamba_projection_bias=text.flag("mamba_proj_bias"),
    )


def _mtp_parameters(
    decoder: Decoder,
    traits: WeightTraits,
    recipe: MixerRecipe,
    draft_layers: tuple[KvLayer, ...],
    blocks: tuple[Block, ...],
) -> int:
    """Each MTP layer: a decoder layer like the last one, a joint of 2h x h, its norms, maybe its own embeddings."""
    count = sum(not isinstance(layer, IndexerLayer) for layer in draft_layers)
    if not count or traits.mtp == "none":
        return 0
    hidden = decoder.hidden_size
    block = blocks[0] if traits.mtp == "dense" else blocks[-1]
    own = 2 * decoder.vocab_size * hidden if traits.mtp == "own" else 0
    joint = 2 * hidden * hidden + traits.mtp_norms * hidden
    return sum(mixer_parameters(layer, recipe) for layer in draft_layers) + count * (block.total + own + joint)
