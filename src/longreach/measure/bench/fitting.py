"""Whether requests fit the longest that the server takes: refused, or left out, before any text is built. Pure."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from longreach.errors import UsageError
from longreach.measure.workload.outlines import RequestOutline, Room, outline_conversation, outline_synthetic
from longreach.measure.workload.wishes import ConversationSource, SyntheticSource, TextSource, TraceSource, WorkloadWish

_NO_ROOM = Room(0, 0, 0)


class Lengths(Protocol):
    """A request, or its outline."""

    @property
    def prompt_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...


def fit_wish(wish: WorkloadWish, planned: int | None, told: int | None = None) -> WorkloadWish:
    """The wish for requests of at most so many tokens: traces and whole files leave out what is longer, and say so. Prompts
    whose length was asked for are refused where a plan knows the server (UsageError), else noted and sent: what a server
    tells of itself need not hold behind a router, and its refusal is worth reading. Two Nones: nobody tells.
    """
    source, longest = wish.source, told or planned
    if longest is None:
        return wish
    if isinstance(source, TraceSource | TextSource) and leaves_out(wish):
        limit = longest if source.max_request_tokens is None else source.max_request_tokens
        return replace(wish, source=replace(source, max_request_tokens=limit))
    assert not isinstance(source, TraceSource)
    lengths = _lengths(source, wish.seed)
    if planned is not None:
        require_fit(lengths, longest, source)
        return wish
    most = max(each.prompt_tokens + each.output_tokens for each in lengths)
    note = f"the longest request has {most:,} tokens, and the server names {longest:,} as the most it takes"
    return wish if most <= longest else replace(wish, notes=(*wish.notes, note))


def leaves_out(wish: WorkloadWish) -> bool:
    """Its lengths are given, not chosen: what does not fit is left out."""
    source = wish.source
    return isinstance(source, TraceSource) or (isinstance(source, TextSource) and source.input_tokens is None)


def _lengths(source: SyntheticSource | ConversationSource | TextSource, seed: str) -> Iterable[Lengths]:
    match source:
        case SyntheticSource():
            return outline_synthetic(source, seed, _NO_ROOM).requests
        case ConversationSource():
            return outline_conversation(source, _NO_ROOM).requests
        case TextSource():
            return (RequestOutline((), source.input_tokens or 0, source.output_tokens),)


def require_fit(
    requests: Iterable[Lengths], longest: int, source: SyntheticSource | ConversationSource | TextSource | None = None
) -> None:
    """UsageError when one is longer than `longest`; the advice depends on the source, None for a workload file."""
    request = max(requests, key=lambda each: each.prompt_tokens + each.output_tokens)
    prompt, output = request.prompt_tokens, request.output_tokens
    if prompt + output > longest:
        raise UsageError(
            f"a prompt of {prompt:,} tokens and an answer of {output:,} do not fit the server",
            f"together they are {prompt + output:,}, and its longest request is {longest:,} (max-model-len)",
            _advise(source, longest - output, longest),
        )


def _advise(source: SyntheticSource | ConversationSource | TextSource | None, room: int, longest: int) -> str:
    """What fits, where `room` tokens are left for the prompt."""
    if source is None:
        return "a workload of shorter prompts, or a server with a longer --max-model-len"
    if room < 1:
        return f"--output-tokens {max(1, longest // 4)}"
    if isinstance(source, ConversationSource):
        turns = 1 + (room - source.first_tokens) // source.turn_tokens
        least = room - (source.turns - 1) * source.turn_tokens
        return f"--turns {turns}" if turns > 0 else f"--input-tokens {least if least > 0 else room}"
    spread = source.input_spread if isinstance(source, SyntheticSource) else 0.0
    return f"--input-tokens {int(room / (1 + spread))}"
