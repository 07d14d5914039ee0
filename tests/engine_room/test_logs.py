"""Log lines of every release become the same events."""

import pytest

from longreach.engine import events
from longreach.engine.events import LogEvent
from longreach.engine.logs import LogLine, parse_log_line, split_log_line
from longreach.units import GIB

PREFIX = "(EngineCore pid=12353) INFO 11-30 15:09:18 [kv_cache_utils.py:2327] "

LINES: list[tuple[str, str, LogEvent | None]] = [
    (
        "0.27",
        "INFO 07-01 10:00:00 [kv_cache_utils.py:849] GPU KV cache size: 1,194,731 tokens",
        events.KvCapacityLine("GPU", 1_194_731, None, None),
    ),
    (
        "0.27",
        "INFO 07-01 10:00:00 [kv_cache_utils.py:853] Maximum concurrency for 750,000 tokens per request: 1.59x",
        events.KvCapacityLine(None, None, 750_000, 1.59),
    ),
    (
        "0.28",
        "GPU KV cache size: 302,921 tokens, Maximum concurrency for 131,072 tokens per request: 2.31x",
        events.KvCapacityLine("GPU", 302_921, 131_072, 2.31),
    ),
    (
        "0.32",
        "XPU KV cache size: 20,480 tokens, Maximum concurrency for 16,384 tokens per request: 1.25x",
        events.KvCapacityLine("XPU", 20_480, 16_384, 1.25),
    ),
    (
        "0.32",
        "GPU + host KV cache size: 5 tokens, Maximum concurrency for 4 tokens per request: 1.25x",
        events.KvCapacityLine("GPU + host", 5, 4, 1.25),
    ),
    (
        "0.32",
        "non-default args: {'model': 'm', 'port': 1}",
        events.ArgumentsEcho("{'model': 'm', 'port': 1}", (("model", "m"), ("port", 1))),
    ),
    ("0.32", "non-default args: {'a': <X object>}", events.ArgumentsEcho("{'a': <X object>}", None)),
    ("0.32", "Initializing a V1 LLM engine (v0.32.0+cpu) with config: model='m'", events.EngineVersion("0.32.0+cpu")),
    ("0.11", "vLLM API server version 0.11.0", events.EngineVersion("0.11.0")),
    ("0.32", "vLLM server version 0.32.0, serving model m", events.EngineVersion("0.32.0")),
    ("0.32", " ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.32.0", events.EngineVersion("0.32.0")),
    ("0.10", "Resolved architecture: Qwen3ForCausalLM", events.Architecture("Qwen3ForCausalLM")),
    ("0.8", "Using max model len 65536", events.MaxModelLen(65_536)),
    (
        "0.32",
        "Auto-fit max_model_len: full model context length 40960 fits in available KV cache memory (1.0 GiB)",
        events.MaxModelLen(40_960, is_auto_fit=True),
    ),
    (
        "0.32",
        "Auto-fit max_model_len: reduced from 131072 to 64512 to fit in available KV cache memory (1.0 GiB)",
        events.MaxModelLen(64_512, is_auto_fit=True, reduced_from=131_072),
    ),
    ("0.32", "Starting to load model m...", events.WeightsStarted()),
    (
        "0.32",
        "Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:01<00:01,  1.20it/s]",
        events.WeightsProgress(2, 4),
    ),
    ("0.8", "Loading weights took 12.34 seconds", events.WeightsLoaded(12.34)),
    ("0.8", "Model loading took 4.50 GiB and 13.37 seconds", events.WeightsMemory(round(4.5 * GIB), 13.37)),
    ("0.28", "Model loading took 4.5 GiB memory and 13.370000 seconds", events.WeightsMemory(round(4.5 * GIB), 13.37)),
    ("0.8", "Available KV cache memory: 10.5 GiB", events.KvMemory(round(10.5 * GIB), is_explicit=False)),
    ("0.32", "Available KV cache memory: -0.12 GiB", events.KvMemory(round(-0.12 * GIB), is_explicit=False)),
    (
        "0.32",
        "Initial free memory 23.1 GiB, reserved 10.0 GiB memory for KV Cache as specified by kv_cache_memory_bytes config",
        events.KvMemory(10 * GIB, is_explicit=True),
    ),
    (
        "0.32",
        "Explicitly set (0.06/7.84) GiB for KV cache on node 0.",
        events.KvMemory(round(0.06 * GIB), is_explicit=True),
    ),
    ("0.19", "Estimated CUDA graph memory: 1.25 GiB total", events.GraphMemory(round(1.25 * GIB))),
    (
        "0.32",
        "CUDA graph pool memory: 1.5 GiB (actual), 1.25 GiB (estimated), difference: 0.25 GiB (16.7%).",
        events.GraphMemory(round(1.25 * GIB), round(1.5 * GIB)),
    ),
    (
        "0.32",
        "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  50%|█████     | 2/4 [00:00<00:00,  5.01it/s]",
        events.GraphProgress("mixed prefill-decode, PIECEWISE", 2, 4),
    ),
    ("0.8", "Graph capturing finished in 21 secs, took 0.52 GiB", events.GraphsCaptured(21.0, round(0.52 * GIB))),
    ("0.32", "[backbone] Starting torch.compile", events.CompileStarted()),
    ("0.17", "torch.compile takes 35.50 s in total", events.Compiled(35.5)),
    ("0.32", "[backbone] torch.compile took 35.50 s in total", events.Compiled(35.5)),
    ("0.32", "Initial profiling/warmup run took 7.25 s", events.Profiled(7.25)),
    (
        "0.19",
        "init engine (profile, create kv cache, warmup model) took 61.20 seconds",
        events.EngineInitialized(61.2, None),
    ),
    (
        "0.20",
        "init engine (profile, create kv cache, warmup model) took 61.20 s (compilation: 35.50 s)",
        events.EngineInitialized(61.2, 35.5),
    ),
    (
        "0.32",
        (
            "init engine (profile, create kv cache, warmup model) took 61.20 s (compilation: 35.50 s — "
            "language_model: 30.00 s, encoder: 5.50 s)"
        ),
        events.EngineInitialized(61.2, 35.5),
    ),
    ("0.11", "Using Flash Attention backend on V1 engine.", events.AttentionBackend("FLASH_ATTENTION")),
    (
        "0.32",
        "Using FLASHINFER attention backend out of potential backends: ['FLASHINFER', 'TRITON_ATTN'].",
        events.AttentionBackend("FLASHINFER", ("FLASHINFER", "TRITON_ATTN")),
    ),
    ("0.32", "Using FLASH_ATTN MLA prefill backend.", events.AttentionBackend("FLASH_ATTN", is_mla_prefill=True)),
    ("0.32", "Using LBHNC KV cache layout.", events.KvCacheLayout("LBHNC")),
    (
        "0.32",
        "Using fp8_e4m3 data type to store kv cache. It reduces the GPU memory footprint and boosts the performance.",
        events.KvCacheDtype("fp8_e4m3"),
    ),
    ("0.8", "Chunked prefill is enabled with max_num_batched_tokens=8192.", events.ChunkedPrefill(8192)),
    (
        "0.32",
        "Setting attention block size to 1600 tokens to ensure that attention page size is >= mamba page size.",
        events.HybridBlockSize(1600),
    ),
    (
        "0.32",
        "Padding mamba page size by 2.50% to ensure that mamba page size and attention page size are exactly equal.",
        events.StatePadding(0.025),
    ),
    ("0.32", "Add 2 padding layers, may waste at most 6.25% KV cache memory", events.PaddingLayers(2, 0.0625)),
    (
        "0.32",
        "Creating v1 connector with name: OffloadingConnector and engine_id: 7",
        events.OffloadConnector("OffloadingConnector"),
    ),
    ("0.32", "Creating offloading spec with name: TieringOffloadingSpec", events.OffloadSpec("TieringOffloadingSpec")),
    ("0.22", "Created secondary tier #0 (fs)", events.SecondaryTier(0, "fs")),
    (
        "0.22",
        "Created TieringOffloadingManager with primary tier (arc, 320 chunks) and 1 secondary tier(s)",
        events.PrimaryTier("arc", 320, 1),
    ),
    (
        "0.22",
        "Created mmap file /dev/shm/vllm_offload_a-1.mmap (0.27 GB)",
        events.OffloadFile("/dev/shm/vllm_offload_a-1.mmap", 270_000_000),
    ),
    (
        "0.32",
        "Binding worker subprocess (local_rank=1, gpu_index=3) to CPUs 0-7,16-23 and NUMA node 1",
        events.NumaBinding(1, 1, "0-7,16-23"),
    ),
    ("0.20", "Binding worker subprocess (local_rank=0, gpu_index=0) to NUMA node 0", events.NumaBinding(0, 0, None)),
    (
        "0.32",
        (
            "SpecDecoding metrics: Mean acceptance length: 1.05, Accepted throughput: 0.10 tokens/s, Drafted throughput: 4.20 "
            "tokens/s, Accepted: 1 tokens, Drafted: 42 tokens, Per-position acceptance rate: 0.048, 0.000, "
            "Avg Draft acceptance rate: 2.4%"
        ),
        events.SpeculationStats(1.05, 1, 42, pytest.approx(0.024), (0.048, 0.0)),  # type: ignore[arg-type] # compares as a float
    ),
    ("0.11.2", "KV Transfer metrics: {'GPU_to_CPU': 5}", events.KvTransferStats("{'GPU_to_CPU': 5}")),
    ("0.17", "Starting vLLM API server 0 on http://0.0.0.0:8000", events.Listening("http://0.0.0.0:8000")),
    ("0.18", "Starting vLLM server on http://127.0.0.1:18101", events.Listening("http://127.0.0.1:18101")),
    ("0.8", "INFO:     Application startup complete.", events.Ready()),
    ("0.32", "[shutdown] API server: shutdown triggered", events.ShutdownStarted()),
    ("0.32", "Available routes are:", None),
    ("0.32", 'INFO:     127.0.0.1:43122 - "GET /health HTTP/1.1" 200 OK', None),
    ("0.32", "", None),
    ("0.32", '  File "/x/vllm/v1/engine/core.py", line 1482, in run_engine_core', None),
    ("0.32", "Traceback (most recent call last):", None),
    ("0.32", "ValueError: No available memory", events.LoggedError("ValueError: No available memory")),
    ("0.32", "vllm: error: unrecognized arguments: --x", events.LoggedError("vllm: error: unrecognized arguments: --x")),
]  # fmt: skip


@pytest.mark.parametrize(("release", "text", "event"), LINES, ids=[f"{row[0]}-{row[1][:60]}" for row in LINES])
def test_a_line_becomes_its_event(release: str, text: str, event: LogEvent | None) -> None:
    assert parse_log_line(text) == event
    assert parse_log_line(PREFIX + text) == event or isinstance(event, events.LoggedError)


RESET, GREY = "\x1b[0m", "\x1b[90m"
COLOURED = f"\x1b[0;36m(Worker_TP1 pid=77)\x1b[0;0m \x1b[33mWARNING{RESET} {GREY}11-30 15:09:18{RESET} {GREY}[a/b.py:1]{RESET} text"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (COLOURED, LogLine("text", "WARNING", "Worker_TP1", 77)),
        ("INFO 01-02 03:04:05 [x.py:9] text", LogLine("text", "INFO")),
        ("(VllmWorker rank=1 pid=9) ERROR 01-02 03:04:05 [x.py:9] text\r\n", LogLine("text", "ERROR", "VllmWorker", 9)),
        ("(EngineCore_DP0 pid=9) Traceback (most", LogLine("Traceback (most", None, "EngineCore_DP0", 9)),
        ("vllm-1  | (APIServer pid=1) INFO 01-02 03:04:05 [x.py:9] text", LogLine("text", "INFO", "APIServer", 1)),
        ("vllm-1  | ValueError: x", LogLine("ValueError: x")),
        ('2026-11-30T15:05:04.123456789Z   File "a.py"', LogLine('  File "a.py"')),
        ("Nov 30 15:05:04 host vllm[12]: INFO:     text", LogLine("text", "INFO")),
        ("INFO:     text", LogLine("text", "INFO")),
        ("  0%|  | 0/2\r 50%|# | 1/2\r", LogLine(" 50%|# | 1/2")),
        ("  0%|  | 0/2\r 50%|# | 1/2", LogLine(" 50%|# | 1/2")),
        ("plain", LogLine("plain")),
    ],
    ids=[
        "colours",
        "old",
        "rank",
        "bare tag",
        "compose",
        "compose, bare",
        "container time",
        "journal",
        "uvicorn",
        "redrawn, ended",
        "redrawn",
        "plain",
    ],
)
def test_decoration_is_taken_off(line: str, expected: LogLine) -> None:
    assert split_log_line(line) == expected


def test_levels_decide_what_no_row_knows() -> None:
    assert parse_log_line("(A pid=1) WARNING 01-02 03:04:05 [x.py:9] odd") == events.LoggedWarning("odd")
    assert parse_log_line("(A pid=1) ERROR 01-02 03:04:05 [x.py:9] odd") == events.LoggedError("odd")
    assert parse_log_line('(A pid=1) ERROR 01-02 03:04:05 [x.py:9]   File "a.py", line 1') is None
    assert parse_log_line("(A pid=1) INFO 01-02 03:04:05 [x.py:9] odd") is None


def test_the_periodic_line_of_0_32_is_read_with_every_part() -> None:
    event = parse_log_line(
        "(APIServer pid=1) INFO 11-30 15:10:10 [loggers.py:335] Engine 001: Avg prompt throughput: 3283.0 tokens/s, "
        "Avg generation throughput: 3.2 tokens/s, Running: 2 reqs, Waiting: 5 reqs, Deferred: 1 reqs, "
        "KV fetch: 1 waiting to start, 2 in progress, 0 completed waiting, Preemptions: 3, GPU KV cache usage: 93.5%, "
        "Prefix cache hit rate: 50.0%, "
        "External prefix cache hit rate: 25.0%, MM cache hit rate: 75.0%"
    )
    assert event == events.EngineStats(1, 3283.0, 3.2, 2, 5, 1, 3, 0.935, 0.5, 0.25, 0.75)


def test_the_periodic_line_of_an_older_release_has_no_such_parts() -> None:
    event = parse_log_line(
        "INFO 07-01 10:00:00 [loggers.py:118] Engine 000: Avg prompt throughput: 10.0 tokens/s, "
        "Avg generation throughput: 3.2 tokens/s, "
        "Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 6.3%, Prefix cache hit rate: 17.5%"
    )
    assert isinstance(event, events.EngineStats)
    assert (event.num_deferred, event.num_preemptions, event.external_prefix_hit_rate, event.mm_hit_rate) == (
        0,
        0,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        (
            "cudaHostRegister failed (code=2) — transfers will still work but may be slower (unpinned DMA)",
            "offload_memory_unpinned",
        ),
        ("O_DIRECT is not supported at '/kv'; falling back to buffered I/O", "disk_tier_uses_page_cache"),
        ("Turning off hybrid kv cache manager because `--kv-transfer-config` selects", "hybrid_manager_off"),
        ("Using uncalibrated q_scale 1.0 and/or prob_scale 1.0 with fp8 attention.", "fp8_scales_uncalibrated"),
        ("Found duplicate keys --tensor-parallel-size", "duplicate_flags"),
        ("User lacks permission to set NUMA memory policy, use --cap-add SYS_NICE", "numa_policy_refused"),
        ("method `qwen3_next_mtp` is deprecated and replaced with mtp.", "mtp_name_deprecated"),
        ("Async scheduling not supported with ngram-based speculative decoding", "async_scheduling_off"),
        ("No available shared memory broadcast block found in 60 seconds.", "workers_stalled"),
    ],
    ids=lambda value: value[:30],
)
def test_lines_that_explain_something_carry_their_meaning(text: str, topic: str) -> None:
    event = parse_log_line(f"(A pid=1) WARNING 01-02 03:04:05 [x.py:9] {text}")
    assert isinstance(event, events.Notice)
    assert event.topic == topic
    assert event.meaning
    assert event.text == text
