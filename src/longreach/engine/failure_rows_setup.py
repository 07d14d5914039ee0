"""Refusals because something is set up wrongly: speculation, offload, NUMA, model files, the command itself. Pure."""

from longreach.engine.failure_patterns import FailurePattern

_SPECULATION = (
    FailurePattern(
        "speculative_method_unsupported",
        r"Unsupported speculative method: '(?P<name>[^']*)'",
        "this model has no head for method {name}",
        "leave --speculative-config out, or use ngram",
    ),
    FailurePattern(
        "speculative_tokens_not_multiple",
        r"num_speculative_tokens:(?P<tokens>\d+) must be divisible by n_predict=(?P<step>\d+)",
        "the draft head predicts {step} tokens a step, so {tokens} is no whole number of steps",
        "set num_speculative_tokens to a multiple of {step}",
    ),
    FailurePattern(
        "speculative_tokens_missing",
        r"num_speculative_tokens must be provided|`?num_speculative_tokens`? was not provided",
        "the draft length is missing",
        'add "num_speculative_tokens": 3 to --speculative-config',
    ),
    FailurePattern(
        "speculative_key_unknown",
        r"'(?P<key>\w+)' is not a valid argument in the speculative_config",
        "{key} does not belong into --speculative-config",
        "remove {key}",
    ),
    FailurePattern(
        "argmax_reduction_unsupported",
        r"use_local_argmax_reduction is enabled but draft model (?P<name>\S+) does not implement",
        "{name} cannot reduce its argmax locally",
        "remove use_local_argmax_reduction",
    ),
    FailurePattern(
        "speculative_flag_twice",
        r"(?P<flag>--spec-\w+) and --speculative-config\['(?P<key>\w+)'\] are mutually exclusive",
        "{key} is given twice, by {flag} and in --speculative-config",
        "remove {flag}",
    ),
)
_OFFLOAD = (
    FailurePattern(
        "kv_role_missing",
        r"Please specify kv_role",
        "--kv-transfer-config names no role",
        'add "kv_role": "kv_both"',
    ),
    FailurePattern(
        "kv_connector_unknown",
        r"Unsupported connector type: (?P<name>\S+)",
        "this release has no KV connector {name}",
        '"kv_connector": "OffloadingConnector"',
    ),
    FailurePattern(
        "offload_with_expandable_segments",
        r"incompatible with PYTORCH_CUDA_ALLOC_CONF=expandable_segments|is incompatible with .*expandable_segments:True",
        "KV connectors register fixed memory and expandable segments move it",
        "unset PYTORCH_CUDA_ALLOC_CONF",
    ),
    FailurePattern(
        "connector_without_hybrid_manager",
        r"Connector (?P<name>\S+) does not support HMA but HMA is enabled",
        "{name} cannot serve several KV groups",
        "OffloadingConnector, or --disable-hybrid-kv-cache-manager for models without recurrent layers",
    ),
    FailurePattern(
        "offload_hybrid_no_hma",
        r"Hybrid KV cache manager is disabled but failed to convert the KV cache specs to one unified type",
        "a hybrid model needs the hybrid KV cache manager, and it is off",
        "remove --disable-hybrid-kv-cache-manager, or use OffloadingConnector",
    ),
    FailurePattern(
        "offload_bytes_missing",
        r"cpu_bytes_to_use must be specified|num_cpu_blocks must be specified",
        "the CPU tier has no size",
        'add "cpu_bytes_to_use" (bytes over all workers) to kv_connector_extra_config',
    ),
    FailurePattern(
        "offload_chunk_given_twice",
        r"Specify only one of 'block_size' or 'blocks_per_chunk'",
        "the chunk size is given in tokens and in blocks",
        "keep blocks_per_chunk",
    ),
    FailurePattern(
        "offload_chunk_not_multiple",
        r"'block_size'\D*(?P<size>\d+).*must be a multiple of the GPU KV cache block size \((?P<block>\d+) tokens\)"
        r"(?:\. Use (?P<use>\d+) instead)?",
        "an offload chunk of {size} tokens is no whole number of blocks of {block}",
        '"blocks_per_chunk": 1 in place of block_size',
    ),
    FailurePattern(
        "offload_spec_unknown",
        r"Unsupported spec type: (?P<name>\S+)",
        "this release has no offload spec {name}",
        '"spec_name": "TieringOffloadingSpec"',
    ),
    FailurePattern(
        "offload_tiers_malformed",
        r"secondary_tiers must be a list|Secondary tier configuration must include 'type'",
        "secondary_tiers is a list of tiers, each with a type",
        '"secondary_tiers": [{{"type": "fs", "root_dir": "/PATH"}}]',
    ),
    FailurePattern(
        "offload_tier_unknown",
        r"Unknown secondary tier type:? (?P<name>\S+)",
        "this release has no tier {name}",
        '"type": "fs"',
    ),
    FailurePattern(
        "disk_tier_unusable",
        r"Error: \[Errno \d+\] (?P<reason>[^:]+): '(?P<path>/[^']*_[0-9a-f]{12})(?:/config\.json)?'$",
        "the disk tier cannot be written: {reason}: {path}",
        "name a folder that the engine may write, with --disk-tier or as root_dir of the fs tier",
    ),
    FailurePattern(
        "offload_policy_unknown",
        r"Unknown cache policy: (?P<name>[^.\s]+)",
        "this release has no eviction policy {name}",
        '"eviction_policy": "lru", or "arc"',
    ),
    FailurePattern(
        "offload_threshold_with_tiers",
        r"store_threshold is not supported for TieringOffloadingSpec",
        "store_threshold and disk tiers exclude each other",
        "remove store_threshold",
    ),
    FailurePattern(
        "offload_needs_gpu",
        r"CPU Offloading is currently only supported on CUDA-alike",
        "the CPU build offers no offload of its own, and longreach's plugin was not loaded",
        "pip install --no-deps longreach in the engine's environment (for vLLM 0.32), and where VLLM_PLUGINS is set add "
        "longreach_cpu_offload to it; or leave --kv-transfer-config out",
    ),
    FailurePattern(
        "offload_plugin_refuses",
        r"longreach\.vllm_ext: (?P<what>.+) \(why: (?P<why>.+); fix: (?P<fix>.+)\)",
        "{what}: {why}",
        "{fix}",
    ),
)
_NUMA = (
    FailurePattern(
        "numactl_missing",
        r"numactl is required for NUMA binding",
        "--numa-bind runs workers through numactl, which is not installed",
        "apt-get install numactl, or leave --numa-bind out",
    ),
    FailurePattern(
        "numa_topology_unknown",
        r"could not detect the GPU-to-NUMA topology",
        "vLLM cannot see which GPU hangs on which NUMA node",
        "--numa-bind-nodes with one node number for each GPU",
    ),
    FailurePattern(
        "numa_nodes_too_few",
        r"GPU index (?P<gpu>\d+) exceeds numa_bind_nodes size (?P<size>\d+)",
        "--numa-bind-nodes names {size} nodes and GPU {gpu} has none",
        "--numa-bind-nodes with one node number for each GPU",
    ),
    FailurePattern(
        "numa_bind_missing",
        r"numa_bind_nodes and numa_bind_cpus require numa_bind=True",
        "nodes are named and binding is off",
        "--numa-bind",
    ),
)
_MODEL = (
    FailurePattern(
        "model_not_found",
        r"Invalid repository ID or local directory specified|Repo id must be in the form|Repository Not Found for url",
        "the model is neither a folder here nor a repository there",
        "check the path; a private repository needs HF_TOKEN",
    ),
    FailurePattern(
        "model_not_cached_and_hub_unreachable",
        r"We couldn't connect to '(?P<url>[^']*)' to load the files"
        r"|LocalEntryNotFoundError: .*(?:cannot find|not found).*local cache",
        "the model is neither a folder here nor in the cache, and the hub cannot be reached",
        "check the path of a local folder; or fetch the model first where there is a network (hf download)",
    ),
    FailurePattern(
        "model_config_missing",
        r"Could not detect config format for no config file found",
        "the folder holds no config.json",
        "name the folder that holds config.json",
    ),
    FailurePattern(
        "weights_missing",
        r"Cannot find any model weights with `(?P<path>[^`]*)`",
        "{path} holds no weights",
        "finish the download, or --load-format dummy to try without weights",
    ),
    FailurePattern(
        "model_import_failed",
        r"Model architectures (?P<names>\[.*?\]) failed to be inspected",
        "the class of {names} could not be imported: a Python package is missing, named further up",
        "install the package that the lines above name (often torchvision)",
    ),
    FailurePattern(
        "vllm_too_old_for_model",
        r"Model architectures (?P<names>\[.*?\]) are not supported for now|does not recognize this architecture"
        r"|Cannot find model module",
        "this release of vLLM does not know the model",
        "a newer vLLM",
    ),
    FailurePattern(
        "remote_code_not_trusted",
        r"Failed to load the model config.*trust[-_]remote[-_]code|requires you to execute the configuration file",
        "the model brings its own Python code",
        "--trust-remote-code, when you trust its author",
    ),
)
_FRONTEND = (
    FailurePattern(
        "tool_choice_flags_missing",
        r"--enable-auto-tool-choice requires --tool-call-parser",
        "automatic tool choice needs a parser",
        "--tool-call-parser NAME",
    ),
    FailurePattern(
        "tool_parser_unknown",
        r"invalid tool call parser: (?P<name>\S+)",
        "this release has no tool parser {name}",
        "take one of the names in the message",
    ),
    FailurePattern(
        "reasoning_parser_unknown",
        r"invalid reasoning parser: (?P<name>\S+)|Reasoning parser '(?P<other>[^']*)' not found"
        r"|argument --reasoning-parser: invalid choice",
        "this release has no such reasoning parser",
        "take one of the names in the message",
    ),
    FailurePattern(
        "port_in_use",
        r"\[Errno 98\].*[Aa]ddress already in use",
        "another process listens on that port",
        "--port with a free one; ss -ltnp shows who holds it",
    ),
    FailurePattern(
        "no_free_port",
        r"Could not find open port after (?P<tries>\d+) attempts",
        "no free port was found in {tries} tries",
        "unset VLLM_PORT, or give a range that is free",
    ),
    FailurePattern(
        "missing_positional_model",
        r"`model` should be provided as the first positional argument|the following arguments are required: model_tag"
        r"|No model specified!",
        "the command names no model",
        "vllm serve MODEL ...",
    ),
    FailurePattern(
        "flag_unknown",
        r"(?:^|error: )unrecognized arguments: (?P<flags>.*)",
        "this release does not know: {flags}",
        "remove it, or look up its new name with vllm serve --help",
    ),
    FailurePattern(
        "json_quoting",
        r"argument (?P<flag>--[\w-]+)\S*: Value (?P<value>(?:[{'\"\\]|\w+=).*) cannot be converted",
        "{flag} got text that is not JSON: {value}",
        'quote it once for the shell: {flag} \'{{"key": "value"}}\'',
    ),
    FailurePattern(
        "flag_value_invalid",
        r"error: argument (?P<flag>--[\w-]+)\S*: (?P<reason>.*)",
        "{flag} is refused: {reason}",
        "give {flag} a value that this release takes",
    ),
    FailurePattern(
        "config_file_invalid",
        r"Config file must be of a yaml/yml type",
        "--config takes YAML",
        "rename the file to .yaml",
    ),
)
_WORKER = (
    FailurePattern(
        "frontend_gone",
        r"Did not receive response from front-end process",
        "the API server process was gone when its engine core was ready",
        "look up what ended the API server; start again without a time limit around it",
    ),
    FailurePattern(
        "multimodal_flag_on_text_model",
        r"`(?P<name>\w+)` is only supported for multimodal models",
        "{name} is set and the model is taken for a text model",
        "leave the multimodal flag out, or a newer vLLM that knows the model as multimodal",
    ),
    FailurePattern(
        "worker_killed",
        r"Worker proc (?P<name>\S+) died unexpectedly \(exit code: -(?P<signal>(?!15)\d+)\)",
        "{name} was ended by signal {signal}; 9 is most often the kernel out of memory",
        "dmesg -T | tail; give the container more memory or lower cpu_bytes_to_use",
    ),
)

SETUP_PATTERNS = (*_SPECULATION, *_OFFLOAD, *_NUMA, *_MODEL, *_FRONTEND, *_WORKER)
