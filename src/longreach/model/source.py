"""Where a model comes from: the catalogue, a local folder or config.json, or the Hub."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from longreach.errors import InputFileError, UsageError
from longreach.model.catalogue import (
    catalogue_names,
    find_catalogue_model,
    load_catalogue_model,
    with_known_facts,
    with_quantization,
)
from longreach.model.checkpoint import CheckpointSummary, read_checkpoint, read_json_object
from longreach.model.config import parse_model_config
from longreach.model.hub import fetch_hub_model
from longreach.model.spec import ModelSpec, ParameterCount, QuantizationName, WeightsSpec
from longreach.units import did_you_mean

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_CACHE_FOLDER = re.compile(r"models--(.+?)--(.+)")
_COUNTED_DTYPES = frozenset(("BF16", "F16", "F32", "F8_E4M3"))  # one element is one parameter


def load_model(reference: str, weights: QuantizationName | None = None) -> ModelSpec:
    """The model behind a catalogue name, a Hub id, a local folder or a config.json.

    `weights` states the form of the weights where the checkpoint does not. Raises InputFileError, UnknownModelError,
    UsageError (an unknown name) or ServerError (the Hub cannot be reached).
    """
    if not reference.strip():
        raise UsageError("no model is named", f"its name is {reference!r}", _nearest(""))
    path = Path(reference).expanduser()
    match = find_catalogue_model(reference)
    if path.is_file() or (path.is_dir() and (match is None or (path / "config.json").is_file())):
        return _stated(_read_local(path), weights)
    if match is not None:
        spec = with_quantization(load_catalogue_model(reference), match.name, weights or match.quantization)
        is_typed = match.quantization is not None and match.quantization == spec.weights.quantization
        return _named(spec, reference.strip()) if is_typed else spec
    if _HUB_ID.fullmatch(reference) and not reference.endswith((".json", ".gguf")):
        return _stated(_fetch(reference), weights)
    if "/" in reference or "\\" in reference or path.suffix in (".json", ".gguf"):
        why = "it is a device or a pipe" if path.exists() else "the path does not exist"
        raise InputFileError(f"no such file or folder '{reference}'", why, _nearest(path.stem))
    raise UsageError(
        f"unknown model '{reference}'",
        f"it is none of the {len(catalogue_names())} catalogue names, no local folder and no Hub id (Organisation/Model)",
        _nearest(reference),
    )


def _named(spec: ModelSpec, checkpoint: str) -> ModelSpec:
    """The model whose weights are those of the published checkpoint that was typed, though the sizes be those of a sister."""
    return replace(spec, weights=replace(spec.weights, checkpoint=checkpoint, differs=False))


def _fetch(repo_id: str) -> ModelSpec:
    found = fetch_hub_model(repo_id)
    spec = replace(_read_folder(found.folder, repo_id), hf_id=repo_id)
    if spec.weights.total_bytes is not None or found.total_bytes is None:
        return spec
    counted = replace(spec.weights, total_bytes=found.total_bytes, source="tensor elements as the Hub counts them")
    return replace(spec, weights=counted)


def _read_local(path: Path) -> ModelSpec:
    if path.is_dir():
        return _read_folder(path, _folder_name(path))
    if path.suffix == ".gguf":
        raise _no_config(path, "a GGUF file", "give the folder of the original model")
    if path.name == "adapter_config.json":
        raise _adapter(path)
    name = _folder_name(path.parent) if path.name == "config.json" else path.stem
    return _parsed(read_json_object(path), name, str(path), None)


def _read_folder(folder: Path, name: str) -> ModelSpec:
    config_path = folder / "config.json"
    if not config_path.is_file():
        raise _without_config(folder)
    config = dict(read_json_object(config_path))
    quantization = folder / "hf_quant_config.json"  # ModelOpt writes it beside the config; vLLM reads it from there
    if "quantization_config" not in config and quantization.is_file():
        config["quantization_config"] = {"quant_method": "modelopt", **read_json_object(quantization)}
    return _parsed(config, name, str(config_path), read_checkpoint(folder))


def _parsed(config: Mapping[str, object], name: str, origin: str, checkpoint: CheckpointSummary | None) -> ModelSpec:
    spec = replace(with_known_facts(parse_model_config(config, name)), sources=(origin,))
    if checkpoint is None:
        return spec
    weights = replace(spec.weights, total_bytes=checkpoint.total_bytes, source=checkpoint.source)
    return replace(
        spec,
        weights=weights,
        parameters=_counted(spec.parameters, checkpoint),
        sources=(origin, checkpoint.source),
    )


def _counted(parameters: ParameterCount, checkpoint: CheckpointSummary) -> ParameterCount:
    """The headers' own count, unless packed tensors hide how many parameters an element holds."""
    if checkpoint.num_parameters is None or not _COUNTED_DTYPES.issuperset(checkpoint.dtypes):
        return parameters
    return replace(parameters, total=checkpoint.num_parameters, certainty="exact")


def _stated(spec: ModelSpec, weights: QuantizationName | None) -> ModelSpec:
    own = spec.weights.quantization
    if weights is None or weights == own:
        return spec
    if own != "none":
        raise UsageError(
            f"the weights of '{spec.name}' are not {weights}",
            f"its config says {spec.weights.quant_method} ({own})",
            f"leave --weights out, or give the {weights} checkpoint",
        )
    source = "as stated; bytes of such a checkpoint are not known"
    return replace(spec, weights=WeightsSpec(weights, None, None, source, differs=spec.hf_id is not None))


def _folder_name(folder: Path) -> str:
    """The folder's name; in the Hub's cache (models--Org--Model/snapshots/...) the Hub id."""
    for part in folder.resolve().parts:
        match = _CACHE_FOLDER.fullmatch(part)
        if match is not None:
            return f"{match[1]}/{match[2]}"
    return folder.resolve().name or str(folder)


def _without_config(folder: Path) -> InputFileError:
    if (folder / "adapter_config.json").is_file():
        return _adapter(folder / "adapter_config.json")
    if any(folder.glob("*.gguf")):
        return _no_config(folder, "GGUF files only", "give the folder of the original model")
    if (folder / "params.json").is_file():
        return _no_config(
            folder, "Mistral's own params.json only", "give a folder with config.json, or a catalogue name"
        )
    inside = ", ".join(sorted(item.name for item in folder.iterdir())[:5]) or "nothing"
    return _no_config(folder, inside, "give the folder that config.json was downloaded to")


def _no_config(path: Path, found: str, fix: str) -> InputFileError:
    return InputFileError(f"no config.json in '{path}'", f"found {found}", fix)


def _adapter(path: Path) -> InputFileError:
    base = read_json_object(path).get("base_model_name_or_path")
    fix = f"longreach plan {base}" if isinstance(base, str) and base else "give the folder of the base model"
    return InputFileError(
        f"'{path.parent}' is an adapter, not a model", "an adapter is served on top of its base model", fix
    )


def _nearest(word: str) -> str:
    return (
        did_you_mean(word, catalogue_names()) or "give a local folder, a config.json or a Hub id (Organisation/Model)"
    )
