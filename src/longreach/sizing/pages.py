"""One layer's cache on one GPU: what vLLM calls a KV cache spec."""

from dataclasses import dataclass
from typing import Literal

from longreach.units import ceil_div

KvKind = Literal["full_attention", "mla", "sliding_window", "chunked_local", "recurrent", "cross_attention"]


@dataclass(frozen=True, slots=True)
class LayerCache:
    """How one layer stores its tokens or states. Equal values share a block table; `shape` keeps different layers apart."""

    kind: KvKind
    block_size: int  # tokens
    token_bytes: int = 0  # one stored vector: of one token, or of `tokens_per_state`
    state_bytes: int = 0  # recurrent: one state, whatever the block size
    bound_tokens: int | None = None  # sliding window, attention chunk or encoder length
    states_per_request: int | None = None  # recurrent
    is_state_per_block: bool = False  # recurrent: one state more for every block of tokens
    padded_page_bytes: int | None = None
    tokens_per_state: int = 1  # compressed caches store one vector for several tokens
    shape: tuple[object, ...] = ()

    @property
    def unpadded_page_bytes(self) -> int:
        """The stored vectors of one block, or the state."""
        if self.kind == "recurrent":
            return self.state_bytes
        return max(1, self.block_size // self.tokens_per_state) * self.token_bytes

    @property
    def page_size_bytes(self) -> int:
        """One block in this layer, padding included."""
        return self.unpadded_page_bytes if self.padded_page_bytes is None else self.padded_page_bytes

    @property
    def is_full_attention(self) -> bool:
        """Keeps every token: full attention, latent attention and its indexer are one family."""
        return self.kind in ("full_attention", "mla")


@dataclass(frozen=True, slots=True)
class RequestShape:
    """What decides how many blocks one request of a given length takes."""

    context_parallel_size: int  # GPUs among which the tokens of a request are spread
    in_flight_tokens: int  # scheduled but not settled: their blocks are freed a step later
    lookahead_tokens: int  # kept below a sliding window for draft modules that read ahead


def blocks_for_tokens(cache: LayerCache, num_tokens: int, shape: RequestShape) -> int:
    """Blocks of this layer's block table that one request of `num_tokens` holds at most.

    Full: ceil(ceil(L / CP) / B). Window W: ceil(min(W - 1 + lookahead + in flight, L) / B) + 1, since a window rarely
    starts at a block's edge. Chunk C: ceil(min(C + in flight, L) / B). Recurrent: a fixed number of states, or one a block.
    """
    match cache.kind:
        case "full_attention" | "mla":
            return ceil_div(ceil_div(num_tokens, shape.context_parallel_size), cache.block_size)
        case "sliding_window":
            held = _bound(cache) - 1 + shape.lookahead_tokens + shape.in_flight_tokens
            return ceil_div(min(held, num_tokens), cache.block_size) + 1
        case "chunked_local":
            return ceil_div(min(_bound(cache) + shape.in_flight_tokens, num_tokens), cache.block_size)
        case "cross_attention":
            return ceil_div(_bound(cache), cache.block_size)
        case "recurrent":
            assert cache.states_per_request is not None
            by_length = ceil_div(num_tokens, cache.block_size) if cache.is_state_per_block else 0
            return by_length + cache.states_per_request


def _bound(cache: LayerCache) -> int:
    assert cache.bound_tokens is not None
    return cache.bound_tokens
