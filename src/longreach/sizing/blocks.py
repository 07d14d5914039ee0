"""The block size: what vLLM makes of `--block-size` once recurrent layers and mixed KV dtypes share the pool.

Read in `HybridAttentionMambaModelConfig` up to 0.19 and `Platform.update_block_size_for_backend` from 0.20: first a size that the
attention kernel takes, then, for models with recurrent layers, one whose attention page covers a state, then, with layers kept
at the model's dtype, one whose quantized page covers such a layer's smallest page.
"""

from dataclasses import dataclass, replace
from math import lcm

from longreach.errors import UsageError
from longreach.model.spec import MlaLayer, RecurrentLayer
from longreach.sizing.formats import KvFormat, cannot_store, get_kv_format
from longreach.sizing.state import aligns_to_flashinfer, state_bytes_per_gpu, state_mode
from longreach.sizing.values import KvCacheRequest
from longreach.units import ceil_div, round_up

_CONFIG_BLOCK_SIZE = 16  # recurrent layers without attention keep the size of vLLM's configuration
_DEFAULT_CHUNK_TOKENS = 2048  # of Mamba models whose config names no chunk


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """Tokens of an attention block, and the page sizes that other layers are padded to."""

    block_size: int
    state_block_size: int  # of recurrent layers: settled before layers kept at the model's dtype widen the attention's
    state_page_bytes: int | None = None  # recurrent layers; None: their own size
    skip_page_bytes: int | None = None  # sliding layers, when some layers keep the model's dtype


def plan_blocks(request: KvCacheRequest, kv_format: KvFormat, *, has_skipped_layers: bool) -> BlockPlan:
    """Choose the block size for the whole model; it depends on the configuration alone, never on max_model_len."""
    given = request.block_size or request.default_block_size
    plan = BlockPlan(given, request.block_size or _CONFIG_BLOCK_SIZE)
    if request.model.is_hybrid:
        plan = _cover_states(request, kv_format, plan, has_skipped_layers=has_skipped_layers)
    if has_skipped_layers:
        plan = _cover_skipped_layers(request, kv_format, plan)
    if plan.block_size != given and plan.block_size % request.min_kernel_block_size:
        raise UsageError(
            f"--block-size {given} does not work with this model",
            f"vLLM widens it to {plan.block_size}, which is no multiple of the kernel's {request.min_kernel_block_size}",
            "leave --block-size out",
        )
    return plan


def _cover_states(
    request: KvCacheRequest, kv_format: KvFormat, plan: BlockPlan, *, has_skipped_layers: bool
) -> BlockPlan:
    state = max(
        state_bytes_per_gpu(layer, request) for layer in request.model.layers if isinstance(layer, RecurrentLayer)
    )
    token = model_token_bytes(request, kv_format)
    if has_skipped_layers and kv_format.keeps_boundary_layers:
        token = lcm(token, model_token_bytes(request, get_kv_format("auto", request.model.dtype)))
    step = _hybrid_step(request, plan.block_size)
    wanted = round_up(step * ceil_div(state, step * token), request.min_kernel_block_size)
    block_size = max(plan.block_size, wanted)
    page = block_size * token
    return BlockPlan(block_size, block_size, state_page_bytes=None if page == state else page)


def _hybrid_step(request: KvCacheRequest, block_size: int) -> int:
    """Tokens of which a hybrid model's block is a multiple."""
    release = request.release
    step = request.min_kernel_block_size
    if release.hybrid_block_multiple_of_given:
        step = max(step, block_size)
    if _latent_width(request) is not None and release.hybrid_latent_block_multiple is not None:
        step = max(step, release.hybrid_latent_block_multiple)
    if state_mode(request) == "all":  # whole chunks of the Mamba kernel
        step = lcm(step, request.model.mamba_chunk_size or _DEFAULT_CHUNK_TOKENS)
    return lcm(step, 64) if aligns_to_flashinfer(request) else step


def _cover_skipped_layers(request: KvCacheRequest, kv_format: KvFormat, plan: BlockPlan) -> BlockPlan:
    token = _skip_rule_bytes(request, kv_format)
    skipped = _skip_rule_bytes(request, get_kv_format("auto", request.model.dtype))
    if skipped == token or not request.release.skipped_layers_align_blocks:
        return plan
    kernel = request.min_kernel_block_size
    step = max(kernel, plan.block_size)
    needed = max(skipped * kernel, plan.state_page_bytes or 0)
    block_size = max(plan.block_size, step * ceil_div(needed, step * token))
    page = block_size * token
    state_page = None if plan.state_page_bytes is None else page
    return replace(plan, block_size=block_size, state_page_bytes=state_page, skip_page_bytes=page)


def model_token_bytes(request: KvCacheRequest, kv_format: KvFormat) -> int:
    """Bytes of one token by the model-wide heads and head_dim, which is what vLLM aligns with (not a layer's own).

    For a latent it counts plain values and leaves packing and scales out.
    """
    model = request.model
    width = _latent_width(request)
    if width is not None:
        return width * kv_format.value_bytes
    if kv_format.head_bytes is None:
        raise cannot_store(kv_format.name, "grouped-query attention", "fp8_e4m3")
    return max(1, model.num_kv_heads // request.tp_size) * kv_format.head_bytes(model.head_dim, model.head_dim)


def _skip_rule_bytes(request: KvCacheRequest, kv_format: KvFormat) -> int:
    """As `model_token_bytes`, but this step takes a latent for a key beside a value, unless the format packs it."""
    width = _latent_width(request)
    if width is None:
        return model_token_bytes(request, kv_format)
    if kv_format.latent_bytes is not None and kv_format.name.endswith("_per_token_head"):
        return kv_format.latent_bytes(width)
    return 2 * width * kv_format.value_bytes


def _latent_width(request: KvCacheRequest) -> int | None:
    latent = next((layer for layer in request.model.layers if isinstance(layer, MlaLayer)), None)
    return None if latent is None else latent.kv_lora_rank + latent.rope_head_dim


def sliding_block_size(kv_format: KvFormat, token_bytes: int, plan: BlockPlan, kernel: int) -> int:
    """The largest block that the kernel takes and whose page fits the shared page; the kernel's smallest when none does."""
    page = plan.skip_page_bytes or token_bytes * plan.block_size
    if kv_format.kernel_block_sizes:
        fitting = [size for size in kv_format.kernel_block_sizes if size * token_bytes <= page]
        return max(fitting, default=min(kv_format.kernel_block_sizes))
    return max(kernel, page // token_bytes // kernel * kernel)
