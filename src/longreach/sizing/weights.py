"""Weights on one GPU: from the checkpoint's bytes where they are known, else from parameters times bits; always a range,
since what is loaded exceeds the file a little and TP does not cut everything.

TP cuts attention, feed-forward layers, embeddings and the output head into equal parts. Every GPU holds whole: norms, routers,
the down-projections of latent attention, and KV heads that are fewer than the GPUs.
"""

from dataclasses import dataclass

from longreach.model.spec import AttentionLayer, IndexerLayer, MlaLayer, ModelSpec
from longreach.sizing.formats import DTYPE_BYTES
from longreach.units import GIB, Certainty, ceil_div

_BITS: dict[str, tuple[float, float]] = {  # of a body parameter, scales included: least, most
    "fp8": (8.0, 8.3),
    "fp8-weight-only": (8.0, 8.3),
    "w8a8-int8": (8.0, 8.3),
    "w4a16": (4.1, 5.0),  # groups of 128 without zero points, to groups of 32 with them and some layers left at 16 bits
    "w4a8-int8": (4.1, 5.0),
    "nvfp4": (4.5, 5.8),  # publishers leave very different shares of a model at 16 or 8 bits
    "mxfp4": (4.25, 5.0),  # experts only; kernels pad them
}
_LOADED_MORE = 1.03  # of the file's bytes, at most: kernels repack and keep buffers
_LOADED_MORE_BY_METHOD = {"mxfp4": 1.1}  # experts padded to whole tiles
_LOADED_BUFFERS_BYTES = 0.1 * GIB
_ROUNDED_LEAST = 0.97  # of bytes that a publisher rounded
_Q_LORA_RANK = 1536  # of the known latent models; the config's own value does not reach this room
_REPLICATED_SHARE = 0.005  # norms, routers, biases


@dataclass(frozen=True, slots=True)
class WeightsPlan:
    """Bytes once loaded, on the GPU that holds most; None: neither bytes nor parameters are known."""

    bytes_per_gpu: tuple[int, int] | None
    certainty: Certainty
    source: str


def plan_weights(model: ModelSpec, tp_size: int, pp_size: int, *, use_draft_layers: bool) -> WeightsPlan:
    """Weights of one GPU under this split."""
    total, certainty, source = _total_bytes(model)
    if total is None:
        return WeightsPlan(None, "unknown", source)
    low, high = total
    if model.draft_layers and not use_draft_layers:
        low *= model.num_layers / (model.num_layers + len(model.draft_layers))  # MTP layers are left in the file
    least, most = _stage_shares(model, pp_size)
    value_bytes = high / max(1, model.parameters.total or int(high))
    whole = (
        most * (_replicated_parameters(model, tp_size) * value_bytes + high * _REPLICATED_SHARE) if tp_size > 1 else 0.0
    )
    loaded = _LOADED_MORE_BY_METHOD.get(model.weights.quantization, _LOADED_MORE)
    high = (high * most / tp_size + whole) * loaded + _LOADED_BUFFERS_BYTES
    return WeightsPlan((int(low * least / tp_size), int(high)), certainty, source)


def _total_bytes(model: ModelSpec) -> tuple[tuple[float, float] | None, Certainty, str]:
    weights = model.weights
    if weights.total_bytes is not None:
        least = weights.total_bytes * (_ROUNDED_LEAST if "rounded" in weights.source else 1.0)
        return (least, float(weights.total_bytes)), "range", weights.source
    count = model.parameters
    if count.total is None:
        return None, "unknown", "neither the checkpoint's bytes nor its number of parameters is known"
    plain = DTYPE_BYTES.get(model.dtype, 2)
    if weights.quantization == "none":
        return (
            (float(count.total * plain), float(count.total * plain)),
            "range",
            f"{count.total:,} parameters at {plain * 8} bits",
        )
    if weights.quantization not in _BITS:
        return None, "unknown", f"how '{weights.quant_method}' stores {count.total:,} parameters is not known"
    fewest, most = _BITS[weights.quantization]
    embedding = count.embedding * plain  # left unquantized, the output head too
    body = max(0, count.total - count.embedding)
    source = f"{count.total:,} parameters as {weights.quantization} at {fewest:g} to {most:g} bits, embeddings at {plain * 8}"
    return (body * fewest / 8 + embedding, body * most / 8 + embedding), "range", source


def _stage_shares(model: ModelSpec, pp_size: int) -> tuple[float, float]:
    """Least and most of the model that the fullest pipeline stage may hold."""
    if pp_size == 1:
        return 1.0, 1.0
    largest = ceil_div(model.num_layers, pp_size) / model.num_layers
    embeddings = model.parameters.embedding / model.parameters.total if model.parameters.total else 0.0
    return largest * (1 - embeddings), min(1.0, largest + embeddings)


def _replicated_parameters(model: ModelSpec, tp_size: int) -> float:
    """Parameters that each GPU holds beyond its equal part."""
    total = 0.0
    for layer in model.layers:
        if isinstance(layer, MlaLayer):
            total += model.hidden_size * (layer.kv_lora_rank + layer.rope_head_dim + _Q_LORA_RANK)
        elif isinstance(layer, IndexerLayer):
            total += (model.hidden_size + _Q_LORA_RANK * (layer.num_heads or 0)) * layer.head_dim
        elif isinstance(layer, AttentionLayer) and layer.num_kv_heads < tp_size:
            dims = layer.head_dim + layer.v_head_dim
            total += model.hidden_size * dims * (1 - layer.num_kv_heads / tp_size)
    return total
