import json
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longreach.errors import InputFileError
from longreach.model.checkpoint import MAX_HEADER_BYTES, read_checkpoint, read_header, read_json_object


def write_safetensors(path: Path, tensors: dict[str, tuple[str, list[int], int]]) -> None:
    """A file of `name -> (dtype, shape, bytes)` with a header as the format defines it and no data."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)


def _index(folder: Path, weight_map: dict[str, str], total_size: object = 999) -> None:
    content = {"metadata": {"total_size": total_size}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(content))


def test_headers_are_summed_over_the_files_of_the_index(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model-1.safetensors", {"a": ("BF16", [4, 8], 64), "b": ("BF16", [8], 16)})
    write_safetensors(tmp_path / "model-2.safetensors", {"c": ("F32", [2], 8)})
    write_safetensors(tmp_path / "consolidated.safetensors", {"a": ("BF16", [4, 8], 64)})
    _index(tmp_path, {"a": "model-1.safetensors", "b": "model-1.safetensors", "c": "model-2.safetensors"})
    found = read_checkpoint(tmp_path)
    assert found is not None
    assert (found.total_bytes, found.num_parameters, found.dtypes) == (88, 42, ("BF16", "F32"))
    assert found.source == "headers of 2 safetensors files"


def test_without_an_index_the_model_files_count_and_not_the_consolidated_copy(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model.safetensors", {"a": ("BF16", [4], 8)})
    write_safetensors(tmp_path / "consolidated.safetensors", {"a": ("BF16", [4], 8)})
    found = read_checkpoint(tmp_path)
    assert found is not None
    assert found.total_bytes == 8


def test_an_index_without_its_files_gives_the_total_it_states(tmp_path: Path) -> None:
    _index(tmp_path, {"a": "model-1.safetensors"}, total_size=12345)
    found = read_checkpoint(tmp_path)
    assert found is not None
    assert (found.total_bytes, found.num_parameters) == (12345, None)


def test_a_folder_without_weights_has_no_checkpoint(tmp_path: Path) -> None:
    assert read_checkpoint(tmp_path) is None


def test_an_index_never_leads_out_of_its_folder(tmp_path: Path) -> None:
    _index(tmp_path, {"a": "../secret.safetensors"}, total_size=None)
    assert read_checkpoint(tmp_path) is None


def test_scales_of_a_quantized_checkpoint_are_no_parameters(tmp_path: Path) -> None:
    tensors = {"w.weight": ("F8_E4M3", [128, 128], 16384), "w.weight_scale_inv": ("F32", [1, 1], 4)}
    write_safetensors(tmp_path / "model.safetensors", tensors)
    found = read_checkpoint(tmp_path)
    assert found is not None
    assert (found.total_bytes, found.num_parameters, found.dtypes) == (16388, 16384, ("F8_E4M3",))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"abc",
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", MAX_HEADER_BYTES + 1) + b"{}",
        struct.pack("<Q", 100) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 3) + b"{]}",
        struct.pack("<Q", 8) + b'{"a": 1}',
        struct.pack("<Q", 2) + b"\xff\xfe",
        b"version https://git-lfs.github.com/spec/v1\n",
    ],
    ids=["empty", "short", "huge", "over-the-limit", "cut", "list", "no-json", "no-table", "no-utf8", "lfs-pointer"],
)
def test_a_file_that_is_no_safetensors_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputFileError) as caught:
        read_header(path)
    assert str(path) in caught.value.what


@pytest.mark.parametrize(
    "entry",
    [{}, {"shape": [1]}, {"shape": [1], "data_offsets": [8, 4]}, {"shape": [-1], "data_offsets": [0, 4]}],
    ids=["empty", "no-offsets", "backwards", "negative"],
)
def test_a_malformed_tensor_is_named(tmp_path: Path, entry: dict[str, object]) -> None:
    text = json.dumps({"layers.0.weight": entry}).encode()
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)
    with pytest.raises(InputFileError) as caught:
        read_checkpoint(tmp_path)
    assert "layers.0.weight" in caught.value.why


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(content=st.binary(max_size=64))
def test_any_bytes_are_read_or_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    try:
        header = read_header(path)
    except InputFileError:
        return
    assert isinstance(header, dict)


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"{", "not JSON"), (b"[1]", "not a JSON object"), (b"\xff", "not JSON"), (b"[" * 100_000, "not JSON")],
    ids=["cut", "list", "binary", "deep"],
)
def test_a_json_file_that_is_no_object_is_refused(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(InputFileError, match=what):
        read_json_object(path)


def test_a_json_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="cannot read"):
        read_json_object(tmp_path)


def test_a_json_file_of_absurd_size_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(65 * 2**20)
    with pytest.raises(InputFileError, match="too large"):
        read_json_object(path)
