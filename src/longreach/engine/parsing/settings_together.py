"""Keys of a settings class that vLLM's parser refuses together, though each by itself is fine. Pure.

Read in the validators of the classes, and when each came.
"""

from collections.abc import Callable, Iterator, Mapping

from longreach.engine.parsing.json_values import TRUE_WORDS, read_number
from longreach.engine.registry import version_key

_Object = Mapping[str, object]


def check_together(settings: str, read: _Object, version: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What a release says about the keys of one object that pass one by one, and the key with its value that is usual there."""
    number = version_key(version)
    for owner, first, text, refuses in _ROWS:
        if owner == settings and number >= version_key(first) and refuses(read):
            yield text, _USUAL.get(text, ())


def _lacks(wanted: str, given: str) -> Callable[[_Object], bool]:
    return lambda read: read.get(given) is not None and read.get(wanted) is None


def _both(one: str, other: str) -> Callable[[_Object], bool]:
    return lambda read: read.get(one) is not None and read.get(other) is not None


def _is_on(read: _Object, key: str, *, default: bool = False) -> bool:
    value = read.get(key, default)
    return value.lower() in TRUE_WORDS if isinstance(value, str) else bool(value)


def _needs(key: str, other: str, *values: object, default: object = None) -> Callable[[_Object], bool]:
    """A switch that is taken only where another key has one of these values."""
    return lambda read: _is_on(read, key) and read.get(other, default) not in values


def _only_with(key: str, profiler: str) -> Callable[[_Object], bool]:
    return lambda read: bool(read.get(key)) and read.get("profiler") != profiler


def _profiler_lacks(profiler: str, key: str) -> Callable[[_Object], bool]:
    return lambda read: read.get("profiler") == profiler and not read.get(key)


def _any_number(key: str, wrong: Callable[[float], bool]) -> Callable[[_Object], bool]:
    def refuses(read: _Object) -> bool:
        values = read.get(key)
        numbers = [read_number(value) for value in values] if isinstance(values, list) else []
        return any(number is not None and wrong(number) for number in numbers)

    return refuses


def _op_names(read: _Object) -> list[str]:
    values = read.get("custom_ops")
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def _has_bad_op(read: _Object) -> bool:
    return any(name not in ("all", "none") and (len(name) < 2 or name[0] not in "+-") for name in _op_names(read))


def _ops_conflict(read: _Object) -> bool:
    names = _op_names(read)
    return sum(name in ("all", "none") for name in names) > 1 or any(
        f"-{name[1:]}" in names for name in names if name[:1] == "+"
    )


def _compiles_elsewhere(read: _Object) -> bool:
    mode = read.get("mode")
    piecewise = mode == 3 or (isinstance(mode, str) and mode.upper() == "VLLM_COMPILE")
    return piecewise and read.get("backend", "") not in ("", "eager", "inductor")


def _negative_beside_encoder_graphs(counted: str) -> Callable[[_Object], bool]:
    key = f"encoder_cudagraph_max_{counted}_per_batch"
    return lambda read: _is_on(read, "cudagraph_mm_encoder") and (read_number(read.get(key)) or 0) < 0


def _misuses_thp(read: _Object) -> bool:
    return _is_on(read, "use_thp") and (
        not _is_on(read, "cpu_offload", default=True) or _is_on(read, "dp_shared_memory")
    )


_PROTON_DEFAULTS: _Object = {
    "proton_profiler_dir": "",
    "proton_context": "shadow",
    "proton_data": "tree",
    "proton_backend": None,
    "proton_mode": None,
    "proton_hook": None,
    "proton_output_format": None,
}


def _proton_without_proton(read: _Object) -> bool:
    changed = any(read.get(key, default) != default for key, default in _PROTON_DEFAULTS.items())
    return read.get("profiler") != "proton" and (changed or _is_on(read, "proton_graph_attribution"))


def _proton_format_of_other_data(read: _Object) -> bool:
    wanted = {"chrome_trace": "trace", "hatchet": "tree", "hatchet_msgpack": "tree"}.get(
        str(read.get("proton_output_format"))
    )
    return wanted is not None and read.get("proton_data", "tree") != wanted


def _repeats_activity(read: _Object) -> bool:
    values = read.get("torch_profiler_activities")
    return isinstance(values, list) and len(values) != len(set(map(str, values)))


_Refuses = Callable[[_Object], bool]
_ROWS: tuple[tuple[str, str, str, _Refuses], ...] = (
    ("KVTransferConfig", "0.8.5", "kv_connector needs kv_role", _lacks("kv_role", "kv_connector")),
    ("ECTransferConfig", "0.11.2", "ec_connector needs ec_role", _lacks("ec_role", "ec_connector")),
    (
        "EncoderCacheManagerConfig",
        "0.28.0",
        "manager_config needs encoder_cache_manager_cls",
        lambda read: bool(read.get("manager_config")) and read.get("encoder_cache_manager_cls") is None,
    ),
    (
        "StructuredOutputsConfig",
        "0.9.2",
        "disable_any_whitespace needs the backend xgrammar or guidance",
        _needs("disable_any_whitespace", "backend", "xgrammar", "guidance"),
    ),
    (
        "StructuredOutputsConfig",
        "0.9.2",
        "disable_additional_properties needs the backend guidance",
        _needs("disable_additional_properties", "backend", "guidance"),
    ),
    (
        "EngramConfig",
        "0.30.0",
        "dp_shared_memory needs cpu_offload",
        lambda read: _is_on(read, "dp_shared_memory") and not _is_on(read, "cpu_offload", default=True),
    ),
    ("EngramConfig", "0.31.0", "use_thp needs cpu_offload, and no dp_shared_memory", _misuses_thp),
    (
        "EPLBConfig",
        "0.24.0",
        "the communicators torch_nccl and pynccl do not go with use_async, which is on by default",
        lambda read: _is_on(read, "use_async", default=True) and read.get("communicator") in ("torch_nccl", "pynccl"),
    ),
    ("PoolerConfig", "0.14.1", "pooling_type excludes seq_pooling_type", _both("pooling_type", "seq_pooling_type")),
    ("PoolerConfig", "0.14.1", "pooling_type excludes tok_pooling_type", _both("pooling_type", "tok_pooling_type")),
    ("PoolerConfig", "0.20.2", "logit_sigma cannot be 0", lambda read: read_number(read.get("logit_sigma")) == 0),
    (
        "QuantizationConfigArgs",
        "0.30.0",
        "linear does not go with a scheme that is for experts alone",
        lambda read: read.get("linear") in ("int8_per_channel_weight_only", "nvfp4_per_token"),
    ),
    ("QuantizationConfigArgs", "0.30.0", "targets excludes linear", _both("targets", "linear")),
    ("QuantizationConfigArgs", "0.30.0", "targets excludes moe", _both("targets", "moe")),
    (
        "CompilationConfig",
        "0.11.0",
        "custom_ops takes 'all', 'none', '+name' and '-name'",
        _has_bad_op,
    ),
    ("CompilationConfig", "0.27.1", "custom_ops contradicts itself", _ops_conflict),
    (
        "CompilationConfig",
        "0.20.2",
        "encoder_cudagraph_max_frames_per_batch is negative",
        _negative_beside_encoder_graphs("frames"),
    ),
    (
        "CompilationConfig",
        "0.20.2",
        "encoder_cudagraph_max_vision_items_per_batch is negative",
        _negative_beside_encoder_graphs("vision_items"),
    ),
    ("CompilationConfig", "0.11.2", "mode VLLM_COMPILE needs the backend inductor or eager", _compiles_elsewhere),
    (
        "CompilationConfig",
        "0.22.1",
        "encoder_cudagraph_token_budgets takes positive numbers",
        _any_number("encoder_cudagraph_token_budgets", lambda number: number <= 0),
    ),
    (
        "CompilationConfig",
        "0.32.0",
        "decoder_replay_cudagraph_capture_sizes takes positive numbers",
        _any_number("decoder_replay_cudagraph_capture_sizes", lambda number: number <= 0),
    ),
    (
        "ProfilerConfig",
        "0.13.0",
        "torch_profiler_dir needs the profiler torch",
        _only_with("torch_profiler_dir", "torch"),
    ),
    (
        "ProfilerConfig",
        "0.13.0",
        "the profiler torch needs torch_profiler_dir",
        _profiler_lacks("torch", "torch_profiler_dir"),
    ),
    (
        "ProfilerConfig",
        "0.26.0",
        "capture_torch_profiler needs the profiler torch",
        _needs("capture_torch_profiler", "profiler", "torch"),
    ),
    (
        "ProfilerConfig",
        "0.31.0",
        "torch_profiler_activities needs the profiler torch",
        lambda read: read.get("torch_profiler_activities") is not None and read.get("profiler") != "torch",
    ),
    ("ProfilerConfig", "0.31.0", "torch_profiler_activities repeats a name", _repeats_activity),
    ("ProfilerConfig", "0.28.0", "the proton keys need the profiler proton", _proton_without_proton),
    (
        "ProfilerConfig",
        "0.28.0",
        "the profiler proton needs proton_profiler_dir",
        _profiler_lacks("proton", "proton_profiler_dir"),
    ),
    ("ProfilerConfig", "0.30.0", "proton_output_format is of another proton_data", _proton_format_of_other_data),
    (
        "ProfilerConfig",
        "0.30.0",
        "proton_graph_attribution needs proton_data tree",
        _needs("proton_graph_attribution", "proton_data", "tree", default="tree"),
    ),
)
"""Settings class, first release of the registry with the check, the words, and what of an object (its keys as given) is refused."""

_USUAL: Mapping[str, tuple[str, str]] = {
    "kv_connector needs kv_role": ("kv_role", "kv_both"),
    "ec_connector needs ec_role": ("ec_role", "ec_both"),
}
"""The key and the value that mend a conflict, where nearly every command has the same."""
