"""The last part of every prompt: its own words, exactly as many as its segments leave, and the proof that they are.

Segments were counted alone, between two plain lines. That their counts add up is checked, not assumed. Every prompt is counted
once more as a whole; only where that is millions of tokens it is a sample, the longest prompt first, and then every joint of two
segments is counted too, in a window of two lines. When any of them does not add up, all prompts are counted after all.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from longreach.measure.tokenizer import Tokenizer
from longreach.measure.words import ADJECTIVES, NAMES, NOUNS
from longreach.measure.workload.orders import (
    LINE_AFTER,
    LINE_BEFORE,
    TextOrder,
    UniqueWords,
    Writer,
    batch_up,
    cannot_be_exact,
)
from longreach.measure.workload.outlines import Outline, Room

_NUM_SAMPLED, _TOKENS_SAMPLED = 16, 1_000_000  # at least
_CHEAP_TOKENS = 2_000_000  # in all: a second of counting or two
_MAX_REPAIRS = 8
_MARGIN = 6  # tokens by which a last line may cost more than those that were measured
_NUM_MEASURED = 24


def write_question(rng: Random) -> str:
    """The last line of a prompt. Hardly two prompts share six words of it."""
    return f"Continue with the {rng.choice(ADJECTIVES)} {rng.choice(NOUNS)} of {rng.choice(NAMES)}."


async def measure_room(tokenizer: Tokenizer, template_tokens: int, words: UniqueWords) -> Room:
    """What has to stay free in a prompt for its own words."""
    rng = Random("room")  # noqa: S311 - text, not secrets
    openings = [words.give(number) for number in range(_NUM_MEASURED)]
    counts = await tokenizer.count_many([*openings, *(f"{word}\n{write_question(rng)}" for word in openings)])
    return Room(template_tokens, max(counts[_NUM_MEASURED:]) + _MARGIN, max(counts[:_NUM_MEASURED]) + 2)


@dataclass(frozen=True, slots=True)
class _Tail:
    """A text, and by how much the whole prompt counts more than its parts."""

    text: str
    excess: int


@dataclass(frozen=True, slots=True)
class TailWriter:
    """Writes the tails of all requests of an outline whose segments are there."""

    outline: Outline
    segments: Mapping[str, str]
    room: Room
    seed: str
    words: UniqueWords
    writer: Writer

    async def write(self) -> list[str]:
        """One tail for each request. UsageError when one cannot be made exact."""
        tails = await self._write_exactly(self._sample(), 0)
        excesses = Counter(tail.excess for tail in tails.values())
        excess = excesses.most_common(1)[0][0]
        rest = [index for index in range(len(self.outline.requests)) if index not in tails]
        if self._total() > _CHEAP_TOKENS and len(excesses) == 1 and await self._joints_hold():
            tails |= await self._write(rest, [excess] * len(rest), 0)
        else:
            tails |= await self._write_exactly(rest, excess)
        return [tails[index].text for index in range(len(tails))]

    def _total(self) -> int:
        return sum(request.prompt_tokens for request in self.outline.requests)

    def _sample(self) -> list[int]:
        """The longest request, and others from the first to the last."""
        requests = self.outline.requests
        longest = max(range(len(requests)), key=lambda index: requests[index].prompt_tokens)
        num_wanted = max(_NUM_SAMPLED, len(requests) * _TOKENS_SAMPLED // self._total())
        return list(dict.fromkeys([longest, *range(0, len(requests), max(1, len(requests) // num_wanted))]))

    async def _write_exactly(self, indices: Sequence[int], excess: int) -> dict[int, _Tail]:
        """Tails with which the whole text, counted as one, is as long as it should be."""
        tails: dict[int, _Tail] = {}
        wrong, excesses = list(indices), [excess] * len(indices)
        for attempt in range(_MAX_REPAIRS):
            if not wrong:
                return tails
            tails |= await self._write(wrong, excesses, attempt)
            errors = dict(zip(wrong, await self._count_errors(wrong, tails), strict=True))
            wrong = [index for index in wrong if errors[index]]
            excesses = [tails[index].excess + errors[index] for index in wrong]
        raise cannot_be_exact(self.outline.requests[wrong[0]].prompt_tokens)

    async def _write(self, indices: Sequence[int], excesses: Sequence[int], attempt: int) -> dict[int, _Tail]:
        orders = [self._order(index, excess, attempt) for index, excess in zip(indices, excesses, strict=True)]
        texts = await self.writer.write(orders)
        return {index: _Tail(text, excess) for index, text, excess in zip(indices, texts, excesses, strict=True)}

    def _order(self, index: int, excess: int, attempt: int) -> TextOrder:
        request = self.outline.requests[index]
        num_tokens = self.outline.count_tail(request, self.room.template_tokens) - excess
        seed = f"tail {index} {attempt} {self.seed}"
        question = write_question(Random(seed))  # noqa: S311 - text, not secrets
        return TextOrder(
            num_tokens=num_tokens,
            seed=seed,
            before=_last_line(self.segments[request.segments[-1]]) if request.segments else "",
            opening=self.words.give(index) + ("\n" if request.excerpt else ""),
            closing=f"\n{question}" if num_tokens >= self.room.tail_tokens else "",
            excerpt=request.excerpt,
        )

    async def _count_errors(self, indices: Sequence[int], tails: Mapping[int, _Tail]) -> list[int]:
        """By how much each whole text is too long."""
        errors: list[int] = []
        for batch in batch_up(indices, lambda index: self.outline.requests[index].prompt_tokens, 5_000_000):
            counts = await self.writer.tokenizer.count_many([self._render(index, tails[index]) for index in batch])
            wanted = (self.outline.requests[index].prompt_tokens - self.room.template_tokens for index in batch)
            errors += [count - tokens for count, tokens in zip(counts, wanted, strict=True)]
        return errors

    def _render(self, index: int, tail: _Tail) -> str:
        return "".join(self.segments[name] for name in self.outline.requests[index].segments) + tail.text

    async def _joints_hold(self) -> bool:
        """Whether every segment brings after its neighbour what it brought alone; at the beginning all may differ alike."""
        chains = {request.segments for request in self.outline.requests if request.segments}
        pairs = {pair for chain in chains for pair in pairwise(chain)}
        joints = [(_last_line(self.segments[a]), _first_line(self.segments[b])) for a, b in sorted(pairs)]
        firsts = [_first_line(self.segments[name]) for name in sorted({chain[0] for chain in chains})]
        at_joints = await self._compare(joints)
        at_beginnings = await self._compare([("", line) for line in firsts])
        return not any(at_joints) and len(set(at_beginnings)) <= 1

    async def _compare(self, joints: Sequence[tuple[str, str]]) -> list[int]:
        """Tokens that a line brings more after the line that precedes it than where its segment was counted."""

        async def count_gain(befores: Iterable[str]) -> list[int]:
            frames = [(before, line) for before, (_, line) in zip(befores, joints, strict=True)]
            with_line = [f"{before}{line}{LINE_AFTER}" for before, line in frames]
            without = [f"{before}{LINE_AFTER}" for before, _ in frames]
            counts = await self.writer.tokenizer.count_many([*with_line, *without])
            return [has - had for has, had in zip(counts[: len(joints)], counts[len(joints) :], strict=True)]

        in_place, alone = await count_gain(a for a, _ in joints), await count_gain(LINE_BEFORE for _ in joints)
        return [here - there for here, there in zip(in_place, alone, strict=True)]


def _first_line(text: str) -> str:
    return text[: text.index("\n") + 1]


def _last_line(text: str) -> str:
    return text[text.rfind("\n", 0, -1) + 1 :]
