"""Tokenizers by every name they have."""

from pathlib import Path

import pytest

from longreach.errors import InputFileError
from longreach.measure.tokenizer import read_tokenizer


async def test_folder_and_file_give_the_same_tokenizer(wrong_tokenizer: Path) -> None:
    for name in (wrong_tokenizer, wrong_tokenizer / "tokenizer.json"):
        tokenizer = read_tokenizer(str(name))
        assert await tokenizer.encode("ab") == [97, 98]
        assert await tokenizer.count("abc") == 3
        assert tokenizer.source == f"the tokenizer of {name}"


def test_folder_without_a_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="no tokenizer in") as caught:
        read_tokenizer(str(tmp_path))
    assert str(tmp_path / "tokenizer.json") in caught.value.why


def test_file_that_is_no_tokenizer_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputFileError, match="no tokenizer in") as caught:
        read_tokenizer(str(tmp_path))
    assert "is not a tokenizer file" in caught.value.why


def test_name_that_is_nothing_is_refused_without_asking_the_hub() -> None:
    with pytest.raises(InputFileError) as caught:
        read_tokenizer("/no/such/folder")
    assert "no hub repository" in caught.value.why


def test_hub_name_is_looked_for_in_the_cache_when_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputFileError, match="no tokenizer in 'nobody/nothing'") as caught:
        read_tokenizer("nobody/nothing")
    assert "the hub does not give it" in caught.value.why
