"""From a wish to a workload: every segment made once, every prompt exact."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from longreach.errors import UsageError
from longreach.measure.filling import Draft, Pace, fill, learn_pace
from longreach.measure.tokenizer import Tokenizer
from longreach.measure.words import ADJECTIVES, NAMES, NOUNS
from longreach.measure.workload.counting import Counting
from longreach.measure.workload.digest import digest_workload
from longreach.measure.workload.outlines import (
    Outline,
    Room,
    count_reusable,
    outline_conversation,
    outline_synthetic,
)
from longreach.measure.workload.values import Workload, WorkloadRequest
from longreach.measure.workload.wishes import ConversationSource, SyntheticSource, WorkloadWish

OnProgress = Callable[[int, int], None]
"""Tokens written so far, tokens to write."""

# What stands around a segment while it is counted. Alone at the beginning or the end of a text, some tokenizers add a space
# or drop a line end.
_LINE_BEFORE = "Here begins another page.\n"
_LINE_AFTER = "It goes on."
_WORD_STEP, _NUM_WORDS = 0x9E3779, 1 << 24  # an odd step meets every number before one comes twice
_TAIL_SAMPLES = 24
_BATCH_TOKENS = 400_000
_MAX_REPAIRS = 8


def _ignore(_done: int, _total: int) -> None:
    """For callers that do not watch."""


async def build_workload(wish: WorkloadWish, counting: Counting, on_progress: OnProgress = _ignore) -> Workload:
    """The workload of `wish`, with every prompt exactly as long as said. UsageError or InputFileError for what cannot be made."""
    pace = await learn_pace(counting.tokenizer)
    room = Room(counting.template_tokens, await _measure_tail(counting.tokenizer, wish.seed))
    outline = await _outline(wish, room)
    return await _Builder(wish, counting, pace, outline, on_progress).build()


async def _outline(wish: WorkloadWish, room: Room) -> Outline:
    match wish.source:
        case SyntheticSource():
            return outline_synthetic(wish.source, wish.seed, room)
        case ConversationSource():
            return outline_conversation(wish.source, room)
    raise NotImplementedError


def write_question(rng: Random) -> str:
    """The last line of a prompt. No two prompts share six words of it."""
    return f"Continue with the {rng.choice(ADJECTIVES)} {rng.choice(NOUNS)} of {rng.choice(NAMES)}."


async def _measure_tail(tokenizer: Tokenizer, seed: str) -> int:
    """The least tokens that a tail of any request takes."""
    rng = Random(f"tails {seed}")  # noqa: S311 - text, not secrets
    samples = [f"{rng.randrange(_NUM_WORDS):06x}\n{write_question(rng)}" for _ in range(_TAIL_SAMPLES)]
    return max(await tokenizer.count_many(samples)) + 8


@dataclass(frozen=True, slots=True)
class _Order:
    """A text to be made: where it stands and how many tokens it is to bring there."""

    name: str
    num_tokens: int
    before: str  # the line that it follows; empty at the beginning of a prompt
    opening: str
    closing: str
    after: str


class _Builder:
    """A workload under way."""

    def __init__(
        self, wish: WorkloadWish, counting: Counting, pace: Pace, outline: Outline, on_progress: OnProgress
    ) -> None:
        self._wish = wish
        self._counting = counting
        self._tokenizer = counting.tokenizer
        self._pace = pace
        self._outline = outline
        self._on_progress = on_progress
        self._done = 0
        tails = sum(self._tail_tokens(index) for index in range(len(outline.requests)))
        self._total = sum(outline.segments.values()) + tails
        self._first_number = int.from_bytes(hashlib.sha256(f"{wish.seed} {wish.nonce}".encode()).digest()[:3])

    async def build(self) -> Workload:
        """All of it."""
        segments = await self._write_segments()
        tails = await self._write_tails(segments)
        reusable = count_reusable(self._outline)
        requests = tuple(
            WorkloadRequest(
                index=index,
                segments=request.segments,
                tail=tails[index],
                prompt_tokens=request.prompt_tokens,
                output_tokens=request.output_tokens,
                session=request.session,
                arrival_s=request.arrival_s,
                reusable_tokens=reusable[index],
            )
            for index, request in enumerate(self._outline.requests)
        )
        workload = Workload(
            source=self._outline.source,
            seed=self._wish.seed,
            tokenizer=self._tokenizer.source,
            template_tokens=self._counting.template_tokens,
            segments=segments,
            requests=requests,
            notes=self._outline.notes,
        )
        return replace(workload, digest=await asyncio.to_thread(digest_workload, workload))

    def _word(self, number: int) -> str:
        """A word that no other prompt or tail begins with."""
        return f"{(self._first_number + number * _WORD_STEP) % _NUM_WORDS:06x}"

    async def _write_segments(self) -> Mapping[str, str]:
        firsts = {request.segments[0] for request in self._outline.requests if request.segments}
        offset = len(self._outline.requests)
        orders = [
            _Order(
                name=name,
                num_tokens=tokens,
                before=_LINE_BEFORE,
                opening=self._word(offset + place) if name in firsts else "",
                closing="\n",
                after=_LINE_AFTER,
            )
            for place, (name, tokens) in enumerate(self._outline.segments.items())
        ]
        texts = await self._write(orders)
        return dict(zip(self._outline.segments, texts, strict=True))

    def _tail_tokens(self, index: int) -> int:
        request = self._outline.requests[index]
        shared = sum(self._outline.segments[name] for name in request.segments)
        return request.prompt_tokens - self._counting.template_tokens - shared

    async def _write_tails(self, segments: Mapping[str, str]) -> list[str]:
        """Every request's tail, longer or shorter by what its whole text was found to count otherwise."""
        requests = self._outline.requests
        tails = [""] * len(requests)
        errors = [0] * len(requests)
        wrong: Sequence[int] = range(len(requests))
        for attempt in range(_MAX_REPAIRS):
            orders = [self._order_tail(index, segments, errors[index], attempt) for index in wrong]
            for index, tail in zip(wrong, await self._write(orders), strict=True):
                tails[index] = tail
            counted = await self._tokenizer.count_many([self._text(index, segments) + tails[index] for index in wrong])
            wanted = [requests[index].prompt_tokens - self._counting.template_tokens for index in wrong]
            for index, has, want in zip(wrong, counted, wanted, strict=True):
                errors[index] += has - want
            wrong = [index for index, has, want in zip(wrong, counted, wanted, strict=True) if has != want]
            if not wrong:
                return tails
        raise _inexact(requests[wrong[0]].prompt_tokens)

    def _text(self, index: int, segments: Mapping[str, str]) -> str:
        return "".join(segments[name] for name in self._outline.requests[index].segments)

    def _order_tail(self, index: int, segments: Mapping[str, str], error: int, attempt: int) -> _Order:
        names = self._outline.requests[index].segments
        before = segments[names[-1]].rstrip("\n").rpartition("\n")[2] + "\n" if names else ""
        rng = Random(f"question {self._wish.seed} {index} {attempt}")  # noqa: S311 - text, not secrets
        return _Order(
            name=f"tail {index} {attempt}",
            num_tokens=self._tail_tokens(index) - error,
            before=before,
            opening=self._word(index),
            closing=f"\n{write_question(rng)}",
            after="",
        )

    async def _write(self, orders: Sequence[_Order]) -> list[str]:
        texts: list[str] = []
        for batch in _batches(orders):
            drafts = await self._begin(batch)
            await fill(drafts, self._tokenizer, self._pace, self._advance)
            for order, draft in zip(batch, drafts, strict=True):
                if draft.missing != 0:
                    raise _inexact(order.num_tokens)
                texts.append(draft.whole.removeprefix(order.before))
        return texts

    async def _begin(self, orders: Sequence[_Order]) -> list[Draft]:
        """Drafts that hold their fixed parts only."""
        fixed = [f"{order.before}{order.opening}{order.closing}{order.after}" for order in orders]
        around = [f"{order.before}{order.after}" for order in orders]
        counts = await self._tokenizer.count_many([*fixed, *around])
        return [
            Draft(
                text=order.before + order.opening,
                closing=order.closing,
                missing=order.num_tokens - (has - had),
                rng=Random(f"{order.name} {self._wish.seed}"),  # noqa: S311 - text, not secrets
                after=order.after,
            )
            for order, has, had in zip(orders, counts[: len(orders)], counts[len(orders) :], strict=True)
        ]

    def _advance(self, tokens: int) -> None:
        self._done = min(self._done + tokens, self._total)
        self._on_progress(self._done, self._total)


def _batches(orders: Sequence[_Order]) -> Iterator[list[_Order]]:
    batch: list[_Order] = []
    size = 0
    for order in orders:
        batch.append(order)
        size += order.num_tokens
        if size > _BATCH_TOKENS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _inexact(num_tokens: int) -> UsageError:
    return UsageError(
        f"no text of exactly {num_tokens:,} tokens can be built",
        "the tokenizer counts the same text differently in another place",
        "use another length, or another --seed",
    )
