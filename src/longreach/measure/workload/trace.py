"""Request traces in the Mooncake format: read strictly, sampled by whole sessions, turned into an outline.

A line has `timestamp` (ms), `input_length`, `output_length` (tokens) and `hash_ids`: one id for each block of 512 input tokens,
the last one partial unless the length is a multiple of 512. An id stands for the whole prefix up to its block, so it has
one predecessor. Other keys are passed over.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from random import Random

import orjson

from longreach.errors import InputFileError, UsageError
from longreach.host.files import read_bytes_up_to
from longreach.measure.workload.outlines import Outline, RequestOutline, Room
from longreach.measure.workload.wishes import TraceSource
from longreach.units import format_count

BLOCK_TOKENS = 512
_UBIQUITOUS = 0.9  # of the requests that are a block or longer
_MAX_BYTES = 8 * 2**30
_MAX_TIMESTAMP_MS = 10**13  # no clock shows more before the year 2286
_FIX = "use a trace in the Mooncake format, one JSON object a line"


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """One line. `blocks` holds the ids of the full blocks only: no cache keeps a partial one."""

    timestamp_ms: float
    input_tokens: int
    output_tokens: int
    blocks: tuple[int, ...]


def read_trace(path: Path) -> tuple[TraceRequest, ...]:
    """Every request, by time. InputFileError names the line that is not as the format wants it."""
    try:
        lines = read_bytes_up_to(path, _MAX_BYTES).splitlines()
    except OSError as error:
        raise InputFileError(f"trace '{path}' cannot be read", error.strerror or str(error), _FIX) from error
    predecessors: dict[int, tuple[int | None, int]] = {}  # of every id: the one before it, and the line that says so
    requests: list[TraceRequest] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                requests.append(_parse_line(line, number, predecessors))
            except _LineError as error:
                raise InputFileError(f"trace '{path}', line {number}: {error.what}", error.why, _FIX) from error
    if not requests:
        raise InputFileError(f"trace '{path}' holds no request", "it is empty", _FIX)
    return tuple(sorted(requests, key=lambda request: request.timestamp_ms))


class _LineError(Exception):
    def __init__(self, what: str, why: str) -> None:
        super().__init__(what)
        self.what, self.why = what, why


def _parse_line(line: bytes, number: int, predecessors: dict[int, tuple[int | None, int]]) -> TraceRequest:
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _LineError("not JSON", str(error)) from error
    if not isinstance(fields, Mapping):
        raise _LineError("not an object", f"it is a {type(fields).__name__}")
    timestamp = fields.get("timestamp")
    if isinstance(timestamp, bool) or not isinstance(timestamp, int | float) or not 0 <= timestamp <= _MAX_TIMESTAMP_MS:
        raise _LineError("no 'timestamp'", f"milliseconds from 0 to 10^13 are expected, not {timestamp!r:.40}")
    input_tokens, output_tokens = _count(fields, "input_length"), _count(fields, "output_length")
    ids = _hash_ids(fields, input_tokens)
    _check_chain(ids, number, predecessors)
    return TraceRequest(timestamp, input_tokens, output_tokens, tuple(ids[: input_tokens // BLOCK_TOKENS]))


def _count(fields: Mapping[str, object], name: str) -> int:
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _LineError(f"no '{name}'", f"a number of tokens from 1 on is expected, not {value!r:.40}")
    return value


def _hash_ids(fields: Mapping[str, object], input_tokens: int) -> list[int]:
    ids = fields.get("hash_ids")
    if not isinstance(ids, list) or not all(type(block) is int for block in ids):
        raise _LineError("no 'hash_ids'", f"a list of whole numbers is expected, not {ids!r:.40}")
    needed = -(-input_tokens // BLOCK_TOKENS)
    if len(ids) != needed:
        why = f"{input_tokens:,} tokens are {needed} blocks of {BLOCK_TOKENS}, the last one partial or full"
        raise _LineError(f"{len(ids)} 'hash_ids' for {input_tokens:,} tokens", why)
    return ids


def _check_chain(ids: Sequence[int], number: int, predecessors: dict[int, tuple[int | None, int]]) -> None:
    previous: int | None = None
    for block in ids:
        known, known_line = predecessors.setdefault(block, (previous, number))
        if known != previous:
            raise _LineError(
                f"hash id {block} follows {'nothing' if previous is None else previous}",
                f"on line {known_line} it follows {'nothing' if known is None else known}; an id stands for its whole prefix",
            )
        previous = block


def link_sessions(requests: Sequence[TraceRequest]) -> tuple[int, ...]:
    """The session of each request, numbered by their first requests: those linked by a full block that they share.

    A block that nine in ten of them have is a system prompt and links nobody.
    """
    uses = Counter(block for request in requests for block in request.blocks)
    links_nobody = _UBIQUITOUS * sum(bool(request.blocks) for request in requests)
    session_of_block: dict[int, int] = {}
    parents: list[int] = []

    def find(session: int) -> int:
        while parents[session] != session:
            parents[session] = session = parents[parents[session]]
        return session

    for place, request in enumerate(requests):
        parents.append(place)
        for block in request.blocks:
            if uses[block] < links_nobody:
                other = find(session_of_block.setdefault(block, place))
                low, high = sorted((other, find(place)))
                parents[high] = low
    numbers: dict[int, int] = {}
    return tuple(numbers.setdefault(find(place), len(numbers)) for place in range(len(requests)))


def outline_trace(source: TraceSource, seed: str, room: Room) -> Outline:
    """The requests of the trace that the source asks for, on its clock."""
    _check_source(source)
    requests, notes = _select(source, read_trace(source.path), seed, room)
    if not requests:
        raise UsageError(
            "no request of the trace is left", "; ".join(notes), "more --sessions, or a trace of other lengths"
        )
    blocks = [_blocks_that_fit(request, room) for request in requests]
    uses = Counter(block for kept in blocks for block in kept)
    given_up = _count_given_up(requests, blocks)
    if given_up:
        notes.append(
            f"{format_count(given_up, 'request')} with {BLOCK_TOKENS} shared tokens less than in the trace, to make room for the "
            "chat template and words of their own"
        )
    runs = [list(_join_blocks(kept, uses)) for kept in blocks]
    began_ms = requests[0].timestamp_ms
    return Outline(
        source=f"trace {source.path.name}, {len(requests):,} requests",
        segments={name: tokens for run in runs for name, tokens in run},
        requests=tuple(
            RequestOutline(
                segments=tuple(name for name, _ in run),
                prompt_tokens=request.input_tokens,
                output_tokens=min(request.output_tokens, source.max_output_tokens or request.output_tokens),
                arrival_s=(request.timestamp_ms - began_ms) / 1000 * source.time_scale,
            )
            for request, run in zip(requests, runs, strict=True)
        ),
        notes=tuple(notes),
    )


def _check_source(source: TraceSource) -> None:
    if not 0 < source.sessions <= 1:
        raise UsageError(f"{source.sessions} of the sessions cannot be kept", "a share is above 0 and at most 1", "1/4")
    if source.time_scale <= 0:
        raise UsageError(f"time scale {source.time_scale} stops the clock", "it must be above 0", "2")
    if source.num_requests is not None and source.num_requests < 1:
        raise UsageError(f"{source.num_requests} requests are none", "it must be 1 or more", "100")


def _select(
    source: TraceSource, requests: Sequence[TraceRequest], seed: str, room: Room
) -> tuple[list[TraceRequest], list[str]]:
    """What is sent of it, and notes on what is not."""
    notes = []
    kept = list(requests)
    if source.sessions < 1:
        kept, note = _sample_sessions(requests, source, seed)
        notes.append(note)
    if source.time_scale != 1:
        notes.append(f"the trace's clock runs {source.time_scale:g} times as long")
    cap = source.max_output_tokens or max(request.output_tokens for request in kept)
    least, longest = room.template_tokens + room.least_tokens, source.max_request_tokens
    long_enough = [request for request in kept if request.input_tokens >= least]
    fitting = [r for r in long_enough if longest is None or r.input_tokens + min(r.output_tokens, cap) <= longest]
    if len(long_enough) < len(kept):
        notes.append(f"left out: {format_count(len(kept) - len(long_enough), 'request')} shorter than {least} tokens")
    if len(fitting) < len(long_enough):
        notes.append(
            f"left out: {format_count(len(long_enough) - len(fitting), 'request')} longer than {longest:,} tokens"
        )
    kept = fitting
    if source.num_requests is not None and source.num_requests < len(kept):
        notes.append(f"only the first {source.num_requests} of {len(kept):,} requests")
        kept = kept[: source.num_requests]
    cut = sum(request.output_tokens > cap for request in kept)
    return kept, [*notes, f"cut to {format_count(cap, 'token')}: {format_count(cut, 'answer')}"] if cut else notes


def _sample_sessions(
    requests: Sequence[TraceRequest], source: TraceSource, seed: str
) -> tuple[list[TraceRequest], str]:
    sessions = link_sessions(requests)
    num_sessions = max(sessions) + 1
    num_kept = max(1, round(num_sessions * source.sessions))
    chosen = set(Random(f"sessions {seed}").sample(range(num_sessions), num_kept))  # noqa: S311 - a sample, no secret
    kept = [request for request, session in zip(requests, sessions, strict=True) if session in chosen]
    note = (
        f"{num_kept:,} of {num_sessions:,} sessions, each of them whole: {len(kept):,} of {len(requests):,} requests; "
        "less traffic than recorded, and hit rates of less traffic"
    )
    return kept, note


def _blocks_that_fit(request: TraceRequest, room: Room) -> tuple[int, ...]:
    """Its full blocks, but for the last when template and own words do not fit into what follows it."""
    num_blocks = len(request.blocks)
    while num_blocks and request.input_tokens - num_blocks * BLOCK_TOKENS < room.total:
        num_blocks -= 1
    return request.blocks[:num_blocks]


def _count_given_up(requests: Iterable[TraceRequest], kept: Iterable[Sequence[int]]) -> int:
    """Requests whose last block, shared in the trace, became words of their own."""
    requests = list(requests)
    uses = Counter(block for request in requests for block in request.blocks)
    return sum(
        len(blocks) < len(request.blocks) and uses[request.blocks[len(blocks)]] > 1
        for request, blocks in zip(requests, kept, strict=True)
    )


def _join_blocks(blocks: Sequence[int], uses: Mapping[int, int]) -> Iterator[tuple[str, int]]:
    """Segments of blocks that the same requests share, with their tokens; what only one request has is its tail's.

    A block's users are among those of the block before it: where the number is the same, so are they.
    """
    for num_users, run in groupby(blocks, key=uses.__getitem__):
        joined = list(run)
        if num_users > 1:
            name = f"block {joined[0]}" if len(joined) == 1 else f"blocks {joined[0]}..{joined[-1]}"
            yield name, len(joined) * BLOCK_TOKENS
