"""Bytes that one GPU reads: weights that a token meets, the cache of a context, recurrent state. Pure arithmetic.

A pair is least and most; bounds use the least.
"""

from longreach.forecast.work import attending_layers, state_values
from longreach.model.repeats import tally
from longreach.model.spec import (
    AttentionLayer,
    CrossAttentionLayer,
    IndexerLayer,
    KvLayer,
    MlaLayer,
    ModelSpec,
    QuantizationName,
)
from longreach.sizing.formats import DTYPE_BYTES, get_kv_format, token_bytes_per_gpu

# Bytes of one weight: without scales, and with the scales and unquantized layers that checkpoints carry.
_WEIGHT_BYTES: dict[QuantizationName, tuple[float, float]] = {
    "none": (2.0, 2.0),
    "fp8": (1.0, 1.1),
    "fp8-weight-only": (1.0, 1.1),
    "w8a8-int8": (1.0, 1.1),
    "w4a16": (0.5, 0.65),
    "w4a8-int8": (0.5, 0.65),
    "nvfp4": (0.5, 0.8),
    "mxfp4": (0.5, 0.8),
    "other": (0.25, 2.0),
}
_STATE_BYTES = (2, 4)


def active_weight_bytes(model: ModelSpec) -> tuple[float, float] | None:
    """Weights read once per step, whole model, without embeddings. None where the active parameters are unknown."""
    if model.parameters.active is None:
        return None
    low, high = _weight_bytes(model)
    return model.parameters.active * low, model.parameters.active * high


def head_bytes(model: ModelSpec) -> float:
    """The output head, read for every token that is sampled; checkpoints keep it in 16 bits."""
    return 2.0 * model.vocab_size * model.hidden_size


def cache_bytes_per_gpu(model: ModelSpec, kv_cache_dtype: str, tp_size: int, context_tokens: int) -> int:
    """Cache that a context of this length fills on one GPU: every token in full layers, the window in bounded ones.

    Whole model: with pipeline parallelism each stage holds its layers' part.
    """
    return sum(
        count * _layer_bytes(layer, model, kv_cache_dtype, tp_size, context_tokens)
        for layer, count in tally(model.layers)
    )


def attended_bytes_per_gpu(model: ModelSpec, kv_cache_dtype: str, tp_size: int, context_tokens: int) -> int:
    """Cache that one decode step reads: as above, but sparse attention reads `index_topk` vectors of each latent layer,
    and layers that borrow a cache read it once more.
    """

    def read(layer: KvLayer) -> int:
        tokens = context_tokens
        if isinstance(layer, MlaLayer) and model.index_topk is not None:
            tokens = min(tokens, model.index_topk * layer.tokens_per_state)
        return _layer_bytes(layer, model, kv_cache_dtype, tp_size, tokens)

    return sum(count * read(layer) for layer, count in tally(attending_layers(model)))


def state_bytes_per_gpu(model: ModelSpec, tp_size: int) -> tuple[float, float]:
    """Recurrent state of one sequence, at 16 and at 32 bits a value."""
    values = sum(count * state_values(layer) for layer, count in tally(model.layers)) / tp_size
    low, high = _STATE_BYTES
    return values * low, values * high


def _weight_bytes(model: ModelSpec) -> tuple[float, float]:
    low, high = _WEIGHT_BYTES[model.weights.quantization]
    if model.weights.quantization == "none":
        size = float(DTYPE_BYTES.get(model.dtype, 2))
        return size, size
    mean = _mean_weight_bytes(model)
    return low, high if mean is None else max(low, min(high, mean))


def _mean_weight_bytes(model: ModelSpec) -> float | None:
    """Over the checkpoint, with 16-bit embeddings set apart. Dense models only: experts and the rest differ in MoE ones."""
    total, size = model.parameters.total, model.weights.total_bytes
    if model.is_moe or total is None or size is None or total <= model.parameters.embedding:
        return None
    return (size - 2 * model.parameters.embedding) / (total - model.parameters.embedding)


def _layer_bytes(layer: KvLayer, model: ModelSpec, kv_cache_dtype: str, tp_size: int, tokens: int) -> int:
    kv_format = get_kv_format(kv_cache_dtype, model.dtype)
    match layer:
        case AttentionLayer(window_tokens=window, chunk_tokens=chunk):
            held = min(tokens, window or chunk or tokens)
        case MlaLayer(tokens_per_state=ratio) | IndexerLayer(tokens_per_state=ratio):
            held = tokens // ratio  # one vector for `ratio` tokens
        case CrossAttentionLayer(max_encoder_tokens=encoder):
            held = encoder
        case _:
            return 0
    return held * token_bytes_per_gpu(layer, kv_format, tp_size)
