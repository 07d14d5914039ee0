"""Refusals because something does not fit: memory, length, steps, the split over GPUs, numeric kinds. Pure.

Texts are those of 0.32.0 with the older wordings beside them. Named groups of a pattern fill the braces of `meaning` and `fix`.
"""

from longreach.engine.failure_patterns import FailurePattern

_MEMORY = (
    FailurePattern(
        "kv_too_small_for_max_len",
        r"(?:max seq len \((?P<length>\d+)\),? \(?)?\b(?P<need>[\d.]+) GiB KV cache is needed"
        r"(?:.*?memory \((?P<have>[\d.]+) GiB\))?"
        r"(?:.*estimated maximum model length is (?P<fits>\d+))?",
        "a request of {length} tokens needs {need} GiB of KV cache and {have} GiB are there",
        "--max-model-len {fits}, or more KV memory: --kv-cache-dtype fp8, more GPUs, --kv-cache-memory-bytes",
    ),
    FailurePattern(
        "kv_too_small_for_max_len",
        r"max seq len \((?P<length>\d+)\) is larger than the maximum number of tokens that can be stored in KV cache "
        r"\((?P<fits>\d+)\)",
        "the KV cache holds {fits} tokens and max-model-len asks for {length}",
        "--max-model-len {fits}, or more KV memory",
    ),
    FailurePattern(
        "no_memory_for_kv_blocks",
        r"No available memory for the cache blocks",
        "weights, activations and graphs leave nothing to the KV cache",
        "--gpu-memory-utilization 0.95, a smaller --max-num-batched-tokens, fewer graphs, or more GPUs",
    ),
    FailurePattern(
        "gpu_already_in_use",
        r"Free memory on device (?P<device>\S+) \((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup is less than desired "
        r"GPU memory utilization \((?P<share>[\d.]+)",
        "another process holds memory of {device}: {free} of {total} GiB are free and {share} of it was asked for",
        "stop the processes that nvidia-smi lists on {device}, or lower --gpu-memory-utilization {share}",
    ),
    FailurePattern(
        "mamba_blocks_lt_max_num_seqs",
        r"max_num_seqs \((?P<seqs>\d+)\) exceeds available Mamba cache blocks \((?P<blocks>\d+)\)",
        "each running sequence needs a state block: {blocks} blocks for max-num-seqs {seqs}",
        "--max-num-seqs {blocks}",
    ),
    FailurePattern(
        "oom_sampler_warmup",
        r"CUDA out of memory occurred when warming up sampler with (?P<seqs>\d+) dummy requests",
        "no memory is left to sample {seqs} sequences at once",
        "--max-num-seqs 64, or leave more memory free: lower --gpu-memory-utilization or --kv-cache-memory-bytes",
    ),
    FailurePattern(
        "gpu_out_of_memory",
        r"(?:torch\.(?:cuda\.)?OutOfMemoryError|CUDA out of memory)(?:.*Tried to allocate (?P<size>[\d.]+ \w+))?",
        "a GPU ran out of memory while the engine started",
        "leave headroom: lower --kv-cache-memory-bytes or --gpu-memory-utilization, or a smaller --max-num-batched-tokens",
    ),
    FailurePattern(
        "shm_too_small",
        r"Insufficient space in (?P<path>\S+) for [^:]*: (?P<need>\d+) MiB required, (?P<free>\d+) MiB free",
        "{path} has {free} MiB free and {need} MiB are needed",
        "docker run --ipc=host, or --shm-size above {need} MiB; the CPU tier lives there, too",
    ),
    FailurePattern(
        "offload_region_not_created",
        r"Timed out waiting for mmap file to reach (?P<need>\d+) bytes",
        "the CPU tier's shared-memory file of {need} bytes was not created",
        "check df /dev/shm and free RAM; lower cpu_bytes_to_use",
    ),
    FailurePattern(
        "disk_full",
        r"OSError: \[Errno 28\] No space left on device",
        "a file system is full",
        "df -h /dev/shm and the disk tier's folder; the fs tier never deletes",
    ),
)
_LENGTH = (
    FailurePattern(
        "max_len_over_derived",
        r"User-specified max_model_len (?:\((?P<length>\d+)\) )?is greater than the derived max_model_len"
        r"(?: \((?P<derived>[^)]*)\))?",
        "the model's config allows less than {length} tokens: {derived}",
        "lower --max-model-len, or write YaRN and max_position_embeddings into --hf-overrides (under text_config if it has one)",
    ),
    FailurePattern(
        "rope_type_unknown",
        r"Unknown RoPE scaling type (?P<kind>\S+)",
        "vLLM has no rope type {kind}",
        '"rope_type": "yarn" in --hf-overrides',
    ),
    FailurePattern(
        "rope_keys_missing",
        r"KeyError: '(?P<key>original_max_position_embeddings|rope_type|factor)'|should have a '(?P<old>rope_type)' key",
        "the rope override lacks a key",
        "give rope_type, factor and original_max_position_embeddings together, and repeat rope_theta",
    ),
    FailurePattern(
        "rope_keys_conflict",
        r"Found conflicts between 'rope_type=(?P<new>[^']*)'.*'type=(?P<old>[^']*)'",
        "the config says rope_type {new} and the older key type says {old}",
        "give rope_type alone",
    ),
    FailurePattern(
        "yarn_wrong_key",
        r"Unrecognized keys in `rope_scaling` for 'rope_type'='yarn': (?P<keys>\{[^}]*\})",
        "the rope override holds keys that this config class does not know: {keys}",
        "give rope_type, factor and original_max_position_embeddings",
    ),
)
_SCHEDULER = (
    FailurePattern(
        "batched_tokens_lt_num_seqs",
        r"max_num_batched_tokens \((?P<batch>\d+)\) must be greater than or equal to max_num_seqs \((?P<seqs>\d+)\)",
        "a step of {batch} tokens cannot serve {seqs} sequences",
        "--max-num-batched-tokens {seqs}, or --max-num-seqs {batch}",
    ),
    FailurePattern(
        "batched_tokens_lt_max_len",
        r"max_num_batched_tokens \((?P<batch>\d+)\) is smaller than max_model_len \((?P<length>\d+)\)",
        "without chunked prefill a prompt of {length} tokens must fit one step of {batch}",
        "--enable-chunked-prefill",
    ),
    FailurePattern(
        "no_slots_for_speculation",
        r"VllmConfig does not have enough slots to schedule a token",
        "a step has no room for a token and its drafts",
        "raise --max-num-batched-tokens, or lower num_speculative_tokens or --max-num-seqs",
    ),
)
_PARALLEL = (
    FailurePattern(
        "tp_not_dividing_heads",
        r"[Tt]otal number of attention heads \((?P<heads>\d+)\) must be divisible by tensor parallel size \((?P<tp>\d+)\)",
        "{heads} attention heads cannot be split over {tp} GPUs",
        "choose --tensor-parallel-size among the divisors of {heads}; the other GPUs by --pipeline-parallel-size",
    ),
    FailurePattern(
        "more_workers_than_gpus",
        r"World size \((?P<world>\d+)\) is larger than the number of available GPUs \((?P<gpus>\d+)\)",
        "tensor x pipeline parallel is {world} and {gpus} GPUs are visible",
        "--tensor-parallel-size {gpus}, or check CUDA_VISIBLE_DEVICES",
    ),
    FailurePattern(
        "dcp_not_dividing_tp",
        r"tp_size=(?P<tp>\d+) must be divisible by dcp_size=(?P<dcp>\d+)",
        "decode context parallel {dcp} does not divide tensor parallel {tp}",
        "choose --decode-context-parallel-size among the divisors of {tp}",
    ),
    FailurePattern(
        "dcp_needs_tp_over_kv_heads",
        r"Decode context parallelism for GQA/MQA requires|tp_size \(\d+\) must be greater than total_num_kv_heads",
        "decode context parallelism needs more GPUs than KV heads",
        "--decode-context-parallel-size 1, or a larger --tensor-parallel-size",
    ),
    FailurePattern(
        "quantization_group_lt_tp",
        r"Weight input_size_per_partition\s*=\s*(?P<part>\d+) is not divisible by[^\d]*group_size\s*=\s*(?P<group>\d+)",
        "the tensor-parallel split cuts weights to {part} columns, no multiple of the quantization group {group}",
        "halve --tensor-parallel-size (and use --pipeline-parallel-size 2), or a checkpoint with smaller groups",
    ),
    FailurePattern(
        "size_not_divisible_by_tp",
        r"AssertionError: (?P<size>\d+) is not divisible by (?P<tp>\d+)",
        "a layer of size {size} cannot be split over {tp} GPUs",
        "choose --tensor-parallel-size among the divisors of {size}",
    ),
    FailurePattern(
        "pipeline_unsupported",
        r"Pipeline parallelism is not supported for this model",
        "this model class has no pipeline split",
        "--pipeline-parallel-size 1",
    ),
    FailurePattern(
        "speculation_with_pipeline",
        r"Speculative decoding is not supported with pipeline parallelism",
        "speculation and pipeline parallelism exclude each other",
        "leave --speculative-config out, or --pipeline-parallel-size 1",
    ),
    FailurePattern(
        "nccl_error",
        r"NCCL error|Failed to load NCCL library|ncclUnhandledCudaError|Watchdog caught collective operation timeout",
        "the GPUs could not talk to each other",
        "NCCL_DEBUG=INFO to see where; NCCL_P2P_DISABLE=1 where peer access is broken; --disable-custom-all-reduce",
    ),
)
_KINDS = (
    FailurePattern(
        "quantization_unknown",
        r"Unknown quantization method: (?P<name>[^.\s]+)",
        "this release has no quantization method {name}",
        "leave --quantization out: the checkpoint names its own",
    ),
    FailurePattern(
        "quantization_mismatch",
        r"Quantization method specified in the model config \((?P<model>\w[^)]*)\) does not match .*argument \((?P<given>[^)]*)\)",
        "the checkpoint is {model} and --quantization says {given}",
        "leave --quantization out",
    ),
    FailurePattern(
        "quantization_needs_newer_gpu",
        r"The quantization method (?P<name>\S+) is not supported for the current GPU. Minimum capability: (?P<least>\d+)",
        "{name} needs compute capability {least} or higher",
        "another checkpoint, or newer GPUs",
    ),
    FailurePattern(
        "quantization_deprecated",
        r"The quantization method (?P<name>\S+) is deprecated",
        "{name} is on its way out of vLLM",
        "--allow-deprecated-quantization, or another checkpoint",
    ),
    FailurePattern(
        "quantization_config_missing",
        r"Cannot find the config file for (?P<name>\S+)",
        "the checkpoint has no {name} configuration",
        "leave --quantization out, or use a checkpoint made with {name}",
    ),
    FailurePattern(
        "attention_backend_unfit",
        r"Selected backend (?P<name>\S+) is not valid for this configuration\. Reason: (?P<reason>\[.*\])",
        "attention backend {name} cannot do this: {reason}",
        "leave --attention-backend out",
    ),
    FailurePattern(
        "no_attention_backend",
        r"No valid attention backend found|: \[?kv_cache_dtype not supported",
        "no attention backend takes this mix of KV dtype, head size and card",
        "--kv-cache-dtype auto",
    ),
    FailurePattern(
        "fp8_e4m3_needs_sm89",
        r"type fp8e4nv not supported in this architecture",
        "this card has no fp8 e4m3",
        "--kv-cache-dtype fp8_e5m2, or auto",
    ),
    FailurePattern(
        "kv_dtype_unsupported",
        r"FlashAttention does not support fp8.*kv-cache on this device|requires the SM100 trtllm-gen FlashInfer path"
        r"|with FP8 KV cache not yet supported|FP8 KV cache on CPU requires",
        "the attention backend of this device does not take that KV dtype",
        "--kv-cache-dtype auto",
    ),
    FailurePattern(
        "bfloat16_needs_sm80",
        r"Bfloat16 is only supported on GPUs\s+with compute capability of at least 8\.0",
        "this card has no bfloat16",
        "--dtype float16",
    ),
    FailurePattern(
        "cudagraph_mode_unsupported",
        r"CUDAGraphMode\.(?P<mode>\w+) is not supported with (?P<name>\S+) backend",
        "attention backend {name} cannot run graphs of mode {mode}",
        '--compilation-config \'{{"cudagraph_mode":"PIECEWISE"}}\'',
    ),
)

FIT_PATTERNS = (*_MEMORY, *_LENGTH, *_SCHEDULER, *_PARALLEL, *_KINDS)
