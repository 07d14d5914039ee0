import json
import struct
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from longreach.errors import InputFileError
from longreach.launch.tiny_model import DEFAULT_SHAPE, TinyShape, write_tiny_model
from longreach.model.config import parse_model_config
from longreach.model.spec import AttentionLayer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


def _read_header(folder: Path) -> dict[str, dict[str, list[int]]]:
    content = (folder / "model.safetensors").read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    header: dict[str, dict[str, list[int]]] = json.loads(content[8 : 8 + length])
    header.pop("__metadata__")
    assert max(entry["data_offsets"][1] for entry in header.values()) == len(content) - 8 - length
    return header


def test_config_reads_as_the_shape_it_was_written_for(folder: Path) -> None:
    model = parse_model_config(json.loads((folder / "config.json").read_text()), "tiny")
    shape = DEFAULT_SHAPE
    layer = AttentionLayer(shape.num_heads, shape.num_kv_heads, shape.head_dim, shape.head_dim)
    assert model.layers == (layer,) * shape.num_layers
    assert model.max_position_embeddings == shape.max_position_embeddings
    assert model.vocab_size == shape.vocab_size


def test_tensors_follow_one_another_and_fill_the_file(folder: Path) -> None:
    end = 0
    for entry in _read_header(folder).values():
        size = 2
        for length in entry["shape"]:
            size *= length
        assert entry["data_offsets"] == [end, end + size]
        end += size


def test_same_seed_gives_the_same_bytes_and_another_seed_other_weights(folder: Path, tmp_path: Path) -> None:
    again = write_tiny_model(tmp_path / "again")
    other = write_tiny_model(tmp_path / "other", TinyShape(seed=1))
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        assert (again / name).read_bytes() == (folder / name).read_bytes()
    assert (other / "model.safetensors").read_bytes() != (folder / "model.safetensors").read_bytes()


def test_only_whole_visible_text_can_be_answered(folder: Path) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    start, _ = _read_header(folder)["lm_head.weight"]["data_offsets"]
    content = (folder / "model.safetensors").read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    row_bytes = 2 * DEFAULT_SHAPE.hidden_size
    first = 8 + length + start
    silent = [
        token
        for token in range(DEFAULT_SHAPE.vocab_size)
        if not any(content[first + token * row_bytes : first + (token + 1) * row_bytes])
    ]
    answerable = tokenizer.decode([token for token in range(DEFAULT_SHAPE.vocab_size) if token not in silent])
    assert {0, 1, 2} <= set(silent)  # end of text and the two marks of a turn
    assert len(silent) < DEFAULT_SHAPE.vocab_size / 2
    assert answerable.isascii()
    assert answerable.isprintable()


@pytest.mark.parametrize("text", ["plain words", "Grüße, 你好, 👋\n\ttabs", "a" * 100], ids=["words", "unicode", "run"])
def test_tokenizer_loses_nothing(folder: Path, text: str) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert tokenizer.get_vocab_size() == DEFAULT_SHAPE.vocab_size
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_same_model_is_kept_and_another_one_is_never_overwritten(folder: Path) -> None:
    assert write_tiny_model(folder) == folder
    with pytest.raises(InputFileError, match="is not the tiny model asked for"):
        write_tiny_model(folder, TinyShape(num_layers=2))


def test_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        write_tiny_model(tmp_path / "tiny", TinyShape(hidden_size=0))
    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputFileError, match="cannot write the tiny model"):
        write_tiny_model(tmp_path / "file" / "tiny")
