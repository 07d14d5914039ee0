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
_LIKELY = {"nvfp4": 0.2}  # where between least and most bits published checkpoints lie
_LIKELY_ELSE = 0.1
_LOADED_MORE = 1.03  # of the file's bytes, at most: kernels repack and keep buffers
_LOADED_MORE_BY_METHOD = {"mxfp4": 1.1}  # experts padded to whole tiles
_LIKELY_MORE = {"mxfp4": 1.085, "nvfp4": 1.025}  # of the file's bytes, for experts in tiles; others load as they lie
_LOADED_BUFFERS_BYTES = 0.1 * GIB
_ROUNDED = (0.98, 1.02)  # of bytes that a publisher rounded to two or three digits
_ABOUT = (0.97, 1.06)  # of "about 220 GB": some say GB and mean GiB
_Q_LORA_RANK = 1536  # of the known latent models; the config's own value does not reach this room
_REPLICATED_SHARE = 0.002  # norms, routers, biases, at most


@dataclass(frozen=True, slots=True)
class WeightsPlan:
    """Bytes once loaded, on the GPU that holds most; None: neither bytes nor parameters are known."""

    bytes_per_gpu: tuple[int, int] | None
    certainty: Certainty
    source: str
    middle_bytes: int = 0  # the best guess inside the range


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """Bytes of the whole file: least, best guess, most."""

    low: float
    middle: float
    high: float


def plan_weights(
    model: ModelSpec, tp_size: int, pp_size: int, *, use_draft_layers: bool, text_only: bool = False
) -> WeightsPlan:
    """Weights of one GPU under this split. `text_only`: the vision tower is left in the file."""
    file, certainty, source = _checkpoint(model)
    if file is None:
        return WeightsPlan(None, "unknown", source)
    kept = _kept_share(model, file, use_draft_layers=use_draft_layers, text_only=text_only)
    least, most = _stage_shares(model, pp_size)
    value_bytes = file.high / max(1, model.parameters.total or int(file.high))
    latent = _replicated_parameters(model, tp_size) * value_bytes if tp_size > 1 else 0.0
    norms = file.high * _REPLICATED_SHARE if tp_size > 1 else 0.0
    loaded = _LOADED_MORE_BY_METHOD.get(model.weights.quantization, _LOADED_MORE)
    low = file.low * kept * least / tp_size
    high = (file.high * most / tp_size + most * (latent + norms)) * loaded + _LOADED_BUFFERS_BYTES
    likely = file.middle * kept * (least + most) / 2 / tp_size + latent * most
    likely *= _LIKELY_MORE.get(model.weights.quantization, 1.0) if model.is_moe else 1.0
    return WeightsPlan((int(low), int(high)), certainty, source, int(min(max(likely, low), high)))


def _kept_share(model: ModelSpec, file: _Checkpoint, *, use_draft_layers: bool, text_only: bool) -> float:
    """What is loaded of the file: MTP layers that are not used stay behind, and a tower that no image needs."""
    kept = 1.0
    if model.draft_layers and model.mtp_supported and not use_draft_layers:
        kept = model.num_layers / (model.num_layers + len(model.draft_layers))
    if text_only and model.widths is not None and model.widths.tower is not None:
        kept -= model.widths.tower.parameters * DTYPE_BYTES.get(model.dtype, 2) / file.middle
    return kept


def _checkpoint(model: ModelSpec) -> tuple[_Checkpoint | None, Certainty, str]:
    """The published bytes; a rounded figure is narrowed by what the parameters come to."""
    weights, counted = model.weights, _counted_bytes(model)
    if weights.total_bytes is None:
        return counted, "unknown" if counted is None else "range", _counted_source(model)
    total = float(weights.total_bytes)
    if "rounded" not in weights.source:
        return _Checkpoint(total, total, total), "range", weights.source
    low, high = (total * end for end in (_ABOUT if "about" in weights.source else _ROUNDED))
    if counted is not None and max(low, counted.low) <= min(high, counted.high):
        low, high = max(low, counted.low), min(high, counted.high)
    return _Checkpoint(low, min(max(total, low), high), high), "range", weights.source


def _counted_bytes(model: ModelSpec) -> _Checkpoint | None:
    """Parameters times bits, embeddings and output head unquantized; None where either is not known."""
    count, plain = model.parameters, DTYPE_BYTES.get(model.dtype, 2)
    quantization = model.weights.quantization
    if count.total is None or (quantization != "none" and quantization not in _BITS):
        return None
    fewest, most = _BITS.get(quantization, (plain * 8.0, plain * 8.0))
    body, embedding = max(0, count.total - count.embedding), count.embedding * plain
    likely = fewest + (most - fewest) * _LIKELY.get(quantization, _LIKELY_ELSE)
    low, middle, high = (body * bits / 8 + embedding for bits in (fewest, likely, most))
    return _Checkpoint(low, middle, high)


def _counted_source(model: ModelSpec) -> str:
    count, quantization = model.parameters, model.weights.quantization
    plain = DTYPE_BYTES.get(model.dtype, 2) * 8
    if count.total is None:
        return "neither the checkpoint's bytes nor its number of parameters is known"
    if quantization == "none":
        return f"{count.total:,} parameters at {plain} bits"
    if quantization not in _BITS:
        return f"how '{model.weights.quant_method}' stores {count.total:,} parameters is not known"
    fewest, most = _BITS[quantization]
    return f"{count.total:,} parameters as {quantization} at {fewest:g} to {most:g} bits, embeddings at {plain}"


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
