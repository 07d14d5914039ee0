from collections.abc import Callable

import pytest

from longreach.cli.params import json_object
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
