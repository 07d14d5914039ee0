"""What a folder of safetensors files holds, read from their headers alone: bytes, elements, dtypes."""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TypeGuard

from longreach.errors import InputFileError

MAX_HEADER_BYTES = 100 * 2**20  # the safetensors format's own limit is 100 MB
_MAX_JSON_BYTES = 64 * 2**20  # the largest index of published weights is some 10 MB
_INDEX = "model.safetensors.index.json"
_SCALES = ("_scale", "_scale_inv", "_scale_2", "_zero_point", "_shape", "_global_scale", ".input_scale")
_FREE = "download the file again"


@dataclass(frozen=True, slots=True)
class CheckpointSummary:
    """Sums over the tensors of a checkpoint. `num_parameters` leaves out the scales of a quantized one."""

    total_bytes: int
    num_parameters: int | None  # None when only an index was there
    dtypes: tuple[str, ...]
    source: str


def read_checkpoint(folder: Path) -> CheckpointSummary | None:
    """Sums over the folder's safetensors headers; of an index alone the total it states; None without either."""
    total_size, files = _read_index(folder / _INDEX) if (folder / _INDEX).is_file() else (None, None)
    paths = [folder / name for name in files] if files is not None else _weight_files(folder)
    if paths and all(path.is_file() for path in paths):
        return _summed(paths)
    if total_size is not None:
        return CheckpointSummary(total_size, None, (), f"total_size in {_INDEX}")
    return None


def read_header(path: Path) -> Mapping[str, Mapping[str, object]]:
    """Tensor name -> {dtype, shape, data_offsets} of one safetensors file; InputFileError when it is cut or absurd."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            prefix = file.read(8)
            length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else 0
            if not 2 <= length <= min(MAX_HEADER_BYTES, size - 8):
                raise InputFileError(
                    f"'{path}' is not a safetensors file",
                    f"its header would be {length:,} bytes of a file of {size:,}",
                    _FREE,
                )
            header = json.loads(file.read(length))
    except (OSError, ValueError, RecursionError) as error:
        raise InputFileError(f"cannot read the header of '{path}'", str(error), _FREE) from error
    if not isinstance(header, Mapping) or not all(isinstance(entry, Mapping) for entry in header.values()):
        raise InputFileError(f"the header of '{path}' is not a table of tensors", "found something else", _FREE)
    return {name: entry for name, entry in header.items() if name != "__metadata__"}


def _summed(paths: list[Path]) -> CheckpointSummary:
    total_bytes, num_parameters = 0, 0
    dtypes: set[str] = set()
    for path in paths:
        for name, entry in read_header(path).items():
            size, elements = _tensor_size(path, name, entry)
            total_bytes += size
            if not name.endswith(_SCALES):
                num_parameters += elements
                dtypes.add(str(entry.get("dtype")))
    files = f"{len(paths)} safetensors file{'s' if len(paths) > 1 else ''}"
    return CheckpointSummary(total_bytes, num_parameters, tuple(sorted(dtypes)), f"headers of {files}")


def _tensor_size(path: Path, name: str, entry: Mapping[str, object]) -> tuple[int, int]:
    offsets, shape = entry.get("data_offsets"), entry.get("shape")
    if not (_is_counts(offsets) and len(offsets) == 2 and offsets[0] <= offsets[1] and _is_counts(shape)):
        raise InputFileError(f"the header of '{path}' is malformed", f"tensor '{name}': {entry}", _FREE)
    return offsets[1] - offsets[0], prod(shape)


def _is_counts(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(isinstance(item, int) and item >= 0 for item in value)


def _read_index(path: Path) -> tuple[int | None, tuple[str, ...]]:
    found = read_json_object(path)
    metadata, weight_map = found.get("metadata"), found.get("weight_map")
    size = metadata.get("total_size") if isinstance(metadata, Mapping) else None
    names = weight_map.values() if isinstance(weight_map, Mapping) else ()
    plain = {name for name in names if isinstance(name, str) and Path(name).name == name}
    return (int(size) if isinstance(size, int | float) else None), tuple(sorted(plain))


def _weight_files(folder: Path) -> list[Path]:
    """Without an index: model*.safetensors, else whatever there is (Mistral repositories hold each tensor twice)."""
    return sorted(folder.glob("model*.safetensors")) or sorted(folder.glob("*.safetensors"))


def read_json_object(path: Path) -> Mapping[str, object]:
    """A JSON object from a file; InputFileError says what is wrong with it."""
    try:
        size = path.stat().st_size
        if size > _MAX_JSON_BYTES:
            raise InputFileError(
                f"'{path}' is too large to be read", f"{size:,} bytes", "give the config.json of a model"
            )
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputFileError(f"cannot read '{path}'", str(error), "give a file that exists and is readable") from error
    except (ValueError, RecursionError) as error:
        raise InputFileError(
            f"'{path}' is not JSON", str(error), "give the config.json of a Hugging Face model"
        ) from error
    if not isinstance(found, Mapping):
        raise InputFileError(
            f"'{path}' is not a JSON object",
            f"found {type(found).__name__}",
            "give the config.json of a Hugging Face model",
        )
    return found
