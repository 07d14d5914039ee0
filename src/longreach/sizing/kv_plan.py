"""The layout of the KV cache, decided by the configuration alone; lengths and bytes are counted against it."""

from dataclasses import dataclass

from longreach.engine.release import Release
from longreach.sizing.groups import CacheGroup
from longreach.sizing.pages import LayerCache, RequestShape, blocks_for_tokens
from longreach.units import ceil_div


@dataclass(frozen=True, slots=True)
class KvPlan:
    """Groups of layers, and what a block costs on each pipeline stage."""

    groups: tuple[CacheGroup, ...]
    stage_block_bytes: tuple[int, ...]  # bytes per block on each pipeline stage
    stage_caches: tuple[
        tuple[tuple[LayerCache, int], ...], ...
    ]  # each stage's layers before grouping: a cache, how often
    shape: RequestShape
    release: Release
    estimate_reason: str | None
    checked_block_bytes: int | None = None  # what the start-up check takes a block for, where it is not the pool's
    weighs_groups: bool = False  # concurrency counts a group's blocks by its own bytes, not the pool's

    @property
    def bytes_per_block(self) -> int:
        """On the stage that pays most: it limits the pool."""
        return max(self.stage_block_bytes)

    @property
    def null_blocks(self) -> int:
        """Blocks that a start needs beyond the request's own."""
        return int(self.release.null_block_reserved)

    @property
    def block_size(self) -> int:
        """Tokens of the smallest block of any group."""
        return min(group.representative.block_size for group in self.groups)

    def num_blocks(self, available_bytes: int) -> int:
        """The pool that so many bytes on every GPU make."""
        return max(0, available_bytes // self.bytes_per_block)

    def blocks_per_request(self, num_tokens: int) -> int:
        """Blocks of one request over all groups, those of other stages included: they share one table of blocks."""
        return sum(blocks_for_tokens(group.representative, num_tokens, self.shape) for group in self.groups)

    def blocks_for_concurrency(self, num_tokens: int) -> int:
        """Blocks by which the release divides the pool for its max_concurrency."""
        if not self.weighs_groups:
            return self.blocks_per_request(num_tokens)
        weighed = sum(
            blocks_for_tokens(group.representative, num_tokens, self.shape) * group.bytes_per_block()
            for group in self.groups
        )
        return ceil_div(weighed, self.groups[0].bytes_per_block())
