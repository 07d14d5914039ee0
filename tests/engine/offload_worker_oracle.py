"""Runs in the engine's Python: the copy worker against plain byte arithmetic, and the texts of all refusals. Prints JSON.

Two ranks share one region. Tensor 0 has padded pages; tensor 1 is used by both cache groups, with pages of different use.
"""

import json
import random
import sys
from collections.abc import Callable
from types import SimpleNamespace
from uuid import uuid4

import torch
from vllm.v1.kv_offload.base import CanonicalKVCacheRef, CanonicalKVCaches, CanonicalKVCacheTensor, GPULoadStoreSpec
from vllm.v1.kv_offload.cpu.common import CPULoadStoreSpec
from vllm.v1.kv_offload.cpu.shared_offload_region import SharedOffloadRegion

from longreach.vllm_ext import specs
from longreach.vllm_ext.refusal import OffloadRefusedError, check_release
from longreach.vllm_ext.worker import CpuCopyWorker

NUM_BLOCKS, NUM_CHUNKS, NUM_RANKS = 40, 24, 2
PAGES = (48, 64)  # bytes of a block in each tensor
GROUPS = (((0, 40), (1, 64)), ((1, 56),))  # tensor and bytes in use, per group


def make_caches(rng: random.Random) -> CanonicalKVCaches:
    tensors = [
        CanonicalKVCacheTensor(torch.frombuffer(bytearray(rng.randbytes(NUM_BLOCKS * page)), dtype=torch.int8), page)
        for page in PAGES
    ]
    return CanonicalKVCaches(tensors, [[CanonicalKVCacheRef(*ref) for ref in refs] for refs in GROUPS])


def make_transfer(rng: random.Random, per_chunk: int) -> tuple[list[list[int]], list[int], list[list[tuple[int, int]]]]:
    """Blocks of each group, the index of each group's first block, and where each block rests: (chunk, place)."""
    blocks, chunks = rng.sample(range(NUM_BLOCKS), NUM_BLOCKS), rng.sample(range(NUM_CHUNKS), NUM_CHUNKS)
    per_group, firsts, rests = [], [], []
    for _ in GROUPS:
        first = rng.randrange(9)
        size = rng.choice((0, 1, 2, 5, 7))
        own = (
            {index: chunks.pop() for index in range(first // per_chunk, (first + size - 1) // per_chunk + 1)}
            if size
            else {}
        )
        per_group.append([blocks.pop() for _ in range(size)])
        firsts.append(first)
        rests.append([(own[index // per_chunk], index % per_chunk) for index in range(first, first + size)])
    return per_group, firsts, rests


def chunk_ids(rests: list[list[tuple[int, int]]]) -> list[int]:
    return [chunk for group in rests for chunk in dict.fromkeys(chunk for chunk, _ in group)]


def page_at(rank: int, per_chunk: int, row_bytes: int, tensor: int, chunk: int, place: int) -> int:
    """Offset in the region of a block's page: row, then rank, then tensor, then place."""
    slot_bytes = sum(PAGES) * per_chunk
    return chunk * row_bytes + rank * slot_bytes + sum(PAGES[:tensor]) * per_chunk + place * PAGES[tensor]


def compare(per_chunk: int, rng: random.Random) -> int:
    """Store and load many times on both ranks; returns the number of pages compared."""
    slot_bytes = sum(PAGES) * per_chunk
    row_bytes = -(-NUM_RANKS * slot_bytes // 4096) * 4096
    engine_id, num_pages = f"oracle-{uuid4()}", 0
    regions = [SharedOffloadRegion(engine_id, NUM_CHUNKS, rank, row_bytes, slot_bytes) for rank in range(NUM_RANKS)]
    caches = [make_caches(rng) for _ in range(NUM_RANKS)]
    workers = [CpuCopyWorker(cache, per_chunk, region) for cache, region in zip(caches, regions, strict=True)]
    for job in range(60):
        rank = job % NUM_RANKS
        tensors = [memoryview(one.tensor.numpy()).cast("B") for one in caches[rank].tensors]
        hosted = memoryview(regions[0].base_tensor.numpy()).cast("B")
        wanted = bytearray(hosted)
        blocks, firsts, rests = make_transfer(rng, per_chunk)
        copies = [
            (tensor, block * PAGES[tensor], page_at(rank, per_chunk, row_bytes, tensor, chunk, place), used)
            for refs, group, places in zip(GROUPS, blocks, rests, strict=True)
            for tensor, used in refs
            for block, (chunk, place) in zip(group, places, strict=True)
        ]
        flat = GPULoadStoreSpec(
            [block for group in blocks for block in group], [len(group) for group in blocks], firsts
        )
        for tensor, at, to, used in copies:
            wanted[to : to + used] = tensors[tensor][at : at + used]
        kept = [bytes(tensor) for tensor in tensors]
        assert workers[rank].submit_store(2 * job, flat, CPULoadStoreSpec(chunk_ids(rests)))
        assert bytes(hosted) == bytes(wanted), f"store {job} of {per_chunk} blocks a chunk"
        for tensor, at, _, used in copies:
            tensors[tensor][at : at + used] = bytes(used)
        assert workers[rank].submit_load(2 * job + 1, CPULoadStoreSpec(chunk_ids(rests)), flat)
        assert [bytes(tensor) for tensor in tensors] == kept, f"load {job} of {per_chunk} blocks a chunk"
        done = workers[rank].get_finished()
        assert [(one.job_id, one.success) for one in done] == [(2 * job, True), (2 * job + 1, True)]
        assert {one.transfer_size for one in done} == {sum(used for *_, used in copies)}
        num_pages += len(copies)
        del hosted, tensors
    for worker in workers:
        worker.shutdown()
    return num_pages


def refusals() -> dict[str, str]:
    """What each refusal says."""
    cache = CanonicalKVCaches([CanonicalKVCacheTensor(torch.zeros(8, dtype=torch.int8), 8)], [])
    elsewhere = CanonicalKVCaches([CanonicalKVCacheTensor(torch.zeros(8, dtype=torch.int8, device="meta"), 8)], [])
    extra = {"cpu_bytes_to_use": 4096}

    def spec(num_chunks: int = 1, *, canonical: bool = False) -> SimpleNamespace:
        config = SimpleNamespace(canonical_layout=canonical)
        return SimpleNamespace(config=config, num_chunks=num_chunks, kv_bytes_per_chunk=8192, extra_config=extra)

    said = {}
    attempts: dict[str, Callable[[], None]] = {
        "release": lambda: check_release("0.33.0"),
        "not on a CPU": lambda: specs.refuse_unsupported(spec(), elsewhere),
        "canonical layout": lambda: specs.refuse_unsupported(spec(canonical=True), cache),
        "no chunk": lambda: specs.refuse_unsupported(spec(0), cache),
    }
    for name, refuse in attempts.items():
        try:
            refuse()
        except OffloadRefusedError as error:
            said[name] = f"{type(error).__name__}: {error}"
    for release in ("0.32.0", "0.32.1", "0.32.0+cpu"):
        check_release(release)
    specs.refuse_unsupported(spec(), cache)
    return said


if __name__ == "__main__":
    seeded = random.Random(int(sys.argv[1]))
    pages = {per_chunk: compare(per_chunk, seeded) for per_chunk in (1, 2, 3)}
    print("ANSWER", json.dumps({"pages": pages, "refusals": refusals()}))  # noqa: T201 - the answer to the test
