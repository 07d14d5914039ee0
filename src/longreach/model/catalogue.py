"""The models longreach knows without a network: published facts, one file a model, read by name."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal, cast

from longreach.errors import UsageError
from longreach.model.config import parse_model_config
from longreach.model.spec import ModelSpec, ParameterCount, QuantizationName, WeightsSpec, YarnRecommendation
from longreach.units import did_you_mean

_Entry = Mapping[str, object]

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")  # a file of the catalogue has no longer name


@dataclass(frozen=True, slots=True)
class CheckpointBytes:
    """Bytes of one published checkpoint, and who says so."""

    checkpoint: str
    total_bytes: int
    source: str


@dataclass(frozen=True, slots=True)
class CatalogueMatch:
    """A catalogue model, and the quantization of the checkpoint that was named (None: the model's own)."""

    name: str
    quantization: QuantizationName | None


@dataclass(frozen=True, slots=True)
class PublishedSizes:
    """What a publisher says of the size of a model, as far as known."""

    total_parameters: int | None  # tensor elements of the repository
    active_parameters: str | None  # in the publisher's words: "3B", "27B on average"


def catalogue_names() -> tuple[str, ...]:
    """Every model of the catalogue, sorted."""
    return tuple(sorted(item.name.removesuffix(".json") for item in _folder().iterdir() if item.name.endswith(".json")))


def checkpoint_names() -> tuple[str, ...]:
    """Every published checkpoint that stands for a catalogue model, as lower-case Hub ids."""
    return tuple(_checkpoints())


def find_catalogue_model(reference: str) -> CatalogueMatch | None:
    """`qwen3-32b`, `Qwen3-32B`, `Qwen/Qwen3-32B` or a published checkpoint such as `Qwen/Qwen3-32B-FP8`."""
    wanted = reference.strip().lower()
    if _is_name(wanted):
        return CatalogueMatch(wanted, None)
    checkpoint = _checkpoints().get(wanted)
    if checkpoint is not None:
        return CatalogueMatch(str(checkpoint[0]), cast("QuantizationName | None", checkpoint[1]))
    organisation, _, last = wanted.rpartition("/")
    return CatalogueMatch(last, None) if _NAME.fullmatch(organisation) and _is_name(last) else None


def load_catalogue_model(name: str) -> ModelSpec:
    """The model by catalogue name or Hub id; UsageError with the nearest names when there is none."""
    match = find_catalogue_model(name)
    if match is None:
        raise UsageError(
            f"no model '{name}' in the catalogue",
            f"{len(catalogue_names())} models are known by name",
            did_you_mean(name.rpartition("/")[2], catalogue_names())
            or "give a local folder, a config.json or a Hub id",
        )
    entry = _read(match.name)
    spec = parse_model_config(_expanded_config(entry), match.name)
    return with_quantization(_with_facts(spec, entry), match.name, match.quantization or _published_form(spec, entry))


def catalogue_config(name: str) -> Mapping[str, object]:
    """The fields of the published config.json that the catalogue holds, by catalogue name."""
    return _expanded_config(_read(name))


def published_sizes(name: str) -> PublishedSizes:
    """The published sizes of a catalogue model, beside what its config comes to."""
    total, active = (_read(name).get(key) for key in ("total_parameters", "active_parameters"))
    value = total.get("value") if isinstance(total, Mapping) else None
    text = active.get("text") if isinstance(active, Mapping) else None
    return PublishedSizes(value if isinstance(value, int) else None, text if isinstance(text, str) else None)


def checkpoint_bytes(name: str, quantization: QuantizationName) -> CheckpointBytes | None:
    """Published bytes of this model in this form, where they are known."""
    match = find_catalogue_model(name)
    if match is None:
        return None
    for checkpoint in _checkpoint_rows(_read(match.name)):
        size = checkpoint.get("bytes")
        if checkpoint.get("quantization") == quantization and isinstance(size, int):
            return CheckpointBytes(str(checkpoint["id"]), size, str(checkpoint["bytes_source"]))
    return None


def architecture_releases(architecture: str) -> tuple[str, str] | None:
    """First and last of the scanned vLLM releases (0.8.5 to 0.33.0) that register the class; None where not scanned."""
    found = _architectures().get(architecture)
    return (found[0], found[1]) if found is not None else None


def with_known_facts(spec: ModelSpec) -> ModelSpec:
    """A model read from a config, with what the catalogue knows of its architecture and of a model of the same name.

    Parsers, YaRN and speculation are taken over only when both have the same layers.
    """
    spec = replace(spec, architecture_releases=architecture_releases(spec.architecture))
    match = find_catalogue_model(spec.name)
    if match is None:
        return spec
    entry = _read(match.name)
    twin = parse_model_config(_expanded_config(entry), match.name)
    if (twin.architecture, twin.layers) != (spec.architecture, spec.layers):
        return spec
    known = _with_facts(twin, entry)
    return replace(
        spec,
        yarn=known.yarn,
        tool_call_parsers=known.tool_call_parsers,
        reasoning_parsers=known.reasoning_parsers,
        spec_methods=known.spec_methods,
        native_context_tokens=known.native_context_tokens,
    )


def with_quantization(spec: ModelSpec, name: str, quantization: QuantizationName | None) -> ModelSpec:
    """The model with the weights of its published checkpoint in this form (None: its own form)."""
    own = spec.weights
    wanted = quantization or own.quantization
    known, checkpoint = checkpoint_bytes(name, wanted), _checkpoint_id(name, wanted)
    size, source = None, f"no published bytes of a {wanted} checkpoint are known"
    if known is not None:
        size, source, checkpoint = known.total_bytes, f"{known.checkpoint}: {known.source}", known.checkpoint
    is_own = wanted == own.quantization
    differs = own.differs if is_own else checkpoint is None
    method = own.quant_method if is_own else None
    return replace(spec, weights=WeightsSpec(wanted, method, size, source, checkpoint, differs))


def _checkpoint_id(name: str, quantization: QuantizationName) -> str | None:
    match = find_catalogue_model(name)
    rows = _checkpoint_rows(_read(match.name)) if match else ()
    return next((str(row["id"]) for row in rows if row.get("quantization") == quantization), None)


def _published_form(spec: ModelSpec, entry: _Entry) -> QuantizationName | None:
    """The form of the repository's own weights, where the copy of its config lost the quantization."""
    if spec.weights.quantization != "none":
        return None
    own = next((row for row in _checkpoint_rows(entry) if row.get("id") == entry["hf_id"]), None)
    return cast("QuantizationName", own["quantization"]) if own is not None else None


def _with_facts(spec: ModelSpec, entry: _Entry) -> ModelSpec:
    native = entry.get("recommended_context")
    return replace(
        spec,
        hf_id=str(entry["hf_id"]),
        parameters=_parameters(spec.parameters, entry),
        native_context_tokens=native if isinstance(native, int) else None,
        yarn=_yarn(entry),
        architecture_releases=architecture_releases(spec.architecture),
        tool_call_parsers=_strings(entry, "tool_call_parsers"),
        reasoning_parsers=_strings(entry, "reasoning_parsers"),
        spec_methods=_strings(entry, "spec_methods"),
        sources=_sources(entry),
    )


def _parameters(counted: ParameterCount, entry: _Entry) -> ParameterCount:
    """The published total; exact where it counts the tensors of the repository itself."""
    published = entry.get("total_parameters")
    if not isinstance(published, Mapping) or not isinstance(published.get("value"), int):
        return counted
    certainty: Literal["exact", "estimate"] = "estimate"
    if str(published["source"]).startswith("tensor elements in the published safetensors"):
        certainty = "exact"
    return replace(counted, total=published["value"], certainty=certainty)


def _yarn(entry: _Entry) -> YarnRecommendation | None:
    found = entry.get("yarn")
    if not isinstance(found, Mapping) or "factor" not in found:
        return None
    note = f"; {found['note']}" if "note" in found else ""
    return YarnRecommendation(
        factor=float(found["factor"]),
        original_max_position_embeddings=int(found["original_max_position_embeddings"]),
        target_tokens=found.get("target_tokens"),
        source=f"{found['source']}{note}",
    )


def _sources(entry: _Entry) -> tuple[str, ...]:
    lines = [f"config: {entry['source']}; {entry['confidence']}"]
    exceptions = entry.get("exceptions")
    if isinstance(exceptions, Mapping):
        lines += [f"{', '.join(fields)}: {label}" for label, fields in exceptions.items()]
    lines += [f"not known: {', '.join(_strings(entry, 'unknown'))}"] if "unknown" in entry else []
    return (*lines, *_strings(entry, "notes"))


def _strings(entry: _Entry, key: str) -> tuple[str, ...]:
    found = entry.get(key)
    return tuple(str(item) for item in found) if isinstance(found, list) else ()


def _checkpoint_rows(entry: _Entry) -> tuple[_Entry, ...]:
    rows = entry.get("checkpoints")
    return tuple(row for row in rows if isinstance(row, Mapping)) if isinstance(rows, list) else ()


def _expanded_config(entry: _Entry) -> _Entry:
    return cast("_Entry", _expanded(entry["config"]))


def _expanded(value: object) -> object:
    """Undo the two short forms of long lists: {"cycle": [...], "length": n} and {"runs": [[item, n], ...]}."""
    if isinstance(value, list):
        return [_expanded(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if set(value) == {"cycle", "length"}:
        return [value["cycle"][index % len(value["cycle"])] for index in range(value["length"])]
    if set(value) == {"runs"}:
        return [item for item, times in value["runs"] for _ in range(times)]
    return {key: _expanded(item) for key, item in value.items()}


def _is_name(word: str) -> bool:
    return _NAME.fullmatch(word) is not None and _folder().joinpath(f"{word}.json").is_file()


def _folder() -> Traversable:
    return files("longreach.model") / "data" / "models"


@cache
def _read(name: str) -> _Entry:
    return cast("_Entry", json.loads(_folder().joinpath(f"{name}.json").read_text(encoding="utf-8")))


@cache
def _architectures() -> Mapping[str, list[str]]:
    return cast("Mapping[str, list[str]]", json.loads(_data("architectures.json")))


@cache
def _checkpoints() -> Mapping[str, list[str | None]]:
    """Lower-case Hub id -> [catalogue name, quantization or null]."""
    return cast("Mapping[str, list[str | None]]", json.loads(_data("checkpoints.json")))


def _data(name: str) -> str:
    return (files("longreach.model") / "data" / name).read_text(encoding="utf-8")
