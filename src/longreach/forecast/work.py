"""Arithmetic of a cold prefill: FLOPs of the weights and of attention, and bytes of tensor-parallel all-reduces.

Counted is what any implementation must compute. A multiply-add is two FLOPs.

    weights    2 x active parameters x T, plus the recurrence of linear layers
    attention  2 x heads x (d_qk + d_v) x pairs, summed over layers;
               a causal layer has T(T+1)/2 pairs, so with d_qk = d_v = d it is 2 x heads x d x T^2
    link       2 all-reduces a layer x T x hidden x 2 bytes x 2(TP-1)/TP, bytes each GPU must send
"""

from longreach.forecast.values import PrefillWork
from longreach.model.repeats import tally
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
    ModelSpec,
)
from longreach.units import ceil_div

_ACTIVATION_BYTES = 2
_ALL_REDUCES_PER_LAYER = 2
_DELTA_CHUNK = 64  # tokens that a gated-delta kernel solves at a time (flash-linear-attention)


def prefill_work(
    model: ModelSpec, prompt_tokens: int, tp_size: int, chunk_tokens: int, pp_size: int = 1
) -> PrefillWork:
    """Work of one cold prompt by the target model; `chunk_tokens` is max-num-batched-tokens."""
    layers_per_gpu = ceil_div(model.num_layers, pp_size)
    messages = _ALL_REDUCES_PER_LAYER * layers_per_gpu * prompt_tokens * model.hidden_size * _ACTIVATION_BYTES
    return PrefillWork(
        linear_flops=linear_flops(model, prompt_tokens),
        attention_flops=attention_flops(attending_layers(model), prompt_tokens, model.index_topk),
        all_reduce_bytes=messages * ring_share(tp_size),
        num_prefill_chunks=num_prefill_chunks(prompt_tokens, chunk_tokens),
    )


def num_prefill_chunks(prompt_tokens: int, chunk_tokens: int) -> int:
    """Engine steps that a prompt takes: ceil(prompt / max-num-batched-tokens)."""
    return ceil_div(prompt_tokens, chunk_tokens)


def ring_share(num_gpus: int) -> float:
    """Bytes that each of n GPUs sends per byte all-reduced: 2(n-1)/n."""
    return 2 * (num_gpus - 1) / num_gpus


def linear_flops(model: ModelSpec, num_tokens: int) -> float | None:
    """FLOPs that grow with tokens alone. None where the active parameters are unknown."""
    active = model.parameters.active
    if active is None:
        return None
    recurrence = sum(count * _recurrence_flops(layer) for layer, count in tally(model.layers))
    return num_tokens * (2.0 * active + recurrence)


def attending_layers(model: ModelSpec) -> tuple[KvLayer, ...]:
    """Layers that compute attention: those with a cache and those that read an earlier layer's."""
    return model.layers + model.borrowing_layers


def attention_flops(
    layers: tuple[KvLayer, ...], num_tokens: int, index_topk: int | None, past_tokens: int = 0
) -> float:
    """FLOPs of `num_tokens` queries that follow `past_tokens` others, over all attention layers."""
    # A model repeats a few layers many times.
    return sum(count * _layer_flops(layer, num_tokens, past_tokens, index_topk) for layer, count in tally(layers))


def state_values(layer: KvLayer) -> int:
    """Values in the recurrent state of one sequence, whole model; 0 for layers that keep tokens instead."""
    match layer:
        case GatedDeltaNetLayer(num_v_heads=heads, k_head_dim=key_dim, v_head_dim=value_dim):
            return heads * key_dim * value_dim
        case KdaLayer(num_heads=heads, head_dim=dim) | LinearAttentionLayer(num_heads=heads, head_dim=dim):
            return heads * dim * dim
        case (
            Mamba2Layer(intermediate_size=inner, state_size=size)
            | Mamba1Layer(intermediate_size=inner, state_size=size)
        ):
            return inner * size
        case _:
            return 0


def _layer_flops(layer: KvLayer, num_tokens: int, past_tokens: int, index_topk: int | None) -> float:
    match layer:
        case AttentionLayer(num_heads=heads, head_dim=key_dim, v_head_dim=value_dim, chunk_tokens=int() as chunk):
            return 2.0 * heads * (key_dim + value_dim) * _chunked_pairs(num_tokens, past_tokens, chunk)
        case AttentionLayer(num_heads=heads, head_dim=key_dim, v_head_dim=value_dim, window_tokens=window):
            return 2.0 * heads * (key_dim + value_dim) * _pairs(num_tokens, past_tokens, window)
        case MlaLayer(num_heads=heads, nope_head_dim=nope, rope_head_dim=rope, v_head_dim=value_dim):
            pairs = _state_pairs(num_tokens, past_tokens, index_topk, layer.tokens_per_state)
            return 2.0 * heads * (nope + rope + value_dim) * pairs
        case IndexerLayer(head_dim=dim, num_heads=heads):  # scores every key, reads no values
            return 2.0 * (heads or 1) * dim * _state_pairs(num_tokens, past_tokens, None, layer.tokens_per_state)
        case _:
            return 0.0


def _pairs(num_tokens: int, past_tokens: int, bound: int | None) -> float:
    """Query-key pairs: the query at position t (from 1) meets min(t, bound) keys."""
    return _pairs_from_start(past_tokens + num_tokens, bound) - _pairs_from_start(past_tokens, bound)


def _state_pairs(num_tokens: int, past_tokens: int, topk: int | None, tokens_per_state: int) -> float:
    """A compressed cache has one key for several tokens, and a sparse query meets `topk` of those."""
    bound = None if topk is None else topk * tokens_per_state
    return _pairs(num_tokens, past_tokens, bound) / tokens_per_state


def _pairs_from_start(tokens: int, bound: int | None) -> float:
    growing = tokens if bound is None else min(tokens, bound)
    return growing * (growing + 1) / 2 + (tokens - growing) * growing


def _chunked_pairs(num_tokens: int, past_tokens: int, chunk: int) -> float:
    """Attention starts anew at every multiple of `chunk`."""

    def from_start(tokens: int) -> float:
        whole, rest = divmod(tokens, chunk)
        return whole * chunk * (chunk + 1) / 2 + rest * (rest + 1) / 2

    return from_start(past_tokens + num_tokens) - from_start(past_tokens)


def _recurrence_flops(layer: KvLayer) -> float:
    """FLOPs a token: a plain recurrence updates and reads its state (4 a value), a delta rule also reads it for the
    correction (6) and solves its chunk against itself.
    """
    values = state_values(layer)
    match layer:
        case GatedDeltaNetLayer(num_v_heads=heads, k_head_dim=key_dim, v_head_dim=value_dim):
            return 6.0 * values + heads * _DELTA_CHUNK * (6 * key_dim + 4 * value_dim)
        case KdaLayer(num_heads=heads, head_dim=dim):
            return 6.0 * values + heads * _DELTA_CHUNK * 10 * dim
        case _:
            return 4.0 * values
