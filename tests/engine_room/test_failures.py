"""The decisive line of a failed start, under whatever follows from it."""

import re

import pytest

from longreach.engine.failure_patterns import FailurePattern
from longreach.engine.failures import PATTERNS, UNKNOWN, find_failure

KV_TOO_SMALL = (
    "ValueError: To serve at least one request with the model's max seq len (65536), (0.06 GiB KV cache is needed, which is "
    "larger than the available KV cache memory (0.02 GiB). Based on the available memory, the estimated maximum model length "
    "is 20448. Try increasing `gpu_memory_utilization`"
)
CORE = "(EngineCore pid=9) ERROR 11-30 15:05:04 [core.py:1510] "

SENTENCES: list[tuple[str, str, str]] = [
    (KV_TOO_SMALL, "kv_too_small_for_max_len", "--max-model-len 20448"),
    (
        (
            "ValueError: To serve at least one request with the models's max seq len (262144), (12.0 GiB KV cache is needed, which "
            "is larger than the available KV cache memory (10.59 GiB). Based on the available memory, the estimated maximum model "
            "length is 231328."
        ),
        "kv_too_small_for_max_len",
        "--max-model-len 231328",
    ),
    (
        "The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in KV cache (7344).",
        "kv_too_small_for_max_len",
        "--max-model-len 7344",
    ),
    (
        "ValueError: No available memory for the cache blocks. Try",
        "no_memory_for_kv_blocks",
        "--gpu-memory-utilization",
    ),
    (
        (
            "ValueError: Free memory on device cuda:0 (12.38/287.69 GiB) on startup is less than desired GPU memory utilization "
            "(0.92, 264.67 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
        ),
        "gpu_already_in_use",
        "nvidia-smi",
    ),
    (
        "ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (868). Each decode sequence requires one",
        "mamba_blocks_lt_max_num_seqs",
        "--max-num-seqs 868",
    ),
    (
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy requests. Please try lowering",
        "oom_sampler_warmup",
        "--max-num-seqs",
    ),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.74 GiB", "gpu_out_of_memory", "headroom"),
    (
        "RuntimeError: Insufficient space in /dev/shm for message queue: 160 MiB required, 64 MiB free.",
        "shm_too_small",
        "--ipc=host",
    ),
    (
        (
            "  Value error, User-specified max_model_len (750000) is greater than the derived max_model_len "
            "(max_position_embeddings=262144.0 or model_max_length=None in model's config.json)."
        ),
        "max_len_over_derived",
        "max_position_embeddings",
    ),
    ("KeyError: 'original_max_position_embeddings'", "rope_keys_missing", "rope_theta"),
    (
        "ValueError: max_num_batched_tokens (8) must be greater than or equal to max_num_seqs (16).",
        "batched_tokens_lt_num_seqs",
        "--max-num-seqs 8",
    ),
    (
        "ValueError: Total number of attention heads (52) must be divisible by tensor parallel size (8).",
        "tp_not_dividing_heads",
        "divisors of 52",
    ),
    (
        "ValueError: World size (8) is larger than the number of available GPUs (4) in this node.",
        "more_workers_than_gpus",
        "--tensor-parallel-size 4",
    ),
    (
        "ValueError: Weight input_size_per_partition = 1728 is not divisible by min_thread_k or group_size = 128.",
        "quantization_group_lt_tp",
        "--tensor-parallel-size",
    ),
    ("NotImplementedError: Unsupported speculative method: 'mtp'", "speculative_method_unsupported", "ngram"),
    ("ValueError: Please specify kv_role when kv_connector is set", "kv_role_missing", "kv_both"),
    ("ValueError: Unsupported spec type: Tiering", "offload_spec_unknown", "TieringOffloadingSpec"),
    (
        "Exception: cpu_bytes_to_use must be specified in kv_connector_extra_config",
        "offload_bytes_missing",
        "cpu_bytes_to_use",
    ),
    (
        "Exception: CPU Offloading is currently only supported on CUDA-alike and XPU GPUs",
        "offload_needs_gpu",
        "pip install --no-deps longreach",
    ),
    (
        "NotADirectoryError: [Errno 20] Not a directory: '/var/kv/_models_qwen_c7032952b6ee'",
        "disk_tier_unusable",
        "--disk-tier",
    ),
    (
        "PermissionError: [Errno 13] Permission denied: '/var/kv/_models_qwen_c7032952b6ee/config.json'",
        "disk_tier_unusable",
        "root_dir",
    ),
    (
        "OffloadRefusedError: longreach.vllm_ext: no KV offload on vLLM 0.33.0 (why: written for 0.32; fix: use vLLM 0.32)",
        "offload_plugin_refuses",
        "use vLLM 0.32",
    ),
    (
        "RuntimeError: numactl is required for NUMA binding but is not installed",
        "numactl_missing",
        "apt-get install numactl",
    ),
    ("OSError: [Errno 98] Address already in use", "port_in_use", "--port"),
    ("vllm: error: unrecognized arguments: --rope-scaling {}", "flag_unknown", "vllm serve --help"),
    (
        "vllm serve: error: argument --kv-cache-memory-bytes: Value 10GiB cannot be converted to <function human_readable_int>",
        "flag_value_invalid",
        "--kv-cache-memory-bytes",
    ),
    (
        "vllm serve: error: argument --limit-mm-per-prompt: Value image=4 cannot be converted to <function loads at 0x7f>.",
        "json_quoting",
        "--limit-mm-per-prompt '{",
    ),
    (
        "TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser",
        "tool_choice_flags_missing",
        "--tool-call-parser",
    ),
    ("ValueError: type fp8e4nv not supported in this architecture. The", "fp8_e4m3_needs_sm89", "fp8_e5m2"),
]


@pytest.mark.parametrize(("text", "cause", "fix"), SENTENCES, ids=[f"{row[1]}-{row[0][:25]}" for row in SENTENCES])
def test_a_refusal_is_known_by_its_sentence(text: str, cause: str, fix: str) -> None:
    failure = find_failure([CORE + "EngineCore failed to start.", CORE + text])
    assert failure is not None
    assert (failure.cause, failure.why, failure.line_number) == (cause, text.strip(), 2)
    assert fix in failure.fix
    assert failure.process == "EngineCore"


FAILED_START = [
    "(APIServer pid=1) INFO 11-30 15:05:00 [model.py:1] Using max model len 65536",
    "(EngineCore pid=9) WARNING 11-30 15:05:01 [x.py:1] torch.OutOfMemoryError is what you may see",
    CORE + "EngineCore failed to start.",
    CORE + "Traceback (most recent call last):",
    CORE + '  File "/x/vllm/v1/core/kv_cache_utils.py", line 1010, in _check_enough_kv_cache_memory',
    CORE + '    raise ValueError("No available memory for the cache blocks. "',
    CORE + KV_TOO_SMALL,
    "(EngineCore pid=9) ERROR 11-30 15:05:07 [x.py:315] Worker proc VllmWorker-0 died unexpectedly (exit code: -9)",
    "Process EngineCore:",
    "Traceback (most recent call last):",
    KV_TOO_SMALL,
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
]


def test_the_cause_stands_under_a_pile_of_tracebacks() -> None:
    failure = find_failure(FAILED_START)
    assert failure is not None
    assert (failure.cause, failure.line_number, failure.why) == ("kv_too_small_for_max_len", 7, KV_TOO_SMALL)
    assert failure.what == "a request of 65536 tokens needs 0.06 GiB of KV cache and 0.02 GiB are there"


def test_a_cut_sentence_says_what_it_does_not_know() -> None:
    failure = find_failure(["46.58 GiB KV cache is needed, which is larger than the available KV cache memory"])
    assert failure is not None
    assert failure.what == "a request of ? tokens needs 46.58 GiB of KV cache and ? GiB are there"


def test_an_unknown_failure_is_its_first_own_exception() -> None:
    lines = [
        CORE + "EngineCore failed to start.",
        CORE + "Traceback (most recent call last):",
        CORE + "AssertionError: head sizes differ",
        "RuntimeError: Engine core initialization failed. See root cause above.",
    ]
    failure = find_failure(lines)
    assert failure is not None
    assert (failure.cause, failure.why, failure.line_number) == (UNKNOWN, "AssertionError: head sizes differ", 3)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([CORE + "something odd", "RuntimeError: Engine core initialization failed."], "something odd"),
        (["Traceback (most recent call last):", "RuntimeError: Engine core initialization failed."],
         "RuntimeError: Engine core initialization failed."),
        ([CORE + "EngineCore failed to start."], "EngineCore failed to start."),
    ],
    ids=["an error record", "only the wrapper", "only the announcement"],
)  # fmt: skip
def test_the_next_best_line_is_taken_when_the_cause_is_missing(lines: list[str], why: str) -> None:
    failure = find_failure(lines)
    assert failure is not None
    assert (failure.cause, failure.why) == (UNKNOWN, why)


def test_a_worker_that_was_killed_is_a_cause_of_its_own() -> None:
    failure = find_failure(
        [CORE + "Worker proc VllmWorker-1 died unexpectedly (exit code: -9), shutting down executor."]
    )
    assert failure is not None
    assert (failure.cause, "signal 9" in failure.what) == ("worker_killed", True)


def test_a_log_without_errors_has_no_failure() -> None:
    assert (
        find_failure(
            ["INFO 11-30 15:05:00 [a.py:1] ValueError is fine here", "INFO:     Application startup complete."]
        )
        is None
    )
    assert find_failure([]) is None


@pytest.mark.parametrize("row", PATTERNS, ids=lambda row: row.cause)
def test_every_row_fills_its_braces_from_its_own_pattern(row: FailurePattern) -> None:
    filled = dict.fromkeys(re.compile(row.pattern).groupindex, "7")
    assert "{" not in row.meaning.format(**filled)
    assert row.fix.format(**filled)
    assert re.fullmatch(r"[a-z0-9_]+", row.cause)
    assert not row.meaning.endswith(".")
