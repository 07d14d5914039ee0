"""Which lengths a workload has and what its requests share, before there is any text. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from random import Random

from longreach.errors import UsageError
from longreach.measure.workload.wishes import ConversationSource, SyntheticSource
from longreach.units import format_count


@dataclass(frozen=True, slots=True)
class RequestOutline:
    """One request: its segments by name, the rest of `prompt_tokens` being the template's and its own tail's."""

    segments: tuple[str, ...]
    prompt_tokens: int
    output_tokens: int
    session: int | None = None
    arrival_s: float | None = None
    excerpt: "Excerpt | None" = None  # of the user's text, that the tail is made of


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The user's text from `start` on; how far is known only when it is counted."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Outline:
    """A workload without its text. `segments` gives the tokens of each."""

    source: str
    segments: Mapping[str, int]
    requests: tuple[RequestOutline, ...]
    notes: tuple[str, ...] = ()

    def count_tail(self, request: RequestOutline, template_tokens: int) -> int:
        """What its segments and the template leave of a prompt."""
        return request.prompt_tokens - template_tokens - sum(self.segments[name] for name in request.segments)

    def count_written(self, template_tokens: int) -> int:
        """Tokens of all text, what is shared counted once."""
        tails = sum(self.count_tail(request, template_tokens) for request in self.requests)
        return sum(self.segments.values()) + tails


@dataclass(frozen=True, slots=True)
class Room:
    """What must be kept free in every prompt, in tokens."""

    template_tokens: int
    tail_tokens: int  # its own first word and a last line
    least_tokens: int  # its own first word alone: for prompts too short for a last line

    @property
    def total(self) -> int:
        """What an ordinary prompt needs."""
        return self.template_tokens + self.tail_tokens


def outline_synthetic(source: SyntheticSource, seed: str, room: Room) -> Outline:
    """Prompts with a shared prefix or none; with `rounds`, what every round has again is a segment too."""
    _require_positive(source, ("num_requests", "input_tokens", "output_tokens", "num_prefixes", "rounds"))
    if not 0 <= source.input_spread < 1:
        raise UsageError(f"input spread {source.input_spread} is no share", "it must be from 0 to below 1", "0.2")
    rng = Random(f"lengths {seed}")  # noqa: S311 - lengths, not secrets
    spread = int(source.input_tokens * source.input_spread)
    lengths = [source.input_tokens + rng.randint(-spread, spread) for _ in range(source.num_requests)]
    shortest = min(lengths)
    if shortest < source.shared_prefix_tokens + room.template_tokens + room.least_tokens:
        raise _too_short_to_generate(source, shortest, room)
    if 0 < source.shared_prefix_tokens < room.least_tokens:
        raise UsageError(
            f"a shared prefix of {format_count(source.shared_prefix_tokens, 'token')} is too short",
            f"its first word and its line end take {room.least_tokens}",
            f"--shared-prefix-tokens {2 * room.least_tokens}, or leave it out",
        )
    segments = {f"prefix {group}": source.shared_prefix_tokens for group in range(source.num_prefixes)}
    prompts: list[RequestOutline] = []
    for index, length in enumerate(lengths):
        names = (f"prefix {index % source.num_prefixes}",) if source.shared_prefix_tokens else ()
        body = length - source.shared_prefix_tokens - room.total
        if source.rounds > 1 and body >= room.tail_tokens:
            segments[f"body {index}"] = body
            names = (*names, f"body {index}")
        prompts.append(RequestOutline(names, length, source.output_tokens))
    used = {name for prompt in prompts for name in prompt.segments}
    return Outline(
        source=_describe_synthetic(source),
        segments={name: tokens for name, tokens in segments.items() if name in used},
        requests=tuple(prompts) * source.rounds,
        notes=_note_unkept(source, sum(f"body {index}" not in segments for index in range(len(prompts)))),
    )


def _note_unkept(source: SyntheticSource, num_short: int) -> tuple[str, ...]:
    if source.rounds == 1 or not num_short:
        return ()
    return (
        f"{format_count(num_short, 'prompt')} of each round: too short to keep anything for the next, new each time",
    )


def _describe_synthetic(source: SyntheticSource) -> str:
    spread = f" (+-{source.input_spread:.0%})" if source.input_spread else ""
    text = f"{source.num_requests} generated prompts of {source.input_tokens:,} tokens{spread}"
    if source.shared_prefix_tokens:
        groups = f" in {source.num_prefixes} groups" if source.num_prefixes > 1 else ""
        text += f", {source.shared_prefix_tokens:,} of them shared{groups}"
    return text + (f", {source.rounds} rounds" if source.rounds > 1 else "")


def outline_conversation(source: ConversationSource, room: Room) -> Outline:
    """First turns of all sessions, then their second turns, and so on."""
    _require_positive(source, ("num_sessions", "turns", "first_tokens", "turn_tokens", "output_tokens"))
    first = source.first_tokens - room.total
    if first < room.tail_tokens:
        raise too_short(source.first_tokens, room, room.tail_tokens)
    segments = {
        f"session {session} turn {turn}": source.turn_tokens if turn else first
        for session in range(source.num_sessions)
        for turn in range(source.turns)
    }
    requests = tuple(
        RequestOutline(
            segments=tuple(f"session {session} turn {past}" for past in range(turn + 1)),
            prompt_tokens=source.first_tokens + turn * source.turn_tokens,
            output_tokens=source.output_tokens,
            session=session,
        )
        for turn in range(source.turns)
        for session in range(source.num_sessions)
    )
    return Outline(
        f"{source.num_sessions} conversations of {source.turns} turns, from {source.first_tokens:,} tokens, "
        f"{source.turn_tokens:,} more each turn",
        segments,
        requests,
    )


def _require_positive(source: SyntheticSource | ConversationSource, names: tuple[str, ...]) -> None:
    for name in names:
        if getattr(source, name) < 1:
            words = name.replace("_", " ")
            raise UsageError(f"{words} {getattr(source, name)} is too small", "it must be 1 or more", f"{words}: 1")


def too_short(num_tokens: int, room: Room, kept_tokens: int = 0) -> UsageError:
    """The error for a prompt that cannot hold its last line, and what the next turn keeps of it."""
    kept = f", what the next turn keeps {kept_tokens}" if kept_tokens else ""
    return UsageError(
        f"a prompt of {format_count(num_tokens, 'token')} is too short",
        f"its own words and its last line take {room.tail_tokens}{kept}, the chat template {room.template_tokens}",
        f"--input-tokens {room.total + kept_tokens}",
    )


def _too_short_to_generate(source: SyntheticSource, shortest: int, room: Room) -> UsageError:
    """The error for a prompt without room for a word of its own."""
    needed = room.template_tokens + room.least_tokens + source.shared_prefix_tokens
    shared = f", {source.shared_prefix_tokens:,} are shared" if source.shared_prefix_tokens else ""
    return UsageError(
        f"a prompt of {format_count(shortest, 'token')} is too short",
        f"its own first word takes {room.least_tokens}{shared}, the chat template takes {room.template_tokens}",
        f"--input-tokens {ceil(needed / (1 - source.input_spread))}",
    )


def count_reusable(outline: Outline) -> tuple[int, ...]:
    """For each request the tokens of its leading segments that an earlier request brought in the same order."""
    chains: dict[tuple[int, str], int] = {}
    reusable: list[int] = []
    for request in outline.requests:
        chain, tokens, is_known = 0, 0, True
        for name in request.segments:
            known = chains.get((chain, name))
            is_known = is_known and known is not None
            tokens += outline.segments[name] if is_known else 0
            chain = known if known is not None else chains.setdefault((chain, name), len(chains) + 1)
        reusable.append(tokens)
    return tuple(reusable)
