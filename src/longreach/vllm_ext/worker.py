"""Copies KV blocks between the CPU backend's cache and the engine's shared host region, where a GPU engine uses copy streams.

With numpy, which copies whole pages in this thread: torch copies bytes one by one, or waits for threads that the model uses.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from vllm.logger import init_logger
from vllm.v1.kv_offload.base import (
    BlockIDsLoadStoreSpec,
    CanonicalKVCacheRef,
    CanonicalKVCaches,
    GPULoadStoreSpec,
    LoadStoreSpec,
    OffloadingWorker,
    TransferResult,
)
from vllm.v1.kv_offload.cpu.shared_offload_region import SharedOffloadRegion

Bytes = np.ndarray[tuple[int, ...], np.dtype[np.int8]]
Indices = np.ndarray[tuple[int], np.dtype[np.integer]]

logger = init_logger("vllm.longreach")  # only names under "vllm" reach the engine's log


@dataclass(frozen=True, slots=True)
class _Sides:
    """One KV cache tensor as bytes, in the cache and in this rank's slot of the region."""

    cache: Bytes  # (num_blocks, page_size_bytes)
    host: Bytes  # (num_chunks, blocks_per_chunk, page_size_bytes), strided over the ranks' slots


@dataclass(frozen=True, slots=True)
class _GroupBlocks:
    """The blocks of one KV cache group in one transfer: three equally long rows of indices."""

    refs: Sequence[CanonicalKVCacheRef]
    blocks: Indices  # in the cache
    chunks: Indices  # the chunk that holds each block
    places: Indices  # and the block's place in it, below blocks_per_chunk


class CpuCopyWorker(OffloadingWorker):
    """Copies at once, inside the call: when a job is submitted it is finished, so later steps find its blocks in place."""

    def __init__(self, kv_caches: CanonicalKVCaches, blocks_per_chunk: int, region: SharedOffloadRegion) -> None:
        self._blocks_per_chunk = blocks_per_chunk
        self._region = region
        self._refs = kv_caches.group_data_refs
        self._sides: list[_Sides] = []
        for one in kv_caches.tensors:
            size = one.page_size_bytes
            host = region.create_next_worker_view(size * blocks_per_chunk)
            cache = one.tensor.view(torch.int8).view(-1, size)
            self._sides.append(_Sides(cache.numpy(), host.unflatten(1, (blocks_per_chunk, size)).numpy()))
        self._finished: list[TransferResult] = []
        logger.info("KV offload on the CPU platform: blocks are copied by longreach.vllm_ext")

    def submit_store(self, job_id: int, src_spec: GPULoadStoreSpec, dst_spec: LoadStoreSpec) -> bool:
        """Cache to region."""
        self._copy(job_id, src_spec, dst_spec, is_store=True)
        return True

    def submit_load(self, job_id: int, src_spec: LoadStoreSpec, dst_spec: GPULoadStoreSpec) -> bool:
        """Region to cache."""
        self._copy(job_id, dst_spec, src_spec, is_store=False)
        return True

    def get_finished(self) -> list[TransferResult]:
        """The jobs copied since the last call."""
        finished, self._finished = self._finished, []
        return finished

    def wait(self, job_ids: set[int]) -> None:
        """Nothing to wait for."""

    def shutdown(self) -> None:
        """Let go of the region; its views must go first."""
        self._sides.clear()
        self._region.cleanup()

    def _copy(self, job_id: int, cached: GPULoadStoreSpec, hosted: LoadStoreSpec, *, is_store: bool) -> None:
        assert isinstance(hosted, BlockIDsLoadStoreSpec)
        began, num_bytes = time.perf_counter(), 0
        for group in self._groups(cached, hosted):
            for ref in group.refs:
                sides = self._sides[ref.tensor_idx]
                used = ref.page_size_bytes  # of a padded page only the bytes in use
                cache, host = sides.cache[:, :used], sides.host[:, :, :used]
                if is_store:
                    host[group.chunks, group.places] = cache[group.blocks]
                else:
                    cache[group.blocks] = host[group.chunks, group.places]
                num_bytes += used * len(group.blocks)
        self._finished.append(TransferResult(job_id, True, num_bytes, time.perf_counter() - began))

    def _groups(self, cached: GPULoadStoreSpec, hosted: BlockIDsLoadStoreSpec) -> Iterator[_GroupBlocks]:
        """Blocks come group after group; a group's first block may stand inside its first chunk."""
        num_blocks = num_chunks = 0
        for refs, size, first in zip(self._refs, cached.group_sizes, cached.block_indices, strict=True):
            if size == 0:
                continue
            start = first % self._blocks_per_chunk
            chunks, places = np.divmod(np.arange(start, start + size), self._blocks_per_chunk)
            blocks = cached.block_ids[num_blocks : num_blocks + size]
            yield _GroupBlocks(refs, blocks, hosted.block_ids[num_chunks + chunks], places)
            num_blocks += size
            num_chunks += int(chunks[-1]) + 1
        assert (num_blocks, num_chunks) == (len(cached.block_ids), len(hosted.block_ids))
