"""Text grown to an exact number of tokens: by paragraphs, then sentences, then single words.

Each addition is counted in its own window, from the beginning of the line that it continues to the end of the text: all
that it can touch as long as no token reaches across a line end, and quick to count however long the text is. Many
texts grow together, so that every round is one batch for the tokenizer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random

from longreach.measure.prose import write_paragraph, write_paragraphs, write_sentence
from longreach.measure.tokenizer import Tokenizer
from longreach.measure.words import NOUNS

_SAMPLE_PARAGRAPHS = 50
_SHORT_BY = 0.985  # share of the missing tokens that paragraphs are to bring; the rest comes by smaller pieces
_PARAGRAPH_TOKENS_LEFT = 60
_MAX_ROUNDS = 80
_ROUNDS_BEFORE_A_STEP_BACK = 8
_NUM_FILLERS = 64
_SMALLEST = (" a", " I", " to", ",", ";", "-", "!", "a", "i", "o")  # for the last token, where no word is short enough


@dataclass(frozen=True, slots=True)
class Pace:
    """What text costs with one tokenizer: near enough to aim by; every text is counted."""

    chars_per_token: float
    tokens_per_sentence: float
    fillers: Mapping[str, int]  # words and signs to close a small gap with, and the tokens of each


async def learn_pace(tokenizer: Tokenizer) -> Pace:
    """Counted on a sample."""
    rng = Random("pace")  # noqa: S311 - text, not secrets
    sample = "\n".join(islice(write_paragraphs("pace"), _SAMPLE_PARAGRAPHS))
    sentences = " ".join(write_sentence(rng) for _ in range(40))
    words = (*(f" {noun}" for noun in NOUNS[:: len(NOUNS) // _NUM_FILLERS]), *_SMALLEST)
    stem = "They saw the old castle"
    counts = await tokenizer.count_many([sample, sentences, stem, *(stem + word for word in words)])
    costs = (count - counts[2] for count in counts[3:])
    fillers = {word: cost for word, cost in zip(words, costs, strict=True) if cost > 0}
    return Pace(len(sample) / counts[0], counts[1] / 40, fillers)


@dataclass(slots=True)
class Draft:
    """A text in the making: `text` grows until `missing` is 0. `closing` ends it; `after` only follows it when counted."""

    text: str
    closing: str
    missing: int  # tokens; negative: too long
    rng: Random
    after: str = ""
    piece: str = ""
    num_failed: int = 0
    excess: int = 0  # tokens by which fillers were found to cost more than their words: a full stop lost its line end
    mark: tuple[str, int] | None = None  # text and what was missing before the first small piece
    is_filler: bool = False  # the proposed piece

    @property
    def whole(self) -> str:
        """The text as it would be now."""
        return self.text + self.closing

    def window(self, piece: str = "") -> str:
        """The last line with `piece` and what follows."""
        return self.text[self.text.rfind("\n") + 1 :] + piece + self.closing + self.after

    def take(self, gained: int) -> None:
        """Keep the proposed piece when it is not too long; after many that were, go back to before the first small one."""
        if 0 < gained <= self.missing:
            self.text, self.missing, self.num_failed = self.text + self.piece, self.missing - gained, 0
            return
        self.num_failed += 1
        if self.is_filler:
            self.excess += gained - self.missing
        if self.mark is not None and self.num_failed >= _ROUNDS_BEFORE_A_STEP_BACK:
            (self.text, self.missing), self.num_failed = self.mark, 0


async def fill(
    drafts: Sequence[Draft], tokenizer: Tokenizer, pace: Pace, on_gain: Callable[[int], None] | None = None
) -> None:
    """Grow every draft until nothing is missing. One that cannot be made exact is left with what is missing."""
    growing = [draft for draft in drafts if draft.missing > 0]
    for _ in range(_MAX_ROUNDS):
        if not growing:
            return
        for draft in growing:
            draft.piece = _propose(draft, pace)
        windows = [window for draft in growing for window in (draft.window(), draft.window(draft.piece))]
        counts = await tokenizer.count_many(windows)
        before = sum(draft.missing for draft in growing)
        for draft, had, has in zip(growing, counts[::2], counts[1::2], strict=True):
            draft.take(has - had)
        if on_gain is not None:
            on_gain(before - sum(draft.missing for draft in growing))
        growing = [draft for draft in growing if draft.missing > 0]


def _propose(draft: Draft, pace: Pace) -> str:
    """What to add next: about all of what is missing, but rather less."""
    caution = 0.8**draft.num_failed
    draft.is_filler = False
    aim = draft.missing * _SHORT_BY * caution - _PARAGRAPH_TOKENS_LEFT
    if aim > _PARAGRAPH_TOKENS_LEFT:
        return _write_paragraphs(draft, aim * pace.chars_per_token)
    if draft.mark is None:
        draft.mark = (draft.text, draft.missing)
    num_sentences = int(0.75 * caution * draft.missing / pace.tokens_per_sentence)
    if num_sentences > 0:
        return _joint(draft.text, " ") + " ".join(write_sentence(draft.rng) for _ in range(num_sentences))
    draft.is_filler = True
    return _write_fillers(draft, pace)


def _write_paragraphs(draft: Draft, num_chars: float) -> str:
    paragraphs: list[str] = []
    size = 0.0
    while size < num_chars:
        paragraphs.append(write_paragraph(draft.rng))
        size += len(paragraphs[-1]) + 1
    # The last one is too long by half a paragraph on average: cut it at a sentence.
    excess = int(size - num_chars)
    kept = paragraphs[-1][: len(paragraphs[-1]) - excess].rpartition(". ")[0]
    paragraphs[-1:] = [f"{kept}."] if kept else []
    if not paragraphs:
        paragraphs = [write_sentence(draft.rng)]
    return _joint(draft.text, "\n") + "\n".join(paragraphs)


def _joint(text: str, separator: str) -> str:
    """Nothing after a line end or at the very beginning; only a space after opening words that are no whole line."""
    if not text or text.endswith("\n"):
        return ""
    return separator if text.endswith((".", "!", "?")) else " "


def _write_fillers(draft: Draft, pace: Pace) -> str:
    """Random words that should cost exactly what is missing."""
    missing, piece = max(1, draft.missing - draft.excess), ""
    words = [(word, cost) for word, cost in pace.fillers.items() if word[0] == " "]
    while missing > 0:
        fitting = [(word, cost) for word, cost in words if cost <= missing]
        if not fitting:
            fitting = [(word, cost) for word, cost in pace.fillers.items() if cost <= missing] or [(" a", missing)]
        word, cost = draft.rng.choice(fitting)
        piece, missing = piece + word, missing - cost
    return piece
