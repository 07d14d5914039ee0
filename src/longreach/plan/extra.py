"""Arguments after `--`: what the engine's options know fills its field, what a plan option decides is sent back, the rest
travels untouched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from longreach.engine.arguments import Arguments, split_arguments
from longreach.engine.checks import raise_problems
from longreach.engine.defaults import fallback_dtype
from longreach.engine.flags import FLAGS
from longreach.engine.options import EngineOptions
from longreach.engine.reading import read_command
from longreach.engine.release import Release
from longreach.errors import UsageError
from longreach.hardware.spec import GpuSpec
from longreach.model.spec import ModelSpec
from longreach.plan.goal import Goal
from longreach.sizing.formats import DTYPE_BYTES
from longreach.units import did_you_mean

_SERVE = ("vllm", "serve")
_SECRETS = {"--api-key": "VLLM_API_KEY", "--hf-token": "HF_TOKEN"}

_DECIDED = {
    "served_model_name": "--served-model-name",
    "host": "--host",
    "port": "--port",
    "tensor_parallel_size": "--tp",
    "pipeline_parallel_size": "--pp",
    "data_parallel_size": "--dp",
    "decode_context_parallel_size": "--dcp",
    "max_model_len": "--max-model-len",
    "kv_cache_dtype": "--kv-cache-dtype",
    "kv_cache_memory_bytes": "--kv-cache-memory-bytes",
    "gpu_memory_utilization": "--gpu-memory-utilization",
    "block_size": "--block-size",
    "enable_prefix_caching": "--no-prefix-caching",
    "max_num_batched_tokens": "--max-num-batched-tokens",
    "max_num_seqs": "--max-num-seqs",
    "speculative": "--spec",
    "offload": "--cpu-tier",
    "yarn": "--yarn",
    "mm_ipc_gpu_memory_gb": "--mm-ipc-gpu-memory-gb",
}
"""Fields that sizes and speed are counted from, with the option of `plan` that sets them."""

_OPEN = ("yarn", "offload")  # JSON flags that hold other things, too

_OVERRIDES, _CONNECTOR = "--hf-overrides", "--kv-transfer-config"
_BY_HAND = "leave it out, or write it into argv of plan.yaml, where `up` shows what it changes"
_UNCOUNTED = {
    "--model": ("the model is named before the dashes", "name it before the dashes, with --model-path where it lies elsewhere"),
    "--config": ("what that file sets is not read", "give its settings as options of plan, or one by one after the dashes"),
    "--hf-config-path": ("the model is counted from its own config", "plan that folder: MODEL may be a folder or a config.json"),
    "--rope-scaling": ("the reach of the model is counted without it", "give --yarn before the dashes"),
    "--rope-theta": ("the rope is taken from the model's config", _BY_HAND),
    "--num-gpu-blocks-override": ("the KV cache is sized without it", "give --kv-cache-memory-bytes before the dashes"),
    "--kv-offloading-size": ("the tier would stand in no number", "give --cpu-tier before the dashes"),
    "--prefill-context-parallel-size": ("GPUs are shared out without it", "give --tp or --dcp before the dashes"),
    "--disable-sliding-window": ("windows are counted as windows", _BY_HAND),
    "--max-num-scheduled-tokens": ("chunks are counted at --max-num-batched-tokens", "lower that before the dashes"),
    "--nnodes": ("one box is planned", "leave it out: longreach plans one box"),
    "--mamba-block-size": ("blocks of recurrent state are counted at the release's own size", _BY_HAND),
}  # fmt: skip
"""Flags that change what is counted and that nothing here counts: why each would mislead, and what to do instead."""


_STATE = ("--mamba-cache-mode", "--mamba-cache-dtype", "--mamba-ssm-cache-dtype")
"""Flags without a field of EngineOptions that decide how much recurrent state is kept."""


@dataclass(frozen=True, slots=True)
class Extra:
    """What stands after `--`: fields of EngineOptions, and the words that are none. `state`: fields of KvCacheRequest by name."""

    fields: Mapping[str, Any]
    rest: tuple[str, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cache_fields(self) -> Mapping[str, Any]:
        """Fields of KvCacheRequest that the words set beside those with a property of their own."""
        skipped = self.fields.get("kv_cache_dtype_skip_layers")
        return {**self.state, "kv_cache_dtype_skip_layers": tuple(skipped)} if skipped else self.state

    @property
    def has_kv_connector(self) -> bool:
        """Whether a connector of another kind than the planned tiers is asked for."""
        return any(word.partition("=")[0] == _CONNECTOR for word in self.rest)

    @property
    def async_scheduling(self) -> bool:
        """Whether the command leaves asynchronous scheduling on."""
        return self.fields.get("async_scheduling") is not False

    @property
    def hybrid_kv_cache_manager(self) -> bool:
        """Whether layers of different kinds keep their own groups."""
        return not self.fields.get("disable_hybrid_kv_cache_manager")

    @property
    def enforce_eager(self) -> bool:
        """Whether no CUDA graphs are captured."""
        return bool(self.fields.get("enforce_eager"))

    @property
    def text_only(self) -> bool:
        """Whether no image or video is admitted, so that vLLM loads no tower."""
        limits = dict(self.fields.get("limit_mm_per_prompt") or ())
        return bool(self.fields.get("language_model_only")) or (limits.get("image"), limits.get("video")) == (0, 0)


def read_extra(words: Sequence[str], release: Release) -> Extra:
    """UsageError for what a plan option decides, for a secret, and for what vLLM's parser would refuse."""
    _refuse_secrets(words)
    split = split_arguments((*_SERVE, *words), release)
    _refuse_uncounted(split)
    reading = read_command((*_SERVE, "MODEL", *words), (), release)
    raise_problems(reading.problems)
    fields: dict[str, Any] = {}
    for flag in (argument.flag for argument in reading.arguments if argument.flag is not None):
        value = getattr(reading.options, flag.field)
        if flag.field in _OPEN and value is None:
            continue  # a connector of another kind, or an override that no size hangs on
        if flag.field in _DECIDED:
            why = f"the plan counts with it: {flag.name} behind its back would make every number wrong"
            raise UsageError(f"{flag.name} stands after --", why, f"give {_DECIDED[flag.field]} before the dashes")
        fields[flag.field] = value
        if flag.field == "cudagraph_mode":
            fields["compilation_extra"] = reading.options.compilation_extra
    named = {name: split.parsed.value(name) for name in _STATE}
    state = {name.removeprefix("--").replace("-", "_"): value for name, value in named.items() if value is not None}
    return Extra(fields, reading.options.extra_args, state)


def _refuse_secrets(words: Sequence[str]) -> None:
    for word in words:
        name = word.partition("=")[0].replace("_", "-")
        if name in _SECRETS:
            why = "it would stand in the plan file, in the log and in the list of processes"
            raise UsageError(f"{name} stands after --", why, f"set {_SECRETS[name]} in the environment of longreach up")


def _refuse_uncounted(split: Arguments) -> None:
    """UsageError for words that belong to no flag and for flags behind which the numbers of the plan would be wrong."""
    names = dict.fromkeys(use.name for use in split.parsed.uses)
    for name in filter(_UNCOUNTED.get, names):
        why, fix = _UNCOUNTED[name]
        raise UsageError(f"{name} stands after --", f"the plan does not count with it: {why}", fix)
    if split.model is not None and not any(problem.kind == "unknown_flag" for problem in split.parsed.problems):
        why = "the model is named before the dashes, and every other value follows its flag"
        raise UsageError(f"'{split.model}' stands after -- and belongs to no flag", why, f"remove '{split.model}'")
    if _OVERRIDES in names:
        _check_overrides(split.parsed.json(_OVERRIDES))


def _check_overrides(overrides: Mapping[str, object] | None) -> None:
    """Which class serves the model changes no size; everything else in its config may."""
    if overrides is None:
        why = "the plan cannot count what it cannot read, and vLLM takes an object here"
        raise UsageError(f"{_OVERRIDES} after -- is no JSON object", why, f"{_OVERRIDES} '{{}}', or leave it out")
    keys = [key for key in overrides if key != "architectures"]
    if keys:
        why = "the plan counts the model as its own config describes it"
        fix = "give --yarn before the dashes for a longer reach; else change a copy of config.json and plan that file"
        raise UsageError(f"{_OVERRIDES} after -- sets {', '.join(keys)}", why, fix)


_ALSO = {
    "limit_mm_per_prompt": "images_per_prompt",
    "mm_processor_kwargs": "mm_processor_kwargs",
    "cudagraph_mode": "cudagraph_mode",
    "disable_custom_all_reduce": "disable_custom_all_reduce",
    "scheduler_reserve_full_isl": "reserve_full_isl",
}
"""Fields of EngineOptions that no size hangs on, with the field of Goal that sets them, too."""


def check_said_once(goal: Goal, extra: Extra) -> None:
    """UsageError where an option of the plan and a flag after `--` set one thing."""
    twice = {
        field: option for field, option in _ALSO.items() if field in extra.fields and getattr(goal, option) is not None
    }
    clashes = [(flag.name, twice[flag.field]) for flag in FLAGS if flag.field in twice and flag.key is None]
    if goal.cpu_tier_bytes is not None and extra.has_kv_connector:
        clashes.append((_CONNECTOR, "cpu_tier"))
    for name, option in clashes:
        given = f"--{option.replace('_', '-')}"
        raise UsageError(
            f"{name} after -- clashes with {given}",
            "both set the same thing",
            f"leave one of the two out: {given} is counted",
        )


def with_extra(options: EngineOptions, extra: Extra) -> EngineOptions:
    """The options with what was given after `--`."""
    return replace(options, **extra.fields, extra_args=extra.rest)


def with_dtype(model: ModelSpec, extra: Extra, gpu: GpuSpec | None) -> ModelSpec:
    """The model in the type it runs in: of `--dtype` after `--`, else its own, where the card has it."""
    _check_quantization(model, extra.fields.get("quantization"))
    given = extra.fields.get("dtype")
    if given in (None, "auto"):
        if gpu is None or model.dtype != "bfloat16":
            return model
        given = fallback_dtype(model.architecture, gpu.compute_capability) or model.dtype
    if given not in DTYPE_BYTES:
        known = ("auto", *DTYPE_BYTES)
        raise UsageError(
            f"unknown --dtype '{given}'", f"known are {', '.join(known)}", did_you_mean(given, known) or "auto"
        )
    weights, ratio = model.weights, DTYPE_BYTES[given] / DTYPE_BYTES.get(model.dtype, 2)
    if weights.quantization == "none" and weights.total_bytes is not None and ratio != 1:
        source = f"{weights.source}, as {given}"
        weights = replace(weights, total_bytes=int(weights.total_bytes * ratio), source=source)
    return replace(model, dtype=given, weights=weights)


def _check_quantization(model: ModelSpec, given: str | None) -> None:
    """UsageError where vLLM would quantize weights that are counted as they lie in the checkpoint."""
    if given is not None and model.weights.quantization == "none":
        why = f"the weights of '{model.name}' are counted as their checkpoint holds them, and vLLM would quantize them"
        raise UsageError(
            f"--quantization {given} stands after --",
            why,
            "give --weights before the dashes, with the form they then have",
        )
