"""Prompts of exactly so many tokens: a salt, text that never loops, needles, a question.

The text is made a little short, counted once as a whole, and then filled up before the question, counting only the last
paragraph. One more count of the whole proves it; only a tokenizer whose tokens cross sentence ends needs another round.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from random import Random

from longreach.errors import UsageError
from longreach.measure.prose import write_paragraphs, write_sentence
from longreach.measure.tokenizer import Tokenizer
from longreach.measure.words import NOUNS, STATIONS

_SAMPLE_CHARS = 20_000
_SHORT_BY = 0.01  # share of the text left to the filling
_MAX_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Needle:
    """A fact to be found again. `depth` is its place in the text, 0 the beginning, 1 the end."""

    station: str
    code: str
    depth: float

    @property
    def sentence(self) -> str:
        """The fact as the text states it."""
        return f"The access code of station {self.station} is {self.code}."


@dataclass(frozen=True, slots=True)
class PromptWish:
    """What to build. `salt` is the very first word: a new one makes the prompt cold, whatever was sent before."""

    num_tokens: int  # of the text itself: a chat template comes on top
    salt: str
    seed: str
    needles: tuple[Needle, ...] = ()
    template_tokens: int = 0  # what comes on top, for advice


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text and its number of tokens by the tokenizer that built it."""

    text: str
    num_tokens: int
    needles: tuple[Needle, ...]


def choose_needles(seed: str, depths: Sequence[float]) -> tuple[Needle, ...]:
    """One needle for each depth, with five-digit codes; at most as many as there are stations."""
    rng = Random(f"needles {seed}")  # noqa: S311 - puzzle pieces, not secrets
    codes = rng.sample(range(10_000, 100_000), len(depths))
    return tuple(
        Needle(station, str(code), depth) for station, code, depth in zip(STATIONS, codes, sorted(depths), strict=False)
    )


def find_needles(answer: str, needles: Sequence[Needle]) -> tuple[Needle, ...]:
    """The needles whose codes the answer holds."""
    return tuple(needle for needle in needles if needle.code in answer)


def render_question(needles: Sequence[Needle]) -> str:
    """The last line of the prompt."""
    if not needles:
        return "Say in one sentence what the text above is about."
    stations = ", ".join(needle.station for needle in needles)
    return f"Which access codes does the text above give for these stations: {stations}? Answer with the codes only."


@dataclass(frozen=True, slots=True)
class _Draft:
    """A text in the making: the body grows by sentences, the fill by single words."""

    body: str
    fill: str
    question: str

    @property
    def text(self) -> str:
        return f"{self.body}{self.fill}\n\n{self.question}"

    def end(self) -> "_Draft":
        """Only the last paragraph and what follows: all that an addition can touch, and quick to count."""
        return replace(self, body=self.body.rpartition("\n")[2])


async def build_prompt(wish: PromptWish, tokenizer: Tokenizer) -> Prompt:
    """A prompt of exactly `wish.num_tokens`. UsageError when that is too short for its fixed parts."""
    draft = _Draft(await _write_body(wish, tokenizer), "", render_question(wish.needles))
    missing = wish.num_tokens - await tokenizer.count(draft.text)
    for round_number in range(_MAX_ROUNDS):
        if missing == 0:
            return Prompt(draft.text, wish.num_tokens, wish.needles)
        if missing < 0 and not draft.fill:
            raise _too_short(wish, wish.num_tokens - missing)
        rng = Random(f"fill {wish.seed} {round_number}")  # noqa: S311 - text, not secrets
        draft, missing = await _add_sentences(draft, missing, tokenizer, rng)
        draft = await _add_words(draft, missing, tokenizer, rng)
        missing = wish.num_tokens - await tokenizer.count(draft.text)
    raise UsageError(
        f"no prompt of exactly {wish.num_tokens} tokens can be built",
        f"the tokenizer counts the same text differently in another place; it came within {abs(missing)} tokens",
        "use another length, or --prompt-file with a text of your own",
    )


def _too_short(wish: PromptWish, needed: int) -> UsageError:
    parts = f"a salt, {len(wish.needles)} needles and a question" if wish.needles else "a salt and a question"
    needed += wish.template_tokens
    template = f", of these {wish.template_tokens} for the chat template" if wish.template_tokens else ""
    return UsageError(
        f"a prompt of {wish.num_tokens + wish.template_tokens} tokens is too short",
        f"{parts} take {needed} tokens{template}",
        f"--length {2 * needed}",
    )


async def _write_body(wish: PromptWish, tokenizer: Tokenizer) -> str:
    """Salt, paragraphs and needles, a little shorter than wished."""
    head = f"{wish.salt} is the number of this notebook.\n"
    sample = "\n".join(islice(write_paragraphs(wish.seed), _SAMPLE_CHARS // 400))
    chars_per_token = len(sample) / await tokenizer.count(sample)
    fixed = await tokenizer.count(
        _Draft(head + " ".join(n.sentence for n in wish.needles), "", render_question(wish.needles)).text
    )
    wanted_chars = chars_per_token * ((wish.num_tokens - fixed) * (1 - _SHORT_BY) - 100)
    paragraphs: list[str] = []
    size = 0
    for paragraph in write_paragraphs(wish.seed):
        size += len(paragraph) + 1
        if size > wanted_chars:
            break
        paragraphs.append(paragraph)
    return head + "\n".join(_hide(wish.needles, paragraphs))


def _hide(needles: Sequence[Needle], paragraphs: Sequence[str]) -> list[str]:
    """The paragraphs with each needle at the end of the one at its depth."""
    text = list(paragraphs) or [""]
    for needle in needles:
        place = min(len(text) - 1, int(needle.depth * len(text)))
        text[place] = f"{text[place]} {needle.sentence}".lstrip()
    return text


async def _add_sentences(draft: _Draft, missing: int, tokenizer: Tokenizer, rng: Random) -> tuple[_Draft, int]:
    """Lengthen the body by whole sentences, fewer each time, until about one would be too many."""
    tokens_per_sentence = await tokenizer.count(" ".join(write_sentence(rng) for _ in range(20))) / 20
    while (num_sentences := int(0.8 * missing / tokens_per_sentence)) > 0:
        paragraph = "\n" + " ".join(write_sentence(rng) for _ in range(num_sentences))
        end = draft.end()
        gained = await tokenizer.count(replace(end, body=end.body + paragraph).text) - await tokenizer.count(end.text)
        if gained > missing:
            break
        draft, missing = replace(draft, body=draft.body + paragraph), missing - gained
    return draft, missing


_SMALLEST = (" a", " I", ".", ",", ";", "-", "!", "a", "i", "o")


async def _add_words(draft: _Draft, missing: int, tokenizer: Tokenizer, rng: Random) -> _Draft:
    """Close the gap to the token by words between body and question; start them anew when there are too many."""
    end = draft.end()
    have = await tokenizer.count(end.text)
    wanted = have + missing
    if missing < 0:
        end = replace(end, fill="")
        have = await tokenizer.count(end.text)
    while have < wanted:
        for piece in (*(f" {noun}" for noun in rng.sample(NOUNS, 3)), *_SMALLEST):
            longer = replace(end, fill=end.fill + piece)
            tokens = await tokenizer.count(longer.text)
            if have < tokens <= wanted:
                end, have = longer, tokens
                break
        else:
            break  # nothing fits: the caller counts again and tries with other words
    return replace(draft, fill=end.fill)
