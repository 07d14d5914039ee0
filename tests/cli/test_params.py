from collections.abc import Callable
from fractions import Fraction

import click
import pytest

from longreach.cli.params import SHARE, Share, json_object
from longreach.errors import UsageError

Longreach = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    "option",
    [
        "--max-model-len",
        "--mean-input",
        "--mean-output",
        "--max-num-batched-tokens",
        "--kv-cache-memory-bytes",
        "--ram",
    ],
)
def test_a_quantity_is_at_least_one(longreach: Longreach, option: str) -> None:
    code, _, err = longreach("plan", "qwen3-8b", "--gpus", "1xH100", option, "0")
    assert code == 2
    assert f"{option} 0 is too small" in err


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999"])
@pytest.mark.parametrize("option", ["--ttft", "--gpu-memory-utilization", "--mm-ipc-gpu-memory-gb"])
def test_no_option_takes_what_is_not_finite(longreach: Longreach, option: str, value: str) -> None:
    code, _, err = longreach("plan", "qwen3-8b", "--gpus", "1xH100", option, value)
    assert code == 2
    assert option in err


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '{"a":1,"a":2}', '{"a":NaN}', "[" * 100_000])
def test_json_options_are_strict(text: str) -> None:
    with pytest.raises(UsageError, match="--sampling"):
        json_object(text, "--sampling", '{"top_p": 0.9}')


def test_json_options_give_their_object() -> None:
    assert json_object('{"a": {"b": [1, null]}}', "--sampling", "{}") == {"a": {"b": [1, None]}}


@pytest.mark.parametrize("text", ["5%", "5 %", "0.05", ".05", "1/20", 0.05, "5.0%"], ids=str)
def test_a_share_may_be_written_in_every_way(text: object) -> None:
    assert Share(number=float).convert(text, None, None) == pytest.approx(0.05)
    assert SHARE.convert("1/3", None, None) == Fraction(1, 3)


@pytest.mark.parametrize("text", ["5", "0", "0%", "101%", "1/0", "-5%", "nan", "1e9", "1e999999999", "x", ""])
def test_what_is_no_share_is_refused_with_one_that_is(text: str) -> None:
    option = click.Option(["--sessions"], type=SHARE)
    with pytest.raises(UsageError, match="is no share above 0% up to 100%") as caught:
        SHARE.convert(text, option, None)
    assert caught.value.fix == "--sessions 5%"


@pytest.mark.parametrize(
    "line",
    [
        "tiers p --margin",
        "bench u --input-tokens 1k --input-spread",
        "bench u --trace t --sessions",
        "bench compare a b --margin",
    ],
)
def test_every_share_option_takes_and_refuses_the_same(longreach: Longreach, line: str) -> None:
    for text in ("5%", "0.05", "1/20"):
        assert "share" not in longreach(*line.split(), text)[2]
    code, _, err = longreach(*line.split(), "7")
    assert code == 2
    assert " 7%" in err
