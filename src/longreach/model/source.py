"""Where a model comes from: the catalogue, a local folder or config.json, or the Hub."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from longreach.errors import InputFileError, UsageError
from longreach.model.catalogue import (
    catalogue_names,
    find_catalogue_model,
    load_catalogue_model,
    with_quantization,
)
from longreach.model.config import parse_model_config
from longreach.model.spec import ModelSpec, QuantizationName, WeightsSpec
from longreach.units import did_you_mean


def load_model(reference: str, weights: QuantizationName | None = None) -> ModelSpec:
    """The model behind a catalogue name, a Hub id, a local folder or a config.json; `weights` where the user says so."""
    path = Path(reference)
    if path.exists():
        spec = _load_local(path)
        return spec if weights is None else _stated_weights(spec, weights)
    match = find_catalogue_model(reference)
    if match is not None:
        spec = load_catalogue_model(reference)
        return spec if weights is None else with_quantization(spec, match.name, weights)
    raise UsageError(
        f"no model '{reference}'",
        "it is neither a catalogue name nor a local folder or config.json",
        did_you_mean(reference.rpartition("/")[2], catalogue_names()) or "give a local folder or a catalogue name",
    )


def _load_local(path: Path) -> ModelSpec:
    config_path = path / "config.json" if path.is_dir() else path
    if not config_path.is_file():
        raise InputFileError(
            f"no config.json in '{path}'",
            "a model folder holds the config.json of its model",
            "give the folder that was downloaded from the Hub",
        )
    return parse_model_config(_read_json_object(config_path), path.resolve().name if path.is_dir() else path.stem)


def _read_json_object(path: Path) -> Mapping[str, object]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputFileError(f"cannot read '{path}'", str(error), "give a readable config.json") from error
    if not isinstance(found, Mapping):
        raise InputFileError(f"'{path}' is not a JSON object", f"found {type(found).__name__}", "give a config.json")
    return found


def _stated_weights(spec: ModelSpec, weights: QuantizationName) -> ModelSpec:
    return replace(spec, weights=WeightsSpec(weights, None, None, "stated, bytes not known"))
