"""State of one recurrent layer: bytes of one sequence's state on one GPU, and how many states a request holds.

Shapes as vLLM 0.32's state calculators give them; with `s` draft tokens the convolution keeps `s` more columns.
"""

from dataclasses import dataclass

from longreach.errors import UsageError
from longreach.model.spec import (
    GatedDeltaNetLayer,
    KdaLayer,
    LinearAttentionLayer,
    Mamba1Layer,
    Mamba2Layer,
    RecurrentLayer,
    ShortConvLayer,
)
from longreach.sizing.formats import DTYPE_BYTES
from longreach.sizing.values import KvCacheRequest
from longreach.units import did_you_mean


@dataclass(frozen=True, slots=True)
class StateSize:
    """Values in one state on one GPU."""

    conv_values: int
    state_values: int


@dataclass(frozen=True, slots=True)
class StateDtypes:
    """Bytes of one value of the convolution state and of the recurrent state."""

    conv_bytes: int
    state_bytes: int


def state_bytes_per_gpu(layer: RecurrentLayer, request: KvCacheRequest) -> int:
    """Bytes of one state of this layer on one GPU, unpadded. Raises UsageError when TP does not divide it."""
    dtypes = _state_dtypes(layer, request)
    size = _state_size(layer, request.tp_size, request.num_speculative_tokens)
    return size.conv_values * dtypes.conv_bytes + size.state_values * dtypes.state_bytes


def _state_size(layer: RecurrentLayer, tp: int, drafts: int) -> StateSize:
    match layer:
        case GatedDeltaNetLayer(num_k_heads=nk, num_v_heads=nv, k_head_dim=dk, v_head_dim=dv, conv_kernel=kernel):
            return StateSize(_split(2 * dk * nk + dv * nv, tp) * (kernel - 1 + drafts), _split(nv, tp) * dv * dk)
        case KdaLayer(num_heads=heads, head_dim=dim, conv_kernel=kernel):
            return StateSize(_split(3 * heads * dim, tp) * (kernel - 1 + drafts), _split(heads, tp) * dim * dim)
        case Mamba2Layer(
            intermediate_size=inner, num_groups=groups, state_size=size, num_heads=heads, conv_kernel=kernel
        ):
            groups += 0 if groups % tp == 0 else tp - groups  # every shard of heads carries the groups it reads
            conv = _split(inner + 2 * groups * size, tp) * (kernel - 1 + drafts)
            return StateSize(conv, _split(heads, tp) * layer.head_dim * size)
        case Mamba1Layer(intermediate_size=inner, state_size=size, conv_kernel=kernel):
            return StateSize(_split(inner, tp) * (kernel - 1), _split(inner, tp) * size)
        case ShortConvLayer(dim=dim, conv_kernel=kernel):
            return StateSize(_split(dim, tp) * (kernel - 1 + drafts), 0)
        case LinearAttentionLayer(num_heads=heads, head_dim=dim):
            return StateSize((heads // tp) * dim * dim, 0)  # its one state has the convolution's dtype


def states_per_request(layer: RecurrentLayer, request: KvCacheRequest) -> int:
    """State blocks of one request: running and last aligned state with prefix caching, one without; one a draft token.

    Kernels that export a checkpoint inside a prefill keep one more, but only where prefix caching can use it.
    """
    drafts = request.num_speculative_tokens
    if not request.prefix_caching:
        return 1 + drafts
    return 2 + drafts + int(_keeps_checkpoint(layer, request))


def aligns_to_flashinfer(request: KvCacheRequest) -> bool:
    """Gated-delta prefill runs on FlashInfer and its checkpoints need blocks of a multiple of 64 tokens."""
    release_does = request.release.gdn_flashinfer_alignment and request.gdn_flashinfer_prefill
    return release_does and request.prefix_caching and _has_gated_delta(request)


def _has_gated_delta(request: KvCacheRequest) -> bool:
    return any(isinstance(layer, GatedDeltaNetLayer) for layer in request.model.layers)


def _keeps_checkpoint(layer: RecurrentLayer, request: KvCacheRequest) -> bool:
    match layer:
        case Mamba2Layer():
            return request.release.recurrent_checkpoint_block
        case KdaLayer(checkpoints_prefill=checkpoints):
            return checkpoints and request.release.recurrent_checkpoint_block
        case GatedDeltaNetLayer():
            return request.release.gdn_flashinfer_alignment and request.gdn_flashinfer_prefill
        case _:
            return False


def _state_dtypes(layer: RecurrentLayer, request: KvCacheRequest) -> StateDtypes:
    conv = _dtype_bytes(request.mamba_cache_dtype, request.model.dtype, "--mamba-cache-dtype")
    wanted = request.mamba_ssm_cache_dtype
    if request.force_fp32_state and isinstance(layer, GatedDeltaNetLayer):
        return StateDtypes(conv, 4)
    if wanted != "auto":
        return StateDtypes(conv, _dtype_bytes(wanted, request.model.dtype, "--mamba-ssm-cache-dtype"))
    if request.model.ssm_state_dtype is not None:
        return StateDtypes(conv, _dtype_bytes(request.model.ssm_state_dtype, request.model.dtype, "mamba_ssm_dtype"))
    return StateDtypes(conv, 4 if isinstance(layer, KdaLayer) else conv)


def _dtype_bytes(name: str, model_dtype: str, option: str) -> int:
    resolved = model_dtype if name == "auto" else name
    if resolved not in DTYPE_BYTES:
        known = ["auto", "float32", "float16", "bfloat16"]
        raise UsageError(
            f"unknown state dtype '{resolved}'",
            f"{option} takes {', '.join(known)}",
            did_you_mean(resolved, known) or f"{option} auto",
        )
    return DTYPE_BYTES[resolved]


def _split(total: int, tp_size: int) -> int:
    if total % tp_size:
        raise UsageError(
            f"tensor parallel size {tp_size} does not divide the recurrent layers",
            f"{total} channels or heads cannot be cut into {tp_size} equal parts; vLLM stops at load",
            "--tp with a divisor of the model's recurrent heads",
        )
    return total // tp_size
