"""Prompts of exactly so many tokens: a salt, text that never loops, needles, a question.

The text is made a little short, counted once as a whole, and then filled up before the question, counting only the last
line. One more count of the whole proves it; only a tokenizer whose tokens cross line ends needs another round.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from longreach.errors import UsageError
from longreach.measure.filling import Draft, Pace, fill, learn_pace
from longreach.measure.prose import write_paragraphs
from longreach.measure.tokenizer import Tokenizer
from longreach.measure.words import STATIONS

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


async def build_prompt(wish: PromptWish, tokenizer: Tokenizer) -> Prompt:
    """A prompt of exactly `wish.num_tokens`. UsageError when that is too short for its fixed parts."""
    pace = await learn_pace(tokenizer)
    body, closing = await _write_body(wish, tokenizer, pace), f"\n\n{render_question(wish.needles)}"
    wanted = wish.num_tokens - await tokenizer.count(body + closing)
    if wanted < 0:
        raise _too_short(wish, wish.num_tokens - wanted)
    error = excess = 0  # by how much the windows count less than the whole; by how much that is too long
    for round_number in range(_MAX_ROUNDS):
        rng = Random(f"fill {wish.seed} {round_number}")  # noqa: S311 - text, not secrets
        draft = Draft(body, closing, wanted - error, rng)
        await fill([draft], tokenizer, pace)
        excess = await tokenizer.count(draft.whole) - wish.num_tokens
        if excess == 0:
            return Prompt(draft.whole, wish.num_tokens, wish.needles)
        error += excess + draft.missing
    raise UsageError(
        f"no prompt of exactly {wish.num_tokens} tokens can be built",
        f"the tokenizer counts the same text differently in another place; it came within {abs(excess)} tokens",
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


async def _write_body(wish: PromptWish, tokenizer: Tokenizer, pace: Pace) -> str:
    """Salt, paragraphs and needles, a little shorter than wished."""
    head = f"{wish.salt} is the number of this notebook.\n"
    fixed = head + " ".join(n.sentence for n in wish.needles) + f"\n\n{render_question(wish.needles)}"
    left = wish.num_tokens - await tokenizer.count(fixed)
    wanted_chars = pace.chars_per_token * (left * (1 - _SHORT_BY) - 100)
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
