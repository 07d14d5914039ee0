"""What the CPU and disk tiers hold: chunks of KV blocks, and the tokens of other requests' prefixes they make.

    copies = 1 when every GPU holds the same latent (MLA under TP alone), else TP x PP
    chunk  = bytes_per_block x copies x blocks_per_chunk, rounded up to 4096 (from 0.23)
    chunks = bytes // chunk

Read in `v1/kv_offload` of each release. A tier never extends what one running request may hold: attention reads GPU blocks only.
"""

from longreach.errors import UsageError
from longreach.model.spec import IndexerLayer, MlaLayer
from longreach.sizing.values import KvCacheRequest, KvCapacity, KvGroup, TierCapacity
from longreach.units import Certainty, format_bytes, round_up

_REGION_ALIGNMENT_BYTES = 4096
_GROWING_KINDS = ("full_attention", "mla")


def size_cpu_tier(
    capacity: KvCapacity, request: KvCacheRequest, cpu_bytes: int, blocks_per_chunk: int = 1
) -> TierCapacity:
    """The CPU tier; `cpu_bytes` is the total over all workers of one engine (`cpu_bytes_to_use`).

    Raises UsageError for a size below one chunk, and for recurrent layers without prefix caching, which vLLM does not offload.
    """
    chunk_bytes = chunk_bytes_per_engine(capacity, request, blocks_per_chunk)
    num_chunks = _count_chunks("--cpu-tier", cpu_bytes, chunk_bytes)
    return TierCapacity(
        name="cpu",
        capacity_tokens=_tokens(capacity, request, num_chunks * blocks_per_chunk),
        capacity_bytes=cpu_bytes,
        certainty=_certainty(capacity),
        num_chunks=num_chunks,
        chunk_bytes=chunk_bytes,
        note=_note(capacity, "in /dev/shm, filled before serving starts"),
    )


def size_disk_tier(
    capacity: KvCapacity, request: KvCacheRequest, disk_bytes: int | None, blocks_per_chunk: int = 1
) -> TierCapacity:
    """The disk tier: one file a chunk. vLLM neither limits nor cleans the folder, so `disk_bytes` is what the owner leaves
    it; None: not known. Raises UsageError as `size_cpu_tier`.
    """
    chunk_bytes = chunk_bytes_per_engine(capacity, request, blocks_per_chunk)
    num_chunks = None if disk_bytes is None else _count_chunks("--disk-tier", disk_bytes, chunk_bytes)
    return TierCapacity(
        name="disk",
        capacity_tokens=None if num_chunks is None else _tokens(capacity, request, num_chunks * blocks_per_chunk),
        capacity_bytes=disk_bytes,
        certainty="unknown" if num_chunks is None else _certainty(capacity),
        num_chunks=num_chunks,
        chunk_bytes=chunk_bytes,
        note=_note(capacity, "vLLM never deletes these files: bound and clean the folder yourself"),
    )


def chunk_bytes_per_engine(capacity: KvCapacity, request: KvCacheRequest, blocks_per_chunk: int = 1) -> int:
    """Bytes of one chunk over all workers of an engine, padded to whole pages of memory."""
    if blocks_per_chunk < 1:
        raise UsageError(
            f"blocks per chunk {blocks_per_chunk} is not a size", "a chunk holds at least one block", "use 1 or more"
        )
    if _needs_prefix_caching(capacity, request):
        raise UsageError(
            "an offload tier needs prefix caching with this model",
            "blocks of its recurrent and attention layers are aligned by prefix caching only; vLLM stops at start-up",
            "leave --no-prefix-caching out",
        )
    _check_release(capacity, request)
    copies = 1 if _is_replicated(request) else request.tp_size * request.pp_size
    chunk_bytes = capacity.bytes_per_block * copies * blocks_per_chunk
    return (
        round_up(chunk_bytes, _REGION_ALIGNMENT_BYTES) if request.release.offload_chunks_page_aligned else chunk_bytes
    )


def _check_release(capacity: KvCapacity, request: KvCacheRequest) -> None:
    if len(capacity.groups) > 1 and not request.release.offload_with_hybrid_manager:
        raise UsageError(
            f"vLLM {request.release.version} has no offload tier for this model",
            "its layers make several KV groups, and OffloadingConnector takes one up to 0.20",
            "--vllm 0.21.0 or later, or no tier",
        )


def _needs_prefix_caching(capacity: KvCapacity, request: KvCacheRequest) -> bool:
    """Without it a recurrent block spans max_model_len, and vLLM wants every block to be a multiple of all others."""
    has_states = any(group.kind == "recurrent" for group in capacity.groups)
    sizes = {_block_tokens(group, request) for group in capacity.groups}
    return has_states and not request.prefix_caching and len(sizes) > 1


def _is_replicated(request: KvCacheRequest) -> bool:
    """Every GPU of the TP group holds the same bytes, and only TP is in play: one copy serves all."""
    drafts = request.model.draft_layers if request.use_draft_layers else ()
    only_latents = all(isinstance(layer, MlaLayer | IndexerLayer) for layer in (*request.model.layers, *drafts))
    return only_latents and request.pp_size == 1 and request.dcp_size == 1


def _count_chunks(option: str, size_bytes: int, chunk_bytes: int) -> int:
    if size_bytes < chunk_bytes:
        raise UsageError(
            f"{option} {format_bytes(size_bytes)} is smaller than one chunk",
            f"a chunk of this model takes {format_bytes(chunk_bytes)} over all GPUs",
            f"{option} with at least {chunk_bytes} bytes",
        )
    return size_bytes // chunk_bytes


def _tokens(capacity: KvCapacity, request: KvCacheRequest, num_blocks: int) -> int | None:
    """Tokens of prefixes in that many blocks: exact with one group, else an upper bound without the other groups' chunks."""
    if len(capacity.groups) == 1:
        only = capacity.groups[0]
        return None if only.kind == "recurrent" else num_blocks * _block_tokens(only, request)
    growing = [group for group in capacity.groups if group.kind in _GROWING_KINDS]
    if not growing:
        return None
    return num_blocks * _block_tokens(growing[0], request) // len(growing)


def _block_tokens(group: KvGroup, request: KvCacheRequest) -> int:
    return group.block_size * (request.dcp_size if group.kind in _GROWING_KINDS else 1)


def _certainty(capacity: KvCapacity) -> Certainty:
    if len(capacity.groups) > 1:
        return "bound"
    return capacity.certainty


def _note(capacity: KvCapacity, place: str) -> str:
    if len(capacity.groups) == 1:
        return f"prefixes of other requests; {place}"
    return f"prefixes of other requests, at most: states and windows take chunks too; {place}"
