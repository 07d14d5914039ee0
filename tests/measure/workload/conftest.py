"""Tokenizers of the kinds that count text in different ways."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
from tests.measure.workload.kinds import KINDS

from longreach.launch.tiny_model import write_tiny_model
from longreach.measure.prose import write_paragraphs
from longreach.measure.tokenizer import LocalTokenizer, read_tokenizer


@pytest.fixture(scope="session")
def tokenizer_of_kind(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], LocalTokenizer]:
    """Each is trained once: `tiny` is the tiny model's own."""
    folder = tmp_path_factory.mktemp("tokenizers")
    known: dict[str, LocalTokenizer] = {}

    def give(kind: str) -> LocalTokenizer:
        if kind not in known:
            known[kind] = _make(kind, folder)
        return known[kind]

    return give


def _make(kind: str, folder: Path) -> LocalTokenizer:
    if kind == "tiny":
        return read_tokenizer(str(write_tiny_model(folder / "tiny")))
    return LocalTokenizer(KINDS[kind](list(islice(write_paragraphs("training"), 150))), kind)


@pytest.fixture(params=["tiny", *KINDS])
def any_tokenizer(request: pytest.FixtureRequest, tokenizer_of_kind: Callable[[str], LocalTokenizer]) -> LocalTokenizer:
    """Every kind in turn."""
    return tokenizer_of_kind(request.param)


@pytest.fixture
def tokenizer(tokenizer_of_kind: Callable[[str], LocalTokenizer]) -> LocalTokenizer:
    """One that splits as Qwen's does."""
    return tokenizer_of_kind("qwen_like")
