"""The options of `longreach plan`, each declared once: flag, field of Goal, how it is read, help."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from longreach.cli.params import BYTES, TOKENS, Decorated, FiniteRange, Names, json_object
from longreach.errors import UsageError
from longreach.plan.goal import Goal
from longreach.units import did_you_mean, shortened

WEIGHTS = ("bf16", "fp8", "fp8-weight-only", "w4a16", "w4a8-int8", "w8a8-int8", "nvfp4", "mxfp4")
_TIER_BYTES_SEPARATOR = ":"
_MOST_IPC_GIB = 1024  # more than any GPU has


@dataclass(frozen=True, slots=True)
class GoalOption:
    """One flag that fills one field of Goal; `constant` is what a bare switch stores."""

    flag: str
    field: str
    type: click.ParamType[Any] | None
    help: str
    metavar: str | None = None
    constant: Any = None

    @property
    def key(self) -> str:
        """The name inside `--instance NAME:key=value`."""
        return self.flag.removeprefix("--")


_SIZE = click.IntRange(1, 10**6)  # no count of GPUs, requests or tokens in a block is larger
_JSON_OBJECT = "JSON"


def _choices(*names: str) -> click.Choice[str]:
    return click.Choice(names)


def _kv_cache_dtypes() -> Iterable[str]:
    from longreach.engine.registry import get_registry
    from longreach.engine.release import DEFAULT_RELEASE

    return sorted(get_registry(DEFAULT_RELEASE).names("kv_cache_dtype"))


def _check_kv_cache_dtype(name: str) -> None:
    """UsageError for a name that no release has; what the planned one lacks is told by its rules."""
    from longreach.engine.registry import releases_with_name

    known = tuple(_kv_cache_dtypes())
    if not releases_with_name("kv_cache_dtype", name):
        fix = did_you_mean(name, known) or "--kv-cache-dtype auto"
        raise UsageError(f"unknown kv_cache_dtype '{shortened(name)}'", f"known are {', '.join(known)}", fix)


def _check_speculation(text: str) -> None:
    from longreach.plan.settle import parse_speculation

    parse_speculation(text)


def _check_yarn(text: str) -> None:
    from longreach.sizing.rope import parse_factor

    parse_factor(text)


_KV_CACHE_DTYPE = Names(_kv_cache_dtypes, _check_kv_cache_dtype)
_SPECULATION = Names(lambda: ("mtp:1", "ngram:5", "none"), _check_speculation)
_YARN = Names(lambda: ("auto", "none"), _check_yarn)

GOAL_OPTIONS: tuple[GoalOption, ...] = (
    GoalOption("--max-model-len", "max_model_len", TOKENS, "Longest request, prompt plus answer: 750k, 1M.", "TOKENS"),
    GoalOption("--concurrency", "concurrency", _SIZE, "Requests that should run at once.", "N"),
    GoalOption("--mean-input", "mean_input_tokens", TOKENS, "Typical prompt length.", "TOKENS"),
    GoalOption("--mean-output", "mean_output_tokens", TOKENS, "Typical answer length.", "TOKENS"),
    GoalOption("--ttft", "ttft_wish_s", FiniteRange(min=0, min_open=True), "Wished time to first token.", "SECONDS"),
    GoalOption("--tp", "tp_size", _SIZE, "Tensor-parallel GPUs of one instance.", "N"),
    GoalOption("--pp", "pp_size", _SIZE, "Pipeline stages.", "N"),
    GoalOption("--dp", "dp_size", _SIZE, "Data-parallel engines behind one port.", "N"),
    GoalOption("--dcp", "dcp_size", _SIZE, "Decode-context-parallel ranks inside the TP group.", "N"),
    GoalOption("--kv-cache-dtype", "kv_cache_dtype", _KV_CACHE_DTYPE, "auto, fp8_e4m3, nvfp4, ...", "DTYPE"),
    GoalOption("--kv-cache-memory-bytes", "kv_cache_memory_bytes", BYTES, "KV cache on each GPU: 10G (2^30).", "BYTES"),
    GoalOption(
        "--gpu-memory-utilization",
        "gpu_memory_utilization",
        FiniteRange(0, 1, min_open=True),
        "Let vLLM size the KV cache; the plan then gives a range.",
        "SHARE",
    ),
    GoalOption("--max-num-batched-tokens", "max_num_batched_tokens", TOKENS, "Size of a prefill chunk.", "TOKENS"),
    GoalOption("--max-num-seqs", "max_num_seqs", _SIZE, "Most requests that vLLM runs at once.", "N"),
    GoalOption("--block-size", "block_size", _SIZE, "KV block size in tokens.", "TOKENS"),
    GoalOption("--no-prefix-caching", "prefix_caching", None, "Turn prefix caching off.", constant=False),
    GoalOption(
        "--no-reserve-full-isl",
        "reserve_full_isl",
        None,
        "Start a prompt before all of it fits (--no-scheduler-reserve-full-isl).",
        constant=False,
    ),
    GoalOption("--spec", "speculation", _SPECULATION, "Speculative decoding: mtp:3, ngram:5, none.", "METHOD:N"),
    GoalOption("--yarn", "yarn", _YARN, "auto, none, or a factor.", "FACTOR"),
    GoalOption(
        "--cpu-tier", "cpu_tier_bytes", BYTES, "CPU memory for KV blocks, all workers together: 200GiB.", "BYTES"
    ),
    GoalOption("--disk-tier", "disk_tier", None, "Folder for KV blocks on disk, with an optional size.", "PATH[:SIZE]"),
    GoalOption("--eviction", "eviction_policy", _choices("lru", "arc"), "How the CPU tier evicts.", "POLICY"),
    GoalOption(
        "--images-per-prompt", "images_per_prompt", click.IntRange(0, 10**6), "Limit of images in one prompt.", "N"
    ),
    GoalOption("--mm-processor-kwargs", "mm_processor_kwargs", None, "Arguments of the image processor.", _JSON_OBJECT),
    GoalOption(
        "--mm-ipc-gpu-memory-gb",
        "mm_ipc_gpu_memory_gb",
        FiniteRange(0, _MOST_IPC_GIB),
        "GPU memory for image transfer; vLLM takes it out of the KV cache.",
        "GIB",
    ),
    GoalOption(
        "--cudagraph-mode",
        "cudagraph_mode",
        _choices("NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"),
        "CUDA graph mode.",
        "MODE",
    ),
    GoalOption("--disable-custom-all-reduce", "disable_custom_all_reduce", None, "Use NCCL only.", constant=True),
    GoalOption(
        "--model-path", "model_path", None, "What `vllm serve` is given, where it differs from MODEL.", "PATH|ID"
    ),
    GoalOption("--served-model-name", "served_model_name", None, "The name clients use.", "NAME"),
    GoalOption("--host", "host", None, "Address to listen on.", "HOST"),
    GoalOption("--port", "port", click.IntRange(1, 65535), "Port of the first instance; the next ones follow.", "PORT"),
)


def goal_options(function: Decorated) -> Decorated:
    """All goal options as click options, in order."""
    for option in reversed(GOAL_OPTIONS):
        decorate: Callable[[Decorated], Decorated]
        if option.type is None and option.constant is not None:
            decorate = click.option(
                option.flag, option.field, flag_value=option.constant, default=None, help=option.help
            )
        else:
            decorate = click.option(
                option.flag, option.field, type=option.type, metavar=option.metavar, help=option.help
            )
        function = decorate(function)
    return function


def goal_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of Goal from option values as they were read (None means not given)."""
    given = {name: value for name, value in values.items() if value is not None}
    if (disk_tier := given.pop("disk_tier", None)) is not None:
        given |= _disk_tier(disk_tier)
    if (kwargs := given.pop("mm_processor_kwargs", None)) is not None:
        pairs = json_object(kwargs, "--mm-processor-kwargs", '{"max_pixels": 1003520}')
        given["mm_processor_kwargs"] = tuple(pairs.items())
    return given


def check_goal(goal: Goal) -> Goal:
    """The goal itself; UsageError when two options of it exclude each other."""
    if goal.kv_cache_memory_bytes is not None and goal.gpu_memory_utilization is not None:
        raise UsageError(
            "both --kv-cache-memory-bytes and --gpu-memory-utilization are given",
            "vLLM ignores the second when the first is set",
            "keep --kv-cache-memory-bytes for exact numbers",
        )
    if goal.disk_tier_path is not None and goal.cpu_tier_bytes is None:
        raise UsageError(
            "--disk-tier needs --cpu-tier",
            "vLLM's disk tier stands behind the CPU tier: every block passes through it",
            "--cpu-tier 32GiB",
        )
    return goal


def _disk_tier(text: str) -> dict[str, Any]:
    path, separator, size = text.rpartition(_TIER_BYTES_SEPARATOR)
    if separator and size[:1].isdigit():
        return {"disk_tier_path": path, "disk_tier_bytes": BYTES.convert(size, None, None)}
    return {"disk_tier_path": text, "disk_tier_bytes": None}
