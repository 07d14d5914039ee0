"""What vLLM's profile run finds at its peak: one forward pass over the largest batch, the sampler, the vision encoder.

The passes follow one another, so the largest of them counts, not their sum. Widths are columns of the model's dtype that live
at once in the widest layer; they are read off the layers' code and checked against published start-up logs (docs/sizing.md).
"""

from dataclasses import dataclass

from longreach.model.spec import (
    AttentionLayer,
    GatedDeltaNetLayer,
    KdaLayer,
    KvLayer,
    LinearAttentionLayer,
    Mamba1Layer,
    Mamba2Layer,
    MlaLayer,
    ModelSpec,
    TowerWidths,
)
from longreach.sizing.formats import DTYPE_BYTES

_STREAMS = 4.0  # hidden sizes alive beside a layer's widest part: residual, normed input, output, the pass's result
_FLOAT32_BYTES = 4
_CHUNK_TOKENS = 64  # of a gated-delta prefill kernel: it keeps the state at every chunk's end
_MAMBA_CHUNK_TOKENS = 256
_MLA_WORKSPACE_TOKENS = 65536  # latents decompressed at once by chunked prefill, at most
_TILE_ROWS = 128
_QUANTIZED_INPUT = ("fp8", "w8a8-int8", "nvfp4")
_TYPICAL_WIDTH = 13.0  # columns of a layer over its hidden size, for a model without stated widths


@dataclass(frozen=True, slots=True)
class ProfileRun:
    """The batch vLLM profiles with."""

    model: ModelSpec
    tp_size: int
    max_num_batched_tokens: int
    max_num_seqs: int
    logit_copies: float  # of float32 logits while sampling
    text_only: bool  # no image is admitted, so no encoder runs
    sorts_tokens: bool = False  # experts run on DeepGEMM: tokens are copied into tiles of one expert each


def peak_bytes(run: ProfileRun) -> int:
    """Activations at the peak, which vLLM keeps free for requests."""
    kept = encoder_output_bytes(run)  # cached until the run ends
    return int(kept + max(encoder_bytes(run), body_bytes(run), sampler_bytes(run)))


def body_bytes(run: ProfileRun) -> float:
    """The language model over `max_num_batched_tokens` tokens: its widest mixer or MLP, or its experts."""
    model, widths = run.model, run.model.widths
    per_column = run.max_num_batched_tokens * DTYPE_BYTES.get(model.dtype, 2)
    mixer = max(_mixer_width(layer, run.tp_size) for layer in model.layers)
    dense = _TYPICAL_WIDTH * model.hidden_size if widths is None else 3.0 * max(widths.dense, widths.shared)
    widest = per_column * max(mixer, dense / run.tp_size)
    return per_column * _STREAMS * model.hidden_size + max(widest, _expert_bytes(run)) + _latent_bytes(run)


def sampler_bytes(run: ProfileRun) -> float:
    """Logits of a full batch, with the pass's result beside them."""
    sequences = min(run.max_num_seqs, run.max_num_batched_tokens)
    hidden = run.max_num_batched_tokens * run.model.hidden_size * DTYPE_BYTES.get(run.model.dtype, 2)
    return run.logit_copies * sequences * run.model.vocab_size * _FLOAT32_BYTES + hidden


def encoder_bytes(run: ProfileRun) -> float:
    """The vision encoder over as many images as one batch may hold: attention or MLP of every patch."""
    tower = _tower(run)
    if tower is None:
        return 0.0
    patches = _encoder_tokens(run, tower) * tower.patches_per_token
    per_patch = 2 * tower.hidden + max(2 * tower.inner, 6 * tower.hidden) / run.tp_size
    return patches * per_patch * DTYPE_BYTES.get(run.model.dtype, 2)


def encoder_output_bytes(run: ProfileRun) -> float:
    """The images' embeddings, which stay while the language model runs, and buffers for those of deep-stacked layers."""
    tower = _tower(run)
    if tower is None:
        return 0.0
    embeddings = _encoder_tokens(run, tower) * tower.outputs_per_token
    buffers = run.max_num_batched_tokens * (tower.outputs_per_token - 1)
    return (embeddings + buffers) * run.model.hidden_size * DTYPE_BYTES.get(run.model.dtype, 2)


def _tower(run: ProfileRun) -> TowerWidths | None:
    return None if run.text_only or run.model.widths is None else run.model.widths.tower


def _encoder_tokens(run: ProfileRun, tower: TowerWidths) -> int:
    """A batch's budget of image tokens: at least one image, of the largest size."""
    return max(run.max_num_batched_tokens, tower.largest_image_tokens)


def _mixer_width(layer: KvLayer, tp_size: int) -> float:
    """Columns per token of an attention or recurrent layer on one GPU."""
    match layer:
        case AttentionLayer():  # projections, rotated copies, the output
            query, keys = layer.num_heads * layer.head_dim, layer.num_kv_heads * (layer.head_dim + layer.v_head_dim)
            return (3 * query + 2 * keys) / tp_size
        case MlaLayer():
            heads = layer.num_heads / tp_size
            return 2 * heads * (layer.nope_head_dim + layer.rope_head_dim) + heads * (
                layer.nope_head_dim + layer.v_head_dim
            )
        case GatedDeltaNetLayer():
            keys, values = layer.num_k_heads * layer.k_head_dim, layer.num_v_heads * layer.v_head_dim
            states = layer.num_v_heads * layer.k_head_dim * layer.v_head_dim / _CHUNK_TOKENS
            return (6 * keys + 10 * values + states) / tp_size
        case KdaLayer():
            width = layer.num_heads * layer.head_dim
            return (16 * width + layer.num_heads * layer.head_dim**2 / _CHUNK_TOKENS) / tp_size
        case Mamba2Layer():
            states = layer.num_heads * layer.head_dim * layer.state_size / _MAMBA_CHUNK_TOKENS
            projected = 2 * layer.intermediate_size + 2 * layer.num_groups * layer.state_size
            return (3 * projected + 2 * layer.intermediate_size + 4 * states) / tp_size
        case Mamba1Layer():
            return 6 * layer.intermediate_size / tp_size
        case LinearAttentionLayer():
            return 6 * layer.num_heads * layer.head_dim / tp_size
    return 0.0


def _expert_bytes(run: ProfileRun) -> float:
    """Routed experts: every chosen expert has its copy of a token.

    Usual kernels let gate and up share one buffer with the output, beside the product. DeepGEMM's have two buffers as wide as
    the model, in tiles of 128 rows for each expert. Kernels that multiply in 8 bits keep the narrowed input too.
    """
    model, widths = run.model, run.model.widths
    if widths is None or not widths.experts_per_token:
        return 0.0
    value_bytes = DTYPE_BYTES.get(model.dtype, 2)
    rows, inner = run.max_num_batched_tokens * widths.experts_per_token, widths.expert / run.tp_size
    narrowed = model.hidden_size if model.weights.quantization in _QUANTIZED_INPUT else 0
    if run.sorts_tokens:
        rows += widths.num_experts * _TILE_ROWS
        return rows * (value_bytes * 2 * max(inner, model.hidden_size) + narrowed)
    return rows * (value_bytes * (max(2 * inner, model.hidden_size) + inner) + narrowed)


def _latent_bytes(run: ProfileRun) -> float:
    """Keys and values decompressed from latents, by the context that chunked prefill reads at once."""
    latent = next((layer for layer in run.model.layers if isinstance(layer, MlaLayer)), None)
    if latent is None or run.model.index_topk is not None:  # sparse attention reads the latents themselves
        return 0.0
    width = latent.num_heads / run.tp_size * (latent.nope_head_dim + latent.v_head_dim)
    return _MLA_WORKSPACE_TOKENS * width * DTYPE_BYTES.get(run.model.dtype, 2)
