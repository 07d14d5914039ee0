"""Which drafters join the KV pool, and which of them are known."""

import pytest

from longreach.engine.options import SpeculativeOptions
from longreach.lint.drafter import brings_layers, find_drafter


@pytest.mark.parametrize(
    ("method", "joins"), [("mtp", False), ("ngram", False), ("eagle3", True), ("dflash", True), ("draft_model", True)]
)
def test_drafters_with_attention_join_the_pool(method: str, *, joins: bool) -> None:
    assert brings_layers(SpeculativeOptions(method, 3)) is joins


def test_a_draft_model_of_the_catalogue_is_found() -> None:
    found = find_drafter(SpeculativeOptions("draft_model", 3, extra=(("model", "Qwen/Qwen3-0.6B"),)))
    assert found is not None
    assert len(found.layers) == 28


@pytest.mark.parametrize(
    "spec",
    [
        None,
        SpeculativeOptions("mtp", 3, extra=(("model", "Qwen/Qwen3-0.6B"),)),
        SpeculativeOptions("eagle3", 3),
        SpeculativeOptions("eagle3", 3, extra=(("model", "someone/some-eagle"),)),
    ],
)
def test_other_drafters_are_not(spec: SpeculativeOptions | None) -> None:
    assert find_drafter(spec) is None
