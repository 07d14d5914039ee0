"""What is wrong with options by themselves: values, combinations, releases. What a model or a machine adds is a rule's."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from longreach.engine.flag_values import ABSENT_TEXTS, write_value
from longreach.engine.flags import FLAGS, Flag, registry_of
from longreach.engine.json_flags import JSON_FLAGS
from longreach.engine.options import EngineOptions, OptionProblem
from longreach.engine.registry import releases_with_flag, releases_with_name, releases_with_offload_key, version_key
from longreach.engine.release import Release
from longreach.errors import UsageError
from longreach.units import did_you_mean

CUDAGRAPH_MODES = ("NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")


def check_options(options: EngineOptions, release: Release) -> tuple[OptionProblem, ...]:
    """Every problem of these options on that release, not the first; empty when there is none."""
    return (
        *_check_texts(options),
        *_check_sizes(options),
        *_check_json(options),
        *_check_memory(options),
        *_check_scheduler(options),
        *_check_parallel(options),
        *_check_speculative(options),
        *_check_offload(options, release),
        *_check_yarn(options),
        *_check_frontend(options),
        *_check_release(options, release),
    )


def raise_problems(problems: tuple[OptionProblem, ...]) -> None:
    """UsageError that tells all of them, the first one's words first."""
    if not problems:
        return
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    whys = "; ".join(f"{problem.what}: {problem.why}" if more else problem.why for problem in problems)
    raise UsageError(problems[0].what + more, whys, "; ".join(dict.fromkeys(problem.fix for problem in problems)))


def _check_texts(options: EngineOptions) -> Iterator[OptionProblem]:
    texts = {flag.field: flag.name for flag in FLAGS if flag.kind == "text" and flag.key is None} | {
        "model": "the model"
    }
    for field, name in texts.items():
        value = getattr(options, field)
        if value is not None and (value in ABSENT_TEXTS or value.startswith("-") or "\0" in value):
            why = "vLLM's parser takes a leading '-' for a flag, '' and 'None' for no value, and no word holds a NUL"
            yield OptionProblem(f"{name} {value!r} cannot be put on a command line", why, f"give {name} another value")
    for key, value in options.env:
        if not key.isidentifier() or "\0" in value:
            why = "a name is letters, digits and underscores, and no value holds a NUL"
            yield OptionProblem(f"environment variable {key!r} cannot be set", why, f"remove {key!r} from env")


_POSITIVE = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "decode_context_parallel_size",
    "max_model_len",
    "kv_cache_memory_bytes",
    "block_size",
    "max_num_batched_tokens",
    "max_num_seqs",
    "speculative.num_speculative_tokens",
    "speculative.prompt_lookup_max",
    "offload.cpu_bytes",
    "offload.blocks_per_chunk",
    "offload.num_disk_read_threads",
    "offload.num_disk_write_threads",
    "yarn.original_max_position_embeddings",
)


def _check_sizes(options: EngineOptions) -> Iterator[OptionProblem]:
    yield from _check_positive(options, _POSITIVE)
    if not 1 <= options.port <= 65535:
        yield OptionProblem(f"port {options.port} does not exist", "ports are 1 to 65535", "--port 8000")


def _check_positive(options: EngineOptions, paths: Sequence[str]) -> Iterator[OptionProblem]:
    for path in paths:
        value: object = options
        for part in path.split("."):
            value = None if value is None else getattr(value, part)
        if isinstance(value, int) and value < 1:
            yield OptionProblem(f"{path} is {value}", "it counts something and starts at 1", f"set {path} to 1 or more")


def _check_json(options: EngineOptions) -> Iterator[OptionProblem]:
    for name, flag in JSON_FLAGS.items():
        written = flag.encode(options)
        try:
            write_value(written)
        except (TypeError, ValueError) as error:
            yield OptionProblem(
                f"{name} cannot be written as JSON", str(error), "use numbers, texts, lists and mappings"
            )


def check_values(options: EngineOptions) -> tuple[OptionProblem, ...]:
    """Values of JSON settings outside what they can mean, whatever the release; those of plain flags are in `parsing.ranges`."""
    return tuple(_check_positive(options, [path for path in _POSITIVE if "." in path]))


def in_range(options: EngineOptions) -> EngineOptions:
    """The options without the settings that have such values."""
    bad = {problem.what.partition(".")[0] for problem in check_values(options)}
    return replace(
        options,
        speculative=None if "speculative" in bad else options.speculative,
        offload=None if "offload" in bad else options.offload,
        yarn=None if "yarn" in bad else options.yarn,
    )


def _check_shares(options: EngineOptions) -> Iterator[OptionProblem]:
    share = options.gpu_memory_utilization
    if share is not None and not 0 < share <= 1:
        why = "it is the share of GPU memory that vLLM may use"
        yield OptionProblem(f"gpu_memory_utilization {share} is not in (0, 1]", why, "--gpu-memory-utilization 0.9")
    reserved = options.mm_ipc_gpu_memory_gb
    if reserved is not None and not (math.isfinite(reserved) and reserved >= 0):
        why = "it is memory taken from the KV cache"
        yield OptionProblem(f"mm_ipc_gpu_memory_gb {reserved} is not a size", why, "--mm-ipc-gpu-memory-gb 0")


def _check_memory(options: EngineOptions) -> Iterator[OptionProblem]:
    yield from _check_shares(options)
    share = options.gpu_memory_utilization
    if share is not None and options.kv_cache_memory_bytes is not None:
        yield OptionProblem(
            "kv_cache_memory_bytes and gpu_memory_utilization are both given",
            "explicit KV bytes win and vLLM ignores the utilization",
            "keep --kv-cache-memory-bytes alone, or --gpu-memory-utilization alone",
        )
    if options.max_model_len is not None and options.max_model_len_auto:
        why = "'auto' asks vLLM to choose the length"
        yield OptionProblem("max_model_len is both given and 'auto'", why, f"--max-model-len {options.max_model_len}")


def _check_scheduler(options: EngineOptions) -> Iterator[OptionProblem]:
    batch, seqs, length = options.max_num_batched_tokens, options.max_num_seqs, options.max_model_len
    if batch is not None and seqs is not None and batch < seqs:
        yield OptionProblem(
            f"max_num_batched_tokens {batch} is smaller than max_num_seqs {seqs}",
            "every running sequence needs at least one token of the batch; vLLM refuses",
            f"--max-num-batched-tokens {seqs}, or --max-num-seqs {batch}",
        )
    if options.enable_chunked_prefill is False and batch is not None and length is not None and batch < length:
        yield OptionProblem(
            f"max_num_batched_tokens {batch} is smaller than max_model_len {length} with chunked prefill off",
            "a prompt must then fit one batch; vLLM refuses",
            f"--enable-chunked-prefill, or --max-num-batched-tokens {length}",
        )
    mode = options.cudagraph_mode
    if mode is not None and mode not in CUDAGRAPH_MODES:
        why = f"the modes are {', '.join(CUDAGRAPH_MODES)}"
        fix = did_you_mean(mode, CUDAGRAPH_MODES) or '--compilation-config \'{"cudagraph_mode":"PIECEWISE"}\''
        yield OptionProblem(f"unknown cudagraph_mode {mode!r}", why, fix)
    yield from _check_extra("compilation_extra", options.compilation_extra, ("cudagraph_mode",))


def _check_parallel(options: EngineOptions) -> Iterator[OptionProblem]:
    tp, dcp = options.tensor_parallel_size, options.decode_context_parallel_size
    if dcp > 0 and tp % dcp:
        why = "decode context parallelism splits the tensor-parallel group"
        fix = f"--decode-context-parallel-size {math.gcd(tp, dcp)}"
        yield OptionProblem(f"decode_context_parallel_size {dcp} does not divide tensor_parallel_size {tp}", why, fix)
    nodes = options.numa_bind_nodes
    if nodes is None:
        return
    if not options.numa_bind:
        why = "numa_bind_nodes requires numa_bind"
        yield OptionProblem("numa_bind_nodes is given without numa_bind", why, "--numa-bind")
    workers = tp * options.pipeline_parallel_size
    if len(nodes) < workers or min(nodes, default=-1) < 0:
        why = f"one node number of 0 or more is needed for each of {workers} workers"
        yield OptionProblem(f"numa_bind_nodes {list(nodes)} does not name a node for every GPU", why, "add the nodes")


def _check_speculative(options: EngineOptions) -> Iterator[OptionProblem]:
    spec = options.speculative
    if spec is None:
        return
    if not spec.method:
        yield OptionProblem("speculative method is empty", "vLLM needs its name", "--spec mtp:3")
    written = ("method", "num_speculative_tokens", "use_local_argmax_reduction", "prompt_lookup_max")
    yield from _check_extra("speculative.extra", spec.extra, written)


def _check_extra(
    field: str, extra: tuple[tuple[str, object], ...], written: tuple[str, ...]
) -> Iterator[OptionProblem]:
    keys = [key for key, _ in extra]
    for key in sorted({key for key in keys if key in written or keys.count(key) > 1}):
        why = "one key has one value; this one is a field of its own or is given twice"
        yield OptionProblem(f"{field} repeats {key!r}", why, f"remove {key!r} from {field}")


def _check_offload(options: EngineOptions, release: Release) -> Iterator[OptionProblem]:
    offload = options.offload
    if offload is None:
        return
    extra = dict(offload.extra)
    connectors = releases_with_name("connector", "OffloadingConnector")
    if release.version not in connectors:
        why = f"its connector exists from {connectors[0]} on"
        yield OptionProblem(f"offload does not exist in vLLM {release.version}", why, "leave offload out")
    yield from _check_extra("offload.extra", offload.extra, ("cpu_bytes_to_use", "eviction_policy", "spec_module_path"))
    if offload.eviction_policy not in ("lru", "arc") and "cache_policy_module_path" not in extra:
        fix = did_you_mean(offload.eviction_policy, ("lru", "arc")) or '"eviction_policy": "lru"'
        yield OptionProblem(f"unknown eviction policy {offload.eviction_policy!r}", "vLLM has lru and arc", fix)
    if (offload.spec_name is None) != (offload.spec_module_path is None):
        why = "vLLM imports the class spec_name from the module spec_module_path"
        yield OptionProblem(
            "an out-of-tree offload spec is half named", why, "give spec_name and spec_module_path, or neither"
        )
    threads = (offload.num_disk_read_threads, offload.num_disk_write_threads)
    if offload.disk_path is None and threads != (None, None):
        why = "the threads belong to the disk tier"
        yield OptionProblem("disk threads are given without a disk tier", why, "name a disk_path")
    if offload.disk_path is not None and (not offload.disk_path or "\0" in offload.disk_path):
        yield OptionProblem("the disk tier's path is empty or holds a NUL", "vLLM creates files there", "name a folder")
    if any("expandable_segments:True" in value for key, value in options.env if key in _ALLOCATOR_VARIABLES):
        why = "KV connectors are incompatible with expandable_segments; vLLM refuses since 0.21"
        yield OptionProblem("offload with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", why, "unset the variable")
    for key in extra:
        releases = releases_with_offload_key(key)
        if releases and release.version not in releases:
            why = f"vLLM {release.version} ignores it silently; it exists from {releases[0]} to {releases[-1]}"
            yield OptionProblem(f"offload key {key!r} does not exist in {release.version}", why, f"remove {key!r}")


_ALLOCATOR_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")


def _check_yarn(options: EngineOptions) -> Iterator[OptionProblem]:
    yarn = options.yarn
    if yarn is None:
        return
    if not (math.isfinite(yarn.factor) and yarn.factor >= 1):
        yield OptionProblem(
            f"YaRN factor {yarn.factor} does not lengthen", "it multiplies the native length", "use 1 or more"
        )
    if "rope_parameters" in yarn.override_path:
        why = "the path names the config that holds the rope parameters"
        yield OptionProblem("the YaRN override path names rope_parameters itself", why, "use () or ('text_config',)")
    yield from _check_extra("yarn.rope_parameters", yarn.rope_parameters, ())


def _check_frontend(options: EngineOptions) -> Iterator[OptionProblem]:
    if options.enable_auto_tool_choice and options.tool_call_parser is None:
        why = "vLLM refuses to start: --enable-auto-tool-choice requires --tool-call-parser"
        yield OptionProblem("enable_auto_tool_choice without tool_call_parser", why, "add --tool-call-parser NAME")
    for modality, limit in options.limit_mm_per_prompt or ():
        if limit < 0:
            why = "vLLM's parser lets negative limits pass and fails later"
            yield OptionProblem(f"limit_mm_per_prompt {modality} is {limit}", why, f"set {modality} to 0 or more")
    for field in ("limit_mm_per_prompt", "mm_processor_kwargs"):
        yield from _check_extra(field, getattr(options, field) or (), ())


def _check_release(options: EngineOptions, release: Release) -> Iterator[OptionProblem]:
    for flag in FLAGS:
        value = getattr(options, flag.field)
        if flag.key is None and value not in (None, flag.absent):
            yield from _check_flag(flag, value, release)
    registry = registry_of(release)
    if options.cudagraph_mode is not None and "cudagraph_mode" not in registry.settings["CompilationConfig"]:
        what = f"cudagraph_mode does not exist in vLLM {release.version}"
        yield OptionProblem(what, "its --compilation-config has no such key", "leave cudagraph_mode out")
    dtype, known = options.kv_cache_dtype, sorted(registry.names("kv_cache_dtype"))
    if dtype is None or dtype in known:
        return
    releases = releases_with_name("kv_cache_dtype", dtype)
    if releases:
        what, why = (
            f"kv_cache_dtype {dtype!r} does not exist in vLLM {release.version}",
            f"it exists from {releases[0]}",
        )
        yield OptionProblem(what, why, "--kv-cache-dtype fp8")
    else:
        fix = did_you_mean(dtype, known) or "--kv-cache-dtype auto"
        yield OptionProblem(f"unknown kv_cache_dtype {dtype!r}", f"known are {', '.join(known)}", fix)


def _check_flag(flag: Flag, value: object, release: Release) -> Iterator[OptionProblem]:
    entry = registry_of(release).find(flag.name)
    if entry is None:
        releases = releases_with_flag(flag.name)
        newer = [version for version in releases if version_key(version) > version_key(release.version)]
        why = f"vLLM has {flag.name} from {releases[0]} to {releases[-1]}"
        fix = f"leave {flag.field} out, or plan for vLLM {newer[0] if newer else releases[-1]}"
        yield OptionProblem(f"{flag.name} does not exist in vLLM {release.version}", why, fix)
    elif value is False and entry.kind == "switch":
        why = f"{flag.name} is a switch there, without {flag.negated}; left out, it is off"
        yield OptionProblem(
            f"{flag.name} cannot be turned off in vLLM {release.version}", why, f"leave {flag.field} out"
        )
