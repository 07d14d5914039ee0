"""What else can be tried where a rule's own edit does not do: a smaller split, or doing without a feature. Pure.

An edit from here gives up as little as it can of what the command asks for, so that the server starts.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import ceil

from longreach.engine.flag_values import write_value
from longreach.engine.parsing.json_repair import repair_json
from longreach.engine.parsing.successors import find_successor
from longreach.engine.registry import Family
from longreach.lint.deployment import deployment_of
from longreach.rules.edit import Edit, remove_flag, set_flag
from longreach.rules.finding import Finding
from longreach.rules.parser_edits import succeed
from longreach.rules.written import WrittenCommand
from longreach.sizing.overrides import TEXT_KEYS

Mends = Callable[[WrittenCommand], Iterator[Edit]]

_SPECULATION = "--speculative-config"
_OFFLOAD = ("--kv-transfer-config", "--kv-offloading-size", "--kv-offloading-backend")
_MANAGER_OFF = "--disable-hybrid-kv-cache-manager"
_TOOLS = ("--tool-call-parser", "--enable-auto-tool-choice")
_REASONING = ("--reasoning-parser", "--enable-reasoning")
_MOST_SPLIT = 64
_ROPE_DICTS = ("rope_scaling", "rope_parameters")


def other_edits(finding: Finding, written: WrittenCommand) -> Iterator[Edit]:
    """Edits to try one after another, the one that gives up least first; none for most findings."""
    if finding.severity != "error":
        return
    mends = _BY_CAUSE.get(finding.cause)
    if mends is not None:
        yield from mends(written)
    elif finding.outcome == "refused_by_parser":
        for name, mend in _BY_FLAG.items():
            if finding.what.startswith(f"{name} "):
                yield from mend(written)


def _without(*names: str) -> Mends:
    def mends(_: WrittenCommand) -> Iterator[Edit]:
        yield remove_flag(*names)

    return mends


def _smaller_splits(written: WrittenCommand) -> Iterator[Edit]:
    for size in range(min(written.options.tensor_parallel_size - 1, _MOST_SPLIT), 0, -1):
        yield set_flag("--tensor-parallel-size", str(size))


def _other_parser(family: Family, *names: str) -> Mends:
    """The parser of the model's family that the release has, else none at all."""

    def mends(written: WrittenCommand) -> Iterator[Edit]:
        model = written.model
        if model is not None:
            known = model.tool_call_parsers if family == "tool_parser" else model.reasoning_parsers
            yield from (set_flag(names[0], name) for name in known if name in written.registry.names(family))
        yield remove_flag(*names)

    return mends


def _wider_kv_dtype(written: WrittenCommand) -> Iterator[Edit]:
    """FP8 where the card stores it, else as wide as the model computes."""
    asked = written.value("--kv-cache-dtype")
    yield from (set_flag("--kv-cache-dtype", name) for name in ("fp8", "auto") if name != asked)


def _without_backend(_: WrittenCommand) -> Iterator[Edit]:
    yield Edit(remove=("--attention-backend",), unset_env=("VLLM_ATTENTION_BACKEND",))


def _without_stages(written: WrittenCommand) -> Iterator[Edit]:
    """Speculation stays where the same GPUs can be a wider split; else it goes."""
    options = written.options
    size = options.tensor_parallel_size * options.pipeline_parallel_size
    yield Edit(set=(("--tensor-parallel-size", (str(size),)),), remove=("--pipeline-parallel-size",))
    yield remove_flag(_SPECULATION)


def _without_newer_flags(written: WrittenCommand) -> Iterator[Edit]:
    yield from (remove_flag(use.name) for use in written.parsed.uses if use.entry is None and not use.from_config)


def _native_length(written: WrittenCommand) -> Iterator[Edit]:
    deployment = deployment_of(written)
    if deployment is not None:
        yield set_flag("--max-model-len", str(deployment.model.max_position_embeddings))


def _without_unread_rope(written: WrittenCommand) -> Iterator[Edit]:
    """What the release does not read, or takes for the whole config of the language model, goes."""
    overrides, model = written.parsed.json("--hf-overrides") or {}, written.model
    path = model.rope.override_path if model is not None and model.rope is not None else ()
    kept = {key: value for key, value in overrides.items() if key not in (*TEXT_KEYS, *path)}
    yield set_flag("--hf-overrides", write_value(kept)) if kept else remove_flag("--hf-overrides")


def _mtp_or_no_drafts(written: WrittenCommand) -> Iterator[Edit]:
    if written.model is not None and "mtp" in written.model.spec_methods:
        yield set_flag(_SPECULATION, write_value({"method": "mtp", **(written.speculative or {})}))
    yield remove_flag(_SPECULATION)


def _rope_with_its_quotes(written: WrittenCommand) -> Iterator[Edit]:
    for use in written.parsed.named("--rope-scaling"):
        value, successor = repair_json(use.value or ""), find_successor(use.name, written.registry)
        edit = None
        if value is not None and successor is not None:
            edit = succeed(written, replace(use, values=(value,)), successor)
        if edit is not None:
            yield edit


def _renamed_rope_type(written: WrittenCommand) -> Iterator[Edit]:
    overrides = written.parsed.json("--hf-overrides")
    if overrides is not None:
        yield set_flag("--hf-overrides", write_value(_with_rope_type(overrides)))


def _with_rope_type(part: Mapping[str, object]) -> dict[str, object]:
    inner = {key: _with_rope_type(value) if isinstance(value, Mapping) else value for key, value in part.items()}
    for key in _ROPE_DICTS:
        rope = inner.get(key)
        if isinstance(rope, dict) and "type" in rope:
            inner[key] = {("rope_type" if name == "type" else name): value for name, value in rope.items()}
    return inner


def _longer_yarn(written: WrittenCommand) -> Iterator[Edit]:
    """The factor, in quarters, that reaches the length asked for."""
    length = written.options.max_model_len
    for name in ("--rope-scaling", "--hf-overrides"):
        found = written.parsed.json(name)
        if found is not None and length is not None:
            yield set_flag(name, write_value(_with_factor(found, length)))


def _with_factor(part: Mapping[str, object], length: int) -> dict[str, object]:
    inner = {key: _with_factor(value, length) if isinstance(value, Mapping) else value for key, value in part.items()}
    factor, original = inner.get("factor"), inner.get("original_max_position_embeddings")
    if isinstance(factor, int | float) and isinstance(original, int) and original > 0:
        inner["factor"] = max(factor, ceil(4 * length / original) / 4)
    return inner


_BY_CAUSE: Mapping[str, Mends] = {
    "fp8_blocks_split": _smaller_splits,
    "offload_hybrid_no_hma": _without(*_OFFLOAD, _MANAGER_OFF),
    "pp_with_spec": _without_stages,
    "path_name_switches_method": _without(_SPECULATION),
    "unknown_spec_method": _without(_SPECULATION),
    "draft_vocabulary_differs": _without(_SPECULATION),
    "backend_not_on_platform": _without_backend,
    "fp8_kv_on_flash_attention_2": _without_backend,
    "unknown_reasoning_parser": _other_parser("reasoning_parser", *_REASONING),
    "unknown_tool_parser": _other_parser("tool_parser", *_TOOLS),
    "rope_type_missing": _renamed_rope_type,
    "removed_flag": _rope_with_its_quotes,
    "visible_devices_below_world_size": _smaller_splits,
    "yarn_factor_too_small": _longer_yarn,
    "spec_method_missing": _mtp_or_no_drafts,
    "max_len_over_derived": _native_length,
    "hf_override_wrong_level": _without_unread_rope,
    "nested_override_unsupported": _without_unread_rope,
    "flag_too_new": _without_newer_flags,
}

MENDED_CAUSES = frozenset(_BY_CAUSE)

_BY_FLAG: Mapping[str, Mends] = {
    "--reasoning-parser": _other_parser("reasoning_parser", *_REASONING),
    "--tool-call-parser": _other_parser("tool_parser", *_TOOLS),
    "--kv-cache-dtype": _wider_kv_dtype,
    "--max-model-len 'auto'": _without("--max-model-len"),
    "--max-model-len '-1'": _without("--max-model-len"),
}
"""What the parser refuses of a flag, by the words that the finding begins with; the length is the model's own without the flag."""
