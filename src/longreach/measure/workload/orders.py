"""Texts to be made, each of exactly so many tokens in its place, written many at a time."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from longreach.errors import LongreachError, UsageError
from longreach.measure.filling import Draft, Pace, Passage, fill
from longreach.measure.tokenizer import Tokenizer
from longreach.measure.workload.outlines import Excerpt
from longreach.units import format_count

# What stands around a segment while it is counted. Alone at the beginning or the end of a text, some tokenizers add a space
# or drop a line end.
LINE_BEFORE = "Here begins another page.\n"
LINE_AFTER = "It goes on."

_BATCH_TOKENS = 400_000
_WORD_STEP, _NUM_WORDS = 0x9E3779, 1 << 24  # an odd step meets every number before one comes twice


@dataclass(frozen=True, slots=True)
class UniqueWords:
    """Words for texts to begin with, no two alike among 16 million; another seed gives others."""

    seed: str

    def give(self, number: int) -> str:
        """Word `number`: six hexadecimal digits."""
        first = int.from_bytes(hashlib.sha256(self.seed.encode()).digest()[:3])
        return f"{(first + number * _WORD_STEP) % _NUM_WORDS:06x}"


@dataclass(frozen=True, slots=True)
class TextOrder:
    """One text. `num_tokens` is what it brings between `before` and `after`, which stand around it when it is counted.

    It begins with `opening` and ends with `closing`; the rest is drawn, seeded with `seed`, or taken from `excerpt`.
    """

    num_tokens: int
    seed: str
    before: str
    opening: str
    closing: str
    after: str = ""
    excerpt: Excerpt | None = None


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes to order with one tokenizer and reports the tokens as they come."""

    tokenizer: Tokenizer
    pace: Pace
    on_gain: Callable[[int], None]

    async def write(self, orders: Iterable[TextOrder]) -> list[str]:
        """The texts, in order. UsageError for one that cannot be made."""
        return [text for batch in batch_up(orders, lambda order: order.num_tokens) for text in await self._write(batch)]

    async def _write(self, orders: Sequence[TextOrder]) -> list[str]:
        drafts = await self._begin(orders)
        await fill(drafts, self.tokenizer, self.pace, self.on_gain)
        for order, draft in zip(orders, drafts, strict=True):
            if draft.missing != 0:
                raise _too_short(order, draft) if order.excerpt is not None else cannot_be_exact(order.num_tokens)
        return [draft.whole.removeprefix(order.before) for order, draft in zip(orders, drafts, strict=True)]

    async def _begin(self, orders: Sequence[TextOrder]) -> list[Draft]:
        """Drafts that hold their fixed parts only."""
        fixed = [f"{order.before}{order.opening}{order.closing}{order.after}" for order in orders]
        around = [f"{order.before}{order.after}" for order in orders]
        counts = await self.tokenizer.count_many([*fixed, *around])
        return [
            Draft(
                text=order.before + order.opening,
                closing=order.closing,
                missing=order.num_tokens - (has - had),
                rng=Random(order.seed),  # noqa: S311 - text, not secrets
                after=order.after,
                passage=self._open(order.excerpt),
            )
            for order, has, had in zip(orders, counts[: len(orders)], counts[len(orders) :], strict=True)
        ]

    def _open(self, excerpt: Excerpt | None) -> Passage | None:
        return None if excerpt is None else Passage(excerpt.text, self.pace.chars_per_token, excerpt.start)


_Item = TypeVar("_Item")


def batch_up(items: Iterable[_Item], size: Callable[[_Item], int], most: int = _BATCH_TOKENS) -> Iterator[list[_Item]]:
    """Runs of items whose sizes come to about `most` tokens: what is worked on at a time."""
    batch: list[_Item] = []
    total = 0
    for item in items:
        batch.append(item)
        total += size(item)
        if total > most:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def _too_short(order: TextOrder, draft: Draft) -> LongreachError:
    """The user's text has fewer tokens where it was cut than it has on average."""
    held = order.num_tokens - draft.missing
    return UsageError(
        f"the text is too short for {order.num_tokens:,} tokens of it in one prompt",
        f"the passage that was cut for it holds {held:,}, and text is never repeated",
        f"--input-tokens {int(held * 0.9)}, or more text",
    )


def cannot_be_exact(num_tokens: int) -> LongreachError:
    """The error for a length that no text was found for."""
    return UsageError(
        f"no text of exactly {format_count(num_tokens, 'token')} can be built",
        "the tokenizer counts the same text differently in another place",
        "use another length, or another --seed",
    )
