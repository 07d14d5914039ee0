"""Arguments after `--`: what the engine's options know fills its field, what a plan option decides is sent back, the rest
travels untouched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from longreach.engine.arguments import split_arguments
from longreach.engine.checks import raise_problems
from longreach.engine.defaults import fallback_dtype
from longreach.engine.options import EngineOptions
from longreach.engine.reading import read_command
from longreach.engine.release import Release
from longreach.errors import UsageError
from longreach.hardware.spec import GpuSpec
from longreach.model.spec import ModelSpec
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


@dataclass(frozen=True, slots=True)
class Extra:
    """What stands after `--`: fields of EngineOptions, and the words that are none."""

    fields: Mapping[str, Any]
    rest: tuple[str, ...] = ()

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
    model = split_arguments((*_SERVE, *words), release).model
    if model is not None:
        why = "the model is named before the dashes, and every other value follows its flag"
        raise UsageError(f"'{model}' stands after -- and belongs to no flag", why, f"remove '{model}'")
    reading = read_command((*_SERVE, "MODEL", *words), (), release)
    raise_problems(reading.problems)
    fields: dict[str, Any] = {}
    for flag in (argument.flag for argument in reading.arguments if argument.flag is not None):
        value = getattr(reading.options, flag.field)
        if flag.field in _OPEN and value is None:
            continue  # an override or a connector of another kind
        if flag.field in _DECIDED:
            why = f"the plan counts with it: {flag.name} behind its back would make every number wrong"
            raise UsageError(f"{flag.name} stands after --", why, f"give {_DECIDED[flag.field]} before the dashes")
        fields[flag.field] = value
        if flag.field == "cudagraph_mode":
            fields["compilation_extra"] = reading.options.compilation_extra
    return Extra(fields, reading.options.extra_args)


def _refuse_secrets(words: Sequence[str]) -> None:
    for word in words:
        name = word.partition("=")[0].replace("_", "-")
        if name in _SECRETS:
            why = "it would stand in the plan file, in the log and in the list of processes"
            raise UsageError(f"{name} stands after --", why, f"set {_SECRETS[name]} in the environment of longreach up")


def with_extra(options: EngineOptions, extra: Extra) -> EngineOptions:
    """The options with what was given after `--`."""
    return replace(options, **extra.fields, extra_args=extra.rest)


def with_dtype(model: ModelSpec, extra: Extra, gpu: GpuSpec | None) -> ModelSpec:
    """The model in the type it runs in: of `--dtype` after `--`, else its own, where the card has it."""
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
