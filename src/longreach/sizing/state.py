"""State of one recurrent layer: bytes of one sequence's state on one GPU, and how many states a request holds.

Shapes as vLLM's state calculators give them; with `s` draft tokens the convolution keeps `s` more columns, in releases whose
layer of this kind knows drafts.
"""

from dataclasses import dataclass
from typing import Literal

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
from longreach.sizing.formats import DTYPE_BYTES, get_kv_format
from longreach.sizing.values import KvCacheRequest
from longreach.units import did_you_mean

StateMode = Literal["none", "align", "all"]
"""Which states stay for later requests: none, the last whole block's, or every block's (`--mamba-cache-mode`)."""


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
    size = _state_size(layer, request.tp_size, _conv_drafts(layer, request))
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


def _conv_drafts(layer: RecurrentLayer, request: KvCacheRequest) -> int:
    release = request.release
    match layer:
        case Mamba2Layer():
            holds = release.mamba2_conv_holds_drafts
        case KdaLayer():
            holds = release.kda_conv_holds_drafts
        case ShortConvLayer():
            holds = release.short_conv_holds_drafts
        case _:
            holds = True
    return request.num_speculative_tokens if holds else 0


def state_mode(request: KvCacheRequest) -> StateMode:
    """What the release makes of prefix caching for this model's states. Models without states: as for any other."""
    release = request.release
    if not request.prefix_caching or release.state_counting == "one":
        return "none"
    keeps_all = all(
        isinstance(layer, Mamba1Layer | Mamba2Layer)
        for layer in request.model.layers
        if isinstance(layer, RecurrentLayer)
    )
    if release.state_counting == "length":  # only Mamba models had prefix caching
        return "all" if keeps_all else "none"
    wanted = request.mamba_cache_mode
    if wanted is None and release.all_mode_by_default:
        has_drafts = request.num_speculative_tokens > 0 and release.drafts_leave_all_mode
        wanted = "align" if has_drafts else "all"
    if wanted == "all" and keeps_all and release.all_mode_exists:
        return "all"
    if request.num_speculative_tokens and request.model.is_hybrid and not release.aligned_states_take_drafts:
        raise UsageError(
            f"vLLM {release.version} keeps no prefixes of this hybrid model beside draft tokens",
            "it stops with \"Mamba cache mode 'align' is currently not compatible with speculative decoding.\"",
            "--no-enable-prefix-caching, no --speculative-config, or vLLM 0.17 and later",
        )
    return "align"


def states_per_request(layer: RecurrentLayer, request: KvCacheRequest) -> int:
    """State blocks of one request: running and last aligned state with prefix caching, one without; one a draft token.

    In mode "all" these come on top of one for each block of tokens. Kernels that export a checkpoint inside a prefill keep one
    more, but only where prefix caching can use it.
    """
    release, mode = request.release, state_mode(request)
    if release.state_counting != "modes":
        return 0 if mode == "all" else 1
    drafts = request.num_speculative_tokens
    if mode == "all":
        return drafts if release.all_mode_adds_drafts else 0
    if mode == "none":
        return 1 + drafts
    return 2 + drafts + int(_keeps_checkpoint(layer, request))


def aligns_to_flashinfer(request: KvCacheRequest) -> bool:
    """Gated-delta prefill runs on FlashInfer and its checkpoints need blocks of a multiple of 64 tokens."""
    release_does = request.release.gdn_flashinfer_alignment and request.gdn_flashinfer_prefill
    return release_does and state_mode(request) == "align" and _has_gated_delta(request)


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
    model, release = request.model, request.release
    if release.states_follow_kv_dtype:
        kv_bytes = get_kv_format(request.kv_cache_dtype, model.dtype).value_bytes
        return StateDtypes(kv_bytes, kv_bytes)
    conv = _dtype_bytes(request.mamba_cache_dtype, model.dtype, "--mamba-cache-dtype")
    is_gated_delta = isinstance(layer, GatedDeltaNetLayer)
    if request.force_fp32_state and is_gated_delta:
        return StateDtypes(conv, 4)
    if is_gated_delta and not release.gated_delta_state_dtype:
        return StateDtypes(conv, conv)
    if request.mamba_ssm_cache_dtype != "auto":
        return StateDtypes(conv, _dtype_bytes(request.mamba_ssm_cache_dtype, model.dtype, "--mamba-ssm-cache-dtype"))
    if model.ssm_state_dtype is not None and release.config_state_dtype:
        return StateDtypes(conv, _dtype_bytes(model.ssm_state_dtype, model.dtype, "mamba_ssm_dtype"))
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
