"""The JSON flags of `vllm serve`: options to the mapping a flag carries, and back.

An encoder returns None when the options ask for nothing. A decoder returns None for a mapping that the options cannot
express exactly; it then travels untouched in `extra_args`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from longreach.engine.options import YARN_KEYS, EngineOptions, OffloadOptions, SpeculativeOptions, YarnOptions

JsonObject = dict[str, object]


@dataclass(frozen=True, slots=True)
class JsonFlag:
    """How one JSON flag is written and read. `decode` returns fields of EngineOptions."""

    encode: Callable[[EngineOptions], JsonObject | None]
    decode: Callable[[Mapping[str, object]], JsonObject | None]


def _encode_speculative(options: EngineOptions) -> JsonObject | None:
    spec = options.speculative
    if spec is None:
        return None
    written: JsonObject = {"method": spec.method, "num_speculative_tokens": spec.num_speculative_tokens}
    if spec.use_local_argmax_reduction:
        written["use_local_argmax_reduction"] = True
    if spec.prompt_lookup_max is not None:
        written["prompt_lookup_max"] = spec.prompt_lookup_max
    return written | dict(spec.extra)


def _decode_speculative(value: Mapping[str, object]) -> JsonObject | None:
    rest = dict(value)
    method, tokens = rest.pop("method", None), rest.pop("num_speculative_tokens", None)
    argmax, lookup = rest.pop("use_local_argmax_reduction", False), rest.pop("prompt_lookup_max", None)
    if not isinstance(method, str) or not _is_int(tokens) or not isinstance(argmax, bool):
        return None
    if lookup is not None and not _is_int(lookup):
        return None
    # Model-specific names (`qwen3_5_mtp`) are deprecated spellings of `mtp` in every release here.
    method = "mtp" if method.endswith("_mtp") else method
    return {"speculative": SpeculativeOptions(method, tokens, argmax, lookup, tuple(rest.items()))}


_TIERING_SPEC = "TieringOffloadingSpec"  # the default, CPUOffloadingSpec, ignores secondary_tiers without a word


def _encode_offload(options: EngineOptions) -> JsonObject | None:
    offload = options.offload
    if offload is None:
        return None
    extra: JsonObject = {"cpu_bytes_to_use": offload.cpu_bytes, "eviction_policy": offload.eviction_policy}
    if offload.blocks_per_chunk is not None:
        extra["blocks_per_chunk"] = offload.blocks_per_chunk
    if offload.offload_prompt_only is not None:
        extra["offload_prompt_only"] = offload.offload_prompt_only
    if offload.spec_name is not None:
        extra["spec_name"] = offload.spec_name
    elif offload.disk_path is not None:
        extra["spec_name"] = _TIERING_SPEC
    if offload.spec_module_path is not None:
        extra["spec_module_path"] = offload.spec_module_path
    if offload.disk_path is not None:
        extra["secondary_tiers"] = [_encode_disk_tier(offload)]
    return {
        "kv_connector": "OffloadingConnector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": extra | dict(offload.extra),
    }


def _encode_disk_tier(offload: OffloadOptions) -> JsonObject:
    tier: JsonObject = {"type": "fs", "root_dir": offload.disk_path}
    if offload.num_disk_read_threads is not None:
        tier["n_read_threads"] = offload.num_disk_read_threads
    if offload.num_disk_write_threads is not None:
        tier["n_write_threads"] = offload.num_disk_write_threads
    return tier


def _decode_offload(value: Mapping[str, object]) -> JsonObject | None:
    rest = dict(value)
    connector = rest.pop("kv_connector", None), rest.pop("kv_role", None)
    extra = rest.pop("kv_connector_extra_config", None)
    if connector != ("OffloadingConnector", "kv_both") or rest or not isinstance(extra, Mapping):
        return None
    return _decode_offload_extra(dict(extra))


_OFFLOAD_FIELDS: tuple[tuple[str, str, type], ...] = (
    ("cpu_bytes_to_use", "cpu_bytes", int),
    ("eviction_policy", "eviction_policy", str),
    ("blocks_per_chunk", "blocks_per_chunk", int),
    ("offload_prompt_only", "offload_prompt_only", bool),
    ("spec_module_path", "spec_module_path", str),
)


def _decode_offload_extra(extra: JsonObject) -> JsonObject | None:
    fields: JsonObject = {}
    for key, field, kind in _OFFLOAD_FIELDS:
        if key in extra and type(extra[key]) is kind:
            fields[field] = extra.pop(key)
    if "cpu_bytes" not in fields:
        return None
    disk = _decode_disk_tier(extra.get("secondary_tiers"))
    own_spec, spec_name = "spec_module_path" in fields, extra.get("spec_name")
    if disk is not None and (own_spec or spec_name == _TIERING_SPEC):
        fields |= disk
        del extra["secondary_tiers"]
        if not own_spec:
            del extra["spec_name"]
    if own_spec and isinstance(spec_name, str):
        fields["spec_name"] = extra.pop("spec_name")
    return {"offload": OffloadOptions(**fields, extra=tuple(extra.items()))}  # type: ignore[arg-type]


def _decode_disk_tier(tiers: object) -> JsonObject | None:
    """The fields of one filesystem tier; None when the list is anything else."""
    if not isinstance(tiers, list) or len(tiers) != 1 or not isinstance(tiers[0], Mapping):
        return None
    tier = dict(tiers[0])
    path = tier.pop("root_dir", None)
    read, write = tier.pop("n_read_threads", None), tier.pop("n_write_threads", None)
    if tier != {"type": "fs"} or not isinstance(path, str):
        return None
    if any(threads is not None and not _is_int(threads) for threads in (read, write)):
        return None
    return {"disk_path": path, "num_disk_read_threads": read, "num_disk_write_threads": write}


def _encode_yarn(options: EngineOptions) -> JsonObject | None:
    yarn = options.yarn
    if yarn is None:
        return None
    rope: JsonObject = {
        "rope_type": "yarn",
        "factor": yarn.factor,
        "original_max_position_embeddings": yarn.original_max_position_embeddings,
    }
    written: JsonObject = {
        "rope_parameters": rope | dict(yarn.rope_parameters),
        "max_position_embeddings": yarn.max_position_embeddings,
    }
    for key in reversed(yarn.override_path):
        written = {key: written}
    return written


def _decode_yarn(value: Mapping[str, object]) -> JsonObject | None:
    path: list[str] = []
    while "rope_parameters" not in value:
        if len(value) != 1 or not isinstance(inner := next(iter(value.values())), Mapping):
            return None
        path.append(next(iter(value)))
        value = inner
    rope = value["rope_parameters"]
    if not isinstance(rope, Mapping) or rope.get("rope_type") != "yarn" or "type" in rope:
        return None
    factor, original = rope.get("factor"), rope.get("original_max_position_embeddings")
    if not isinstance(factor, int | float) or isinstance(factor, bool) or not _is_int(original):
        return None
    rest = tuple((key, item) for key, item in rope.items() if key not in YARN_KEYS)
    yarn = YarnOptions(factor, original, tuple(path), rest)
    scaled = {"rope_parameters": rope, "max_position_embeddings": yarn.max_position_embeddings}
    return {"yarn": yarn} if dict(value) == scaled else None


def _encode_compilation(options: EngineOptions) -> JsonObject | None:
    mode: JsonObject = {} if options.cudagraph_mode is None else {"cudagraph_mode": options.cudagraph_mode}
    return mode | dict(options.compilation_extra) or None


def _decode_compilation(value: Mapping[str, object]) -> JsonObject | None:
    rest = dict(value)
    mode = rest.pop("cudagraph_mode", None)
    if mode is not None and not isinstance(mode, str):
        return None
    return {"cudagraph_mode": mode and mode.upper(), "compilation_extra": tuple(rest.items())}


def _encode_mm_limit(options: EngineOptions) -> JsonObject | None:
    return None if options.limit_mm_per_prompt is None else dict(options.limit_mm_per_prompt)


def _decode_mm_limit(value: Mapping[str, object]) -> JsonObject | None:
    plain = all(_is_int(limit) for limit in value.values())
    return {"limit_mm_per_prompt": tuple(value.items())} if plain else None


def _encode_mm_processor(options: EngineOptions) -> JsonObject | None:
    return None if options.mm_processor_kwargs is None else dict(options.mm_processor_kwargs)


def _decode_mm_processor(value: Mapping[str, object]) -> JsonObject | None:
    return {"mm_processor_kwargs": tuple(value.items())}


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


JSON_FLAGS: dict[str, JsonFlag] = {
    "--speculative-config": JsonFlag(_encode_speculative, _decode_speculative),
    "--kv-transfer-config": JsonFlag(_encode_offload, _decode_offload),
    "--hf-overrides": JsonFlag(_encode_yarn, _decode_yarn),
    "--compilation-config": JsonFlag(_encode_compilation, _decode_compilation),
    "--limit-mm-per-prompt": JsonFlag(_encode_mm_limit, _decode_mm_limit),
    "--mm-processor-kwargs": JsonFlag(_encode_mm_processor, _decode_mm_processor),
}
"""By flag name; the rows of the same name in `flags.FLAGS` give spelling and releases."""
