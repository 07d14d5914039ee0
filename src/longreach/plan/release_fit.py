"""What a release lacks: of what a plan would choose it is left out, with a word about it; of what was asked for it is an error.
Pure.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import Any

from longreach.engine.flags import FLAGS
from longreach.engine.options import EngineOptions, YarnOptions
from longreach.engine.registry import REGISTRY_VERSIONS, Registry, get_registry
from longreach.engine.release import Release
from longreach.errors import UsageError
from longreach.plan.goal import Goal
from longreach.plan.values import Choice
from longreach.rules.deployment import Deployment
from longreach.rules.speculation import argmax_reduction_unsupported
from longreach.sizing.overrides import NESTED_SINCE, rope_dict_key

_OWN_CHOICES = frozenset({"numa_bind", "enable_prompt_tokens_details", "enable_chunked_prefill"})
_SWITCHES = ("bool", "switch")
_CPU_TIER_KEY = "cpu_bytes_to_use"


def goal_for_release(goal: Goal, release: Release, device_type: str) -> tuple[Goal, tuple[Choice, ...]]:
    """Where the KV cache cannot be given in bytes, vLLM sizes it by its share of the card. UsageError for a tier and for drafts
    that the release does not know.
    """
    registry = get_registry(release.version)
    _check_tier(goal, registry)
    _check_drafts(goal, registry)
    is_open = goal.kv_cache_memory_bytes is None and goal.gpu_memory_utilization is None
    if not is_open or device_type == "cpu" or registry.find("--kv-cache-memory-bytes") is not None:
        return goal, ()
    share = release.default_gpu_memory_utilization
    why = (
        f"vLLM {release.version} has no --kv-cache-memory-bytes: it sizes the KV cache itself, by its own default share"
    )
    return replace(goal, gpu_memory_utilization=share), (Choice("--gpu-memory-utilization", f"{share:g}", why),)


def fit_to_release(options: EngineOptions, probe: Deployment) -> tuple[EngineOptions, tuple[Choice, ...]]:
    """The options without what the release does not know; `probe` is the deployment that they make."""
    lacks = list(_lacking(options, get_registry(probe.release.version)))
    without: dict[str, Any] = dict.fromkeys(field for field, _ in lacks)
    fitted = replace(options, **without)
    if any(argmax_reduction_unsupported.check(probe)) and fitted.speculative is not None:
        fitted = replace(fitted, speculative=replace(fitted.speculative, use_local_argmax_reduction=False))
    return fitted, tuple(choice for _, choice in lacks if choice is not None)


def with_older_rope(options: EngineOptions, release: Release) -> EngineOptions:
    """YaRN as releases before 0.12 read it: `rope_scaling` in the config, with `rope_theta` beside it."""
    if options.yarn is None or rope_dict_key(release) == "rope_parameters":
        return options
    if options.yarn.override_path and release.number < NESTED_SINCE:
        raise UsageError(
            f"vLLM {release.version} cannot stretch the rope of this model",
            "its text model is nested in the config, and an override of a nested config replaces the whole of it there",
            "a length without YaRN (--yarn none), or --vllm 0.11.2 or newer",
        )
    words = ("--hf-overrides", json.dumps(_older_override(options.yarn), separators=(",", ":")))
    return replace(options, yarn=None, extra_args=(*options.extra_args, *words))


def _older_override(yarn: YarnOptions) -> dict[str, Any]:
    parameters = dict(yarn.rope_parameters)
    beside = {"rope_theta": parameters.pop("rope_theta")} if "rope_theta" in parameters else {}
    scaling = {
        "rope_type": "yarn",
        "factor": yarn.factor,
        "original_max_position_embeddings": yarn.original_max_position_embeddings,
        **parameters,
    }
    inner = {"rope_scaling": scaling, **beside, "max_position_embeddings": yarn.max_position_embeddings}
    return reduce(lambda nested, key: {key: nested}, reversed(yarn.override_path), inner)


def _check_tier(goal: Goal, registry: Registry) -> None:
    if goal.cpu_tier_bytes is None or _takes_cpu_tier(registry):
        return
    first = next(version for version in REGISTRY_VERSIONS if _takes_cpu_tier(get_registry(version)))
    raise UsageError(
        f"vLLM {registry.version} has no CPU tier of a size in bytes",
        f"OffloadingConnector takes {_CPU_TIER_KEY} from {first} on",
        f"leave --cpu-tier out, or --vllm {first} or newer",
    )


def _takes_cpu_tier(registry: Registry) -> bool:
    return any(_CPU_TIER_KEY in keys for keys in registry.offload_keys.values())


def _check_drafts(goal: Goal, registry: Registry) -> None:
    method = (goal.speculation or "none").partition(":")[0]
    if method not in ("mtp", "ngram") or method in registry.names("spec_method"):
        return
    first = next(version for version in REGISTRY_VERSIONS if method in get_registry(version).names("spec_method"))
    raise UsageError(
        f"vLLM {registry.version} has no speculative method '{method}'",
        f"the name is known from {first} on",
        f"--spec none, or --vllm {first} or newer",
    )


def _lacking(options: EngineOptions, registry: Registry) -> Iterator[tuple[str, Choice | None]]:
    """Fields to leave out, each with the word about it."""
    vllm = f"vLLM {registry.version}"
    for flag in FLAGS:
        if flag.field in _OWN_CHOICES and getattr(options, flag.field) is not None:
            entry = registry.find(flag.name)
            if entry is None:
                yield flag.field, Choice(flag.name, "left out", f"{vllm} does not have it")
            elif entry.kind not in _SWITCHES:
                yield flag.field, None
    reasoning, tools = options.reasoning_parser, options.tool_call_parser
    if reasoning is not None and reasoning not in registry.names("reasoning_parser"):
        yield "reasoning_parser", Choice("--reasoning-parser", "left out", f"{vllm} has no '{reasoning}'")
    if tools is not None and tools not in registry.names("tool_parser"):
        yield "tool_call_parser", Choice("--tool-call-parser", "left out", f"{vllm} has no '{tools}'")
        yield "enable_auto_tool_choice", None
