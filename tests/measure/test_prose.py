"""Text that never loops."""

from itertools import islice

from longreach.measure import words
from longreach.measure.prose import write_paragraphs


def test_the_same_seed_gives_the_same_text_and_another_seed_another() -> None:
    first = list(islice(write_paragraphs("a"), 50))
    assert first == list(islice(write_paragraphs("a"), 50))
    assert not set(first) & set(islice(write_paragraphs("b"), 50))


def test_no_sentence_comes_twice_in_a_hundred_thousand_words() -> None:
    sentences = " ".join(islice(write_paragraphs("a"), 1500)).split(". ")
    assert len(sentences) > 7000
    assert len(set(sentences)) == len(sentences)


def test_hardly_any_six_words_come_twice() -> None:
    text = " ".join(islice(write_paragraphs("a"), 1500)).split()
    sixes = list(zip(*(text[start:] for start in range(6)), strict=False))
    assert 1 - len(set(sixes)) / len(sixes) < 1e-3


def test_paragraphs_are_single_lines_of_plain_text() -> None:
    for paragraph in islice(write_paragraphs("a"), 200):
        assert paragraph.isascii()
        assert "\n" not in paragraph
        assert paragraph.endswith(".")
        assert paragraph[0].isupper()


def test_numbers_cannot_be_taken_for_needle_codes() -> None:
    text = " ".join(islice(write_paragraphs("a"), 500))
    assert max(len(word) for word in text.split() if word.isdigit()) < 5


def test_word_lists_hold_no_word_twice() -> None:
    for name in ("NOUNS", "ADJECTIVES", "VERBS", "ADVERBS", "PLACES", "NAMES", "STATIONS"):
        found = getattr(words, name)
        assert len(set(found)) == len(found), name
