"""A mix of prompts as it is typed."""

import pytest

from longreach.errors import UsageError
from longreach.plan.mix import mean_tokens, parse_mix, share_of
from longreach.plan.values import PromptClass


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("90%:8k,10%:500k", [(0.9, 8000), (0.1, 500_000)]),
        ("10%:500k, 90%:8k", [(0.9, 8000), (0.1, 500_000)]),
        ("9:8k,1:500k", [(0.9, 8000), (0.1, 500_000)]),
        ("33.3%:1k,33.3%:2k,33.4%:3k", [(0.333, 1000), (0.333, 2000), (0.334, 3000)]),
        ("0.5:1K,0.5:1M", [(0.5, 1024), (0.5, 2**20)]),
    ],
    ids=["percent", "any order", "weights", "three", "binary suffixes"],
)
def test_shares_sum_to_one_and_the_shortest_comes_first(text: str, classes: list[tuple[float, int]]) -> None:
    parsed = parse_mix(text)
    assert [item.prompt_tokens for item in parsed] == [tokens for _, tokens in classes]
    assert [item.share for item in parsed] == pytest.approx([share for share, _ in classes])
    assert share_of(parsed) == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("90%:8k", "one class|comes to 90"),
        ("100%:8k", "--mean-input 8000"),
        ("90%:8k,20%:500k", "110"),
        ("90%:8k,1:500k", "percent or weights"),
        ("90%:8k,10%:8000", "twice"),
        ("90%:8k,10%", "SHARE:TOKENS"),
        ("", "SHARE:TOKENS"),
        (":8k,1:9k", "SHARE:TOKENS"),
        ("0%:8k,100%:9k", "above zero"),
        ("nan:8k,1:9k", "nan"),
        ("-1:8k,2:9k", "above zero"),
        ("inf:8k,2:9k", "above zero"),
        ("1:0,1:9k", "at least one token"),
        ("1:8x,1:9k", "8x"),
        (",".join(f"1:{length}" for length in range(1, 19)), "18 classes"),
    ],
)
def test_a_malformed_mix_is_told_with_an_example(text: str, word: str) -> None:
    with pytest.raises(UsageError, match=word) as error:
        parse_mix(text)
    assert error.value.fix


def test_the_mean_of_some_classes_is_theirs() -> None:
    assert mean_tokens((PromptClass(0.3, 1000), PromptClass(0.1, 5000))) == 2000
