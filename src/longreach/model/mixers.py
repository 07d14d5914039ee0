"""Parameters of the part of a layer that mixes tokens: attention, latent attention, delta and state-space mixers."""

from dataclasses import dataclass
from functools import singledispatch

from longreach.model.spec import (
    AttentionLayer,
    GatedDeltaNetLayer,
    IndexerLayer,
    KdaLayer,
    KvLayer,
    LinearAttentionLayer,
    Mamba1Layer,
    Mamba2Layer,
    MlaLayer,
    ShortConvLayer,
)


@dataclass(frozen=True, slots=True)
class MixerRecipe:
    """What the family's mixers carry beyond their matrices. `hidden_size` is the width of the residual stream."""

    hidden_size: int
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: str = "none"  # "head": one weight a head dim; "width": one for every head and dim
    output_gate: bool = False  # queries come with a gate of the same width
    sinks: bool = False  # one learned logit a head
    shared_kv_projection: bool = False  # values are the keys of full layers (Gemma 4)
    q_lora_rank: int | None = None
    output_rank: int = 0  # DeepSeek-V4: low-rank output in groups
    output_groups: int = 0
    full_rank_delta_gate: bool = False
    low_rank_delta: bool = True
    conv_bias: bool = True
    mamba_norm: bool = True
    mamba_dt_rank: int = 0
    mamba_projection_bias: bool = False


@singledispatch
def mixer_parameters(layer: KvLayer, recipe: MixerRecipe) -> int:
    """Parameters of one mixer: its matrices, and the small vectors the recipe names."""
    raise AssertionError(f"no family with weight traits has a {type(layer).__name__}", recipe)


@mixer_parameters.register
def _(layer: AttentionLayer, recipe: MixerRecipe) -> int:
    hidden = recipe.hidden_size
    q_width, k_width = layer.num_heads * layer.head_dim, layer.num_kv_heads * layer.head_dim
    v_width, out_width = layer.num_kv_heads * layer.v_head_dim, layer.num_heads * layer.v_head_dim
    if recipe.shared_kv_projection and layer.window_tokens is None:
        v_width = 0
    gate = q_width if recipe.output_gate else 0
    count = hidden * (q_width + gate + k_width + v_width + out_width)
    count += (q_width + gate + k_width + v_width) * recipe.qkv_bias + hidden * recipe.output_bias
    norms = {"none": 0, "head": layer.head_dim * (2 if layer.num_kv_heads else 1), "width": q_width + k_width}
    return count + norms[recipe.qk_norm] + layer.num_heads * recipe.sinks


@mixer_parameters.register
def _(layer: MlaLayer, recipe: MixerRecipe) -> int:
    if recipe.output_groups:
        return _grouped_latent(layer, recipe)
    hidden, rank = recipe.hidden_size, recipe.q_lora_rank
    q_width = layer.num_heads * (layer.nope_head_dim + layer.rope_head_dim)
    queries = hidden * q_width if rank is None else hidden * rank + rank + rank * q_width
    latent = hidden * (layer.kv_lora_rank + layer.rope_head_dim) + layer.kv_lora_rank
    keys_values = layer.kv_lora_rank * layer.num_heads * (layer.nope_head_dim + layer.v_head_dim)
    out_width = layer.num_heads * layer.v_head_dim
    return queries + latent + keys_values + hidden * out_width * (2 if recipe.output_gate else 1)


@mixer_parameters.register
def _(layer: IndexerLayer, recipe: MixerRecipe) -> int:
    heads = layer.num_heads or 0
    queries = (recipe.q_lora_rank or recipe.hidden_size) * heads * layer.head_dim
    return queries + recipe.hidden_size * (layer.head_dim + heads) + 2 * layer.head_dim


@mixer_parameters.register
def _(layer: GatedDeltaNetLayer, recipe: MixerRecipe) -> int:
    k_width, v_width = layer.num_k_heads * layer.k_head_dim, layer.num_v_heads * layer.v_head_dim
    projections = recipe.hidden_size * (2 * k_width + 3 * v_width + 2 * layer.num_v_heads)
    return projections + (2 * k_width + v_width) * layer.conv_kernel + 2 * layer.num_v_heads + layer.v_head_dim


@mixer_parameters.register
def _(layer: KdaLayer, recipe: MixerRecipe) -> int:
    width = layer.num_heads * layer.head_dim
    low_rank = recipe.hidden_size * layer.head_dim + layer.head_dim * width
    gate = recipe.hidden_size * width if recipe.full_rank_delta_gate else low_rank
    decay = low_rank if recipe.low_rank_delta else recipe.hidden_size * width
    matrices = recipe.hidden_size * (4 * width + layer.num_heads) + gate + decay
    return matrices + 3 * width * layer.conv_kernel + layer.num_heads + width + layer.head_dim


@mixer_parameters.register
def _(layer: Mamba2Layer, recipe: MixerRecipe) -> int:
    inner, states = layer.intermediate_size, 2 * layer.num_groups * layer.state_size
    in_width = 2 * inner + states + layer.num_heads
    matrices = recipe.hidden_size * (in_width + inner)
    conv = (inner + states) * (layer.conv_kernel + recipe.conv_bias)
    bias = (in_width + recipe.hidden_size) * recipe.mamba_projection_bias
    return matrices + conv + bias + 3 * layer.num_heads + inner * recipe.mamba_norm


@mixer_parameters.register
def _(layer: Mamba1Layer, recipe: MixerRecipe) -> int:
    inner, rank = layer.intermediate_size, recipe.mamba_dt_rank
    matrices = recipe.hidden_size * 3 * inner + inner * (rank + 2 * layer.state_size) + rank * inner
    conv = inner * (layer.conv_kernel + recipe.conv_bias)
    return matrices + conv + inner * (layer.state_size + 2) + rank + 2 * layer.state_size


@mixer_parameters.register
def _(layer: ShortConvLayer, recipe: MixerRecipe) -> int:
    return 4 * recipe.hidden_size * layer.dim + layer.dim * layer.conv_kernel


@mixer_parameters.register
def _(layer: LinearAttentionLayer, recipe: MixerRecipe) -> int:
    width = layer.num_heads * layer.head_dim
    return recipe.hidden_size * width * 5 + width


def _grouped_latent(layer: MlaLayer, recipe: MixerRecipe) -> int:
    """DeepSeek-V4: one vector of head_dim for keys and values, compressed by two projections; a grouped output."""
    hidden, rank, width = recipe.hidden_size, recipe.q_lora_rank or recipe.hidden_size, layer.v_head_dim
    queries = hidden * rank + rank + rank * layer.num_heads * width
    overlap = 2 if layer.tokens_per_state == 4 else 1  # its compressor looks at two neighbouring groups
    compressor = overlap * (2 * hidden + layer.tokens_per_state) * width + width
    output = layer.num_heads * width * recipe.output_rank + recipe.output_groups * recipe.output_rank * hidden
    return queries + hidden * width + width + compressor + output + layer.num_heads * recipe.sinks
