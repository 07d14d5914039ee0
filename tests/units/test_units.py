from collections.abc import Callable

import pytest

from longreach.errors import UsageError
from longreach.units import (
    ceil_div,
    did_you_mean,
    format_bytes,
    format_count,
    format_duration,
    format_room,
    parse_bytes,
    parse_tokens,
    round_up,
)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("750k", 750_000),
        ("0.75m", 750_000),
        ("1M", 1_048_576),
        ("262144", 262_144),
        ("750_000", 750_000),
        ("1.5K", 1536),
    ],
)
def test_tokens_follow_vllm_suffixes(text: str, tokens: int) -> None:
    assert parse_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("10G", 10 * 2**30),
        ("10g", 10**10),
        ("10GiB", 10 * 2**30),
        ("10 gb", 10**10),
        ("200GiB", 200 * 2**30),
        ("4096", 4096),
    ],
)
def test_bytes_tell_decimal_from_binary(text: str, size_bytes: int) -> None:
    assert parse_bytes(text) == size_bytes


@pytest.mark.parametrize("text", ["", "ten", "10GG", "-1", "1.5", "750,000", "1e6"])
def test_malformed_token_counts_are_usage_errors(text: str) -> None:
    with pytest.raises(UsageError, match="token count"):
        parse_tokens(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.84, "840 ms"), (4.2, "4.2 s"), (215, "3 min 35 s"), (3840, "1 h 04 min"), (59.97, "1 min 00 s")],
)
def test_durations_read_naturally(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_byte_sizes_use_the_largest_binary_unit() -> None:
    assert [format_bytes(size) for size in (0, 32 * 2**10, 10 * 2**30, 24_576_000_000)] == [
        "0 B",
        "32 KiB",
        "10 GiB",
        "22.89 GiB",
    ]


def test_a_near_miss_is_suggested_whatever_its_case() -> None:
    assert "'RTX 4090'" in did_you_mean("rtx4090", ("RTX 4090", "A100"))
    assert did_you_mean("zzz", ("RTX 4090",)) == ""


@pytest.mark.parametrize(
    ("value", "multiple", "quotient", "rounded"), [(0, 16, 0, 0), (1, 16, 1, 16), (32, 16, 2, 32), (33, 16, 3, 48)]
)
def test_rounding_up_is_exact(value: int, multiple: int, quotient: int, rounded: int) -> None:
    assert (ceil_div(value, multiple), round_up(value, multiple)) == (quotient, rounded)


@pytest.mark.parametrize("text", ["9" * 30, "9" * 5000, "9" * 5000 + ".5", "999999999T", f"{'9' * 39}.9k"], ids=len)
@pytest.mark.parametrize("parse", [parse_tokens, parse_bytes])
def test_numbers_beyond_any_box_are_usage_errors(parse: Callable[[str], int], text: str) -> None:
    with pytest.raises(UsageError, match="is too large") as caught:
        parse(text)
    assert len(caught.value.what) < 80


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(2**30, 2**31, "1 GiB to 2 GiB"), (-5, 2**30, "at most 1 GiB"), (0, 0, "nothing"), (-9, -1, "nothing")],
)
def test_room_that_may_be_nothing_is_told_in_words(low: int, high: int, text: str) -> None:
    assert format_room(low, high) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0 runs"), (1, "1 run"), (1_200, "1,200 runs")])
def test_one_thing_is_not_many(count: int, text: str) -> None:
    assert format_count(count, "run") == text
