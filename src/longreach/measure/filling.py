"""Text grown to an exact number of tokens: by paragraphs or a passage of the user's, then sentences, then single words.

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
_SHORT_BY = 0.985  # share of the missing tokens that long pieces are to bring; the rest comes by smaller ones
_LEFT_TO_SENTENCES = 60
_MOST_AT_ONCE = 50_000  # tokens; tokenizers take twice as long over a text of megabytes as over its parts
_MAX_ROUNDS = 120
_ROUNDS_BEFORE_A_STEP_BACK = 8
_NUM_FILLERS = 24
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
class Passage:
    """Text of the user's that a draft grows by, from `position` on."""

    text: str
    chars_per_token: float  # as found so far
    position: int = 0

    @property
    def is_used_up(self) -> bool:
        """Nothing is left of it."""
        return self.position >= len(self.text)

    def cut(self, num_chars: int) -> str:
        """The next piece, no longer than that, up to the end of a word where there is one."""
        piece = self.text[self.position : self.position + num_chars]
        if self.position + len(piece) < len(self.text):
            end = max(piece.rfind(" "), piece.rfind("\n"))
            piece = piece[:end] if end > 0 else piece
        return piece


@dataclass(slots=True)
class Draft:
    """A text in the making: `text` grows until `missing` is 0. `closing` ends it; `after` only follows it when counted."""

    text: str
    closing: str
    missing: int  # tokens; negative: too long
    rng: Random
    after: str = ""
    passage: Passage | None = None
    piece: str = ""  # proposed next
    is_filler: bool = False  # the piece
    counted: int | None = None  # tokens of the window without a piece, while they are known
    num_failed: int = 0
    excess: int = 0  # tokens by which fillers were found to cost more than their words: a full stop lost its line end
    mark: tuple[str, int] | None = None  # text and what was missing before the first small piece

    @property
    def whole(self) -> str:
        """The text as it would be now."""
        return self.text + self.closing

    def window(self, piece: str = "") -> str:
        """The last line that holds anything, with `piece` and what follows: line ends join the full stop before them."""
        return self.text[self._window_start() :] + piece + self.closing + self.after

    def _window_start(self) -> int:
        return self.text.rfind("\n", 0, -1) + 1

    def judge(self, tokens: int) -> None:
        """Keep the proposed piece, whose window has so many tokens, when it is not too long."""
        assert self.counted is not None
        gained = tokens - self.counted
        if 0 < gained <= self.missing:
            start = self._window_start()
            self._take(gained)
            self.counted = tokens if self._window_start() == start else None
            return
        self.num_failed += 1
        if self.is_filler:
            self.excess += gained - self.missing
        if self.mark is not None and self.num_failed >= _ROUNDS_BEFORE_A_STEP_BACK:
            (self.text, self.missing), self.num_failed, self.counted = self.mark, 0, None

    def _take(self, gained: int) -> None:
        self.text, self.missing, self.num_failed = self.text + self.piece, self.missing - gained, 0
        if self.passage is not None and not self.is_filler:
            self.passage.position += len(self.piece)
            self.passage.chars_per_token = max(0.2, len(self.piece) / gained)


async def fill(
    drafts: Sequence[Draft], tokenizer: Tokenizer, pace: Pace, on_gain: Callable[[int], None] | None = None
) -> None:
    """Grow every draft until nothing is missing. One that cannot be made exact is left with what is missing."""
    growing = [draft for draft in drafts if draft.missing > 0]
    for _ in range(_MAX_ROUNDS):
        if not growing:
            return
        before = sum(draft.missing for draft in growing)
        for draft in growing:
            _propose(draft, pace)
        uncounted = [draft for draft in growing if draft.counted is None]
        windows = [draft.window(draft.piece) for draft in growing] + [draft.window() for draft in uncounted]
        counts = await tokenizer.count_many(windows)
        for draft, count in zip(uncounted, counts[len(growing) :], strict=True):
            draft.counted = count
        for draft, count in zip(growing, counts, strict=False):
            draft.judge(count)
        if on_gain is not None:
            on_gain(before - sum(draft.missing for draft in growing))
        growing = [draft for draft in growing if draft.missing > 0 and not _has_run_dry(draft)]


def _has_run_dry(draft: Draft) -> bool:
    """Its passage is too short, and words drawn at random are no substitute for so much."""
    return draft.passage is not None and draft.passage.is_used_up and draft.missing > _LEFT_TO_SENTENCES


def _propose(draft: Draft, pace: Pace) -> None:
    """Choose what to add next: about all of what is missing, but rather less."""
    caution = 0.8**draft.num_failed
    draft.is_filler = False
    aim = min(draft.missing * _SHORT_BY * caution - _LEFT_TO_SENTENCES, _MOST_AT_ONCE)
    if draft.passage is not None:
        draft.piece = _cut_passage(draft, draft.passage, caution)
    elif aim > _LEFT_TO_SENTENCES:
        draft.piece = _write_paragraphs(draft, aim * pace.chars_per_token)
    else:
        draft.piece = _write_small(draft, pace, caution)
    if not draft.piece:
        draft.is_filler = True
        draft.piece = _write_fillers(draft, pace)


def _cut_passage(draft: Draft, passage: Passage, caution: float) -> str:
    """The next piece of the user's text; nothing when only a few words are missing."""
    if draft.missing > 2 * _LEFT_TO_SENTENCES:
        aim = min(draft.missing * _SHORT_BY * caution - _LEFT_TO_SENTENCES, _MOST_AT_ONCE)
    else:
        aim = draft.missing * 0.9 * caution - 4
        draft.mark = draft.mark or (draft.text, draft.missing)
    return passage.cut(int(aim * passage.chars_per_token)) if aim > 8 else ""


def _write_paragraphs(draft: Draft, num_chars: float) -> str:
    paragraphs: list[str] = []
    size = 0.0
    while size < num_chars:
        paragraphs.append(write_paragraph(draft.rng))
        size += len(paragraphs[-1]) + 1
    # The last one is too long by half a paragraph on average: cut it at a sentence.
    kept = paragraphs[-1][: len(paragraphs[-1]) - int(size - num_chars)].rpartition(". ")[0]
    paragraphs[-1:] = [f"{kept}."] if kept else []
    return _joint(draft.text, "\n") + ("\n".join(paragraphs) or write_sentence(draft.rng))


def _write_small(draft: Draft, pace: Pace, caution: float) -> str:
    """Some sentences; nothing when less than one and a half are missing."""
    draft.mark = draft.mark or (draft.text, draft.missing)
    num_sentences = int(0.75 * caution * draft.missing / pace.tokens_per_sentence)
    sentences = " ".join(write_sentence(draft.rng) for _ in range(num_sentences))
    return _joint(draft.text, " ") + sentences if sentences else ""


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
