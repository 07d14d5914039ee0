"""Which projections a tensor parallel size cuts into parts of quantization groups."""

import pytest
from tests.rules.cases_foreign import deployed

from longreach.rules.parallel import quantization_group_split


@pytest.mark.parametrize(
    ("model", "words", "part"),
    [
        ("Qwen/Qwen3-30B-A3B-GPTQ-Int4", "-tp 4", "the experts"),
        ("Qwen/Qwen2.5-14B-Instruct-AWQ", "-tp 8", "the feed-forward layers"),
        ("Qwen/Qwen3-30B-A3B-GPTQ-Int4", "-tp 4 --enable-expert-parallel", None),
        ("Qwen/Qwen3-30B-A3B-GPTQ-Int4", "-tp 2", None),
        ("Qwen/Qwen2.5-72B-Instruct-AWQ", "-tp 8", None),
        ("Qwen/Qwen2.5-14B-Instruct-AWQ", "-tp 4", None),
        ("qwen3-30b-a3b", "-tp 4", None),
    ],
)
def test_groups_that_are_cut(model: str, words: str, part: str | None) -> None:
    found = [finding.what for finding in quantization_group_split.check(deployed(model, words))]
    assert [what.endswith(f"in {part}") for what in found] == ([True] if part is not None else [])
