"""JSON as strangers write it."""

import pytest

from longreach.wire.documents import parse_json


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (r'"\ud83d"', "\ufffd"),
        (r'"\ude00 and \ud83d\ude00"', "\ufffd and \U0001f600"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600"),
        (r'"\\ud83d \u0041"', r"\ud83d A"),
        ('"\u00fc"', "\u00fc"),
    ],
    ids=["high", "low", "two highs", "no escape", "plain"],
)
@pytest.mark.parametrize("is_loose", [False, True], ids=["strict", "with NaN"])
def test_every_text_can_be_written_again(text: str, said: str, is_loose: bool) -> None:
    document = parse_json(f'{{"text": {text}, "number": {"NaN" if is_loose else 1}}}')
    assert isinstance(document, dict)
    assert document["text"] == said
    assert document["text"].encode()


def test_bytes_that_are_no_text_are_an_error_or_replaced() -> None:
    assert parse_json(b'"\xff"') == "\ufffd"
    with pytest.raises(ValueError, match="Expecting value"):
        parse_json(b"\xff")
