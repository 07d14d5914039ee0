"""Ordinary English text of any length that never loops.

A text that repeats itself flatters what is being measured: n-gram speculation guesses it, caches and compressors fold it.
Every sentence here is drawn anew from more than 2^50 of its shape, so that even the 50,000 sentences of a 750,000-token
prompt are not expected to hold one of them twice.
"""

from collections.abc import Iterator
from random import Random

from longreach.measure.words import ADJECTIVES, ADVERBS, NAMES, NOUNS, PLACES, VERBS

_SENTENCES_PER_PARAGRAPH = (3, 7)


def write_paragraphs(seed: str) -> Iterator[str]:
    """Paragraphs without end; the same seed gives the same ones. Each is one line without its line end."""
    rng = Random(seed)  # noqa: S311 - text, not secrets
    while True:
        yield write_paragraph(rng)


def write_paragraph(rng: Random) -> str:
    """A few sentences in one line, without its line end."""
    return " ".join(write_sentence(rng) for _ in range(rng.randint(*_SENTENCES_PER_PARAGRAPH)))


def write_sentence(rng: Random) -> str:
    """One sentence of 14 to 16 words."""
    return _SHAPES[int(rng.random() * len(_SHAPES))](rng)


def _pick(rng: Random, words: tuple[str, ...]) -> str:
    return words[int(rng.random() * len(words))]  # twice as fast as choice(), and this runs for every word


def _thing(rng: Random) -> str:
    return f"{_pick(rng, ADJECTIVES)} {_pick(rng, NOUNS)}"


def _two_deeds(rng: Random) -> str:
    return (
        f"The {_thing(rng)} {_pick(rng, VERBS)} the {_pick(rng, NOUNS)} {_pick(rng, PLACES)} the {_thing(rng)} "
        f"and {_pick(rng, ADVERBS)} {_pick(rng, VERBS)} the {_thing(rng)}."
    )


def _count_things(rng: Random) -> str:
    return (
        f"{_pick(rng, NAMES)} {_pick(rng, VERBS)} {rng.randint(2, 999)} {_thing(rng)}s {_pick(rng, PLACES)} "
        f"the {_thing(rng)}, and {_pick(rng, ADVERBS)} {_pick(rng, VERBS)} the {_thing(rng)}."
    )


def _two_people(rng: Random) -> str:
    return (
        f"{_pick(rng, PLACES).capitalize()} the {_pick(rng, NOUNS)}, {_pick(rng, NAMES)} {_pick(rng, ADVERBS)} "
        f"{_pick(rng, VERBS)} the {_thing(rng)} that {_pick(rng, NAMES)} {_pick(rng, VERBS)} {_pick(rng, PLACES)} "
        f"the {_thing(rng)}."
    )


def _while(rng: Random) -> str:
    return (
        f"While the {_thing(rng)} {_pick(rng, VERBS)} its {_thing(rng)}, the {_thing(rng)} "
        f"{_pick(rng, ADVERBS)} {_pick(rng, VERBS)} {_pick(rng, NAMES)}."
    )


_SHAPES = (_two_deeds, _count_things, _two_people, _while)
