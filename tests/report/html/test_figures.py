import pytest

from longreach.report.html.figures import (
    duration,
    duration_ticks,
    interval,
    percent,
    rate,
    tick_duration,
    tick_tokens,
    token_ticks,
    tokens,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0.0, "0 ms"), (0.00432, "4.32 ms"), (0.0432, "43.2 ms"), (0.84, "840 ms"), (215.0, "3 min 35 s")],
)
def test_short_durations_keep_three_figures(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, "-"),
        (0.0, "0 %"),
        (0.0002, "< 0.1 %"),
        (0.1254, "12.5 %"),
        (0.75, "75 %"),
        (0.9997, "> 99.9 %"),
        (1.0, "100 %"),
    ],
)
def test_a_share_is_called_none_or_all_only_when_it_is(share: float | None, text: str) -> None:
    assert percent(share) == text


def test_what_is_not_known_is_a_dash() -> None:
    assert interval(None) == tokens(None) == rate(None, "tokens/s") == "-"
    assert interval((0.5, 1.5)) == "500 ms to 1.5 s"
    assert rate(1_234.5, "tokens/s") == "1,234 tokens/s"
    assert rate(0.5321, "requests/s") == "0.532 requests/s"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0"),
        (2e-5, "20 µs"),
        (0.05, "50 ms"),
        (2.0, "2 s"),
        (90.0, "90 s"),
        (600.0, "10 min"),
        (4800.0, "80 min"),
        (7200.0, "2 h"),
    ],
)
def test_axes_write_durations_in_one_unit(seconds: float, text: str) -> None:
    assert tick_duration(seconds) == text


@pytest.mark.parametrize(("count", "text"), [(0.0, "0"), (500.0, "500"), (32_000.0, "32k"), (1_200_000.0, "1.2M")])
def test_axes_write_tokens_in_thousands(count: float, text: str) -> None:
    assert tick_tokens(count) == text


@pytest.mark.parametrize("high", [1e-5, 0.02, 0.9, 7.0, 61.0, 500.0, 4_000.0, 90_000.0])
@pytest.mark.parametrize("logarithmic", [True, False])
def test_ticks_are_few_and_inside(high: float, logarithmic: bool) -> None:
    low = high / 500 if logarithmic else 0.0
    for ticks in (
        duration_ticks(low, high, logarithmic=logarithmic),
        token_ticks(low * 1e8, high * 1e8, logarithmic=logarithmic),
    ):
        assert 2 <= len(ticks) <= 7
        assert ticks == sorted(ticks)
    assert all(low <= tick <= high for tick in duration_ticks(low, high, logarithmic=logarithmic))


def test_an_axis_of_days_has_round_ticks() -> None:
    ticks = [tick_duration(tick) for tick in duration_ticks(0, 345_600, logarithmic=False)]
    assert ticks == ["0", "24 h", "48 h", "72 h", "96 h"]
