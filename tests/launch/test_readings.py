import pytest

from longreach.engine.metrics import parse_metrics
from longreach.launch.readings import Reading, read_log_events, readings_of_cache_config, readings_of_log

CONFIG = (
    "(EngineCore pid=10343) INFO 11-30 15:06:05 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: "
    "model='tiny', tokenizer_mode=auto, dtype=torch.bfloat16, max_seq_len=8192, tensor_parallel_size=4, "
    "pipeline_parallel_size=1, data_parallel_size=2, disable_custom_all_reduce=True, kv_cache_dtype={dtype}, "
    "kernel_config=KernelConfig(moe_backend='auto')"
)
INFO = "(EngineCore pid=10343) INFO 11-30 15:06:34 [x.py:1] "


def facts(*lines: str) -> dict[str, object]:
    return {reading.fact: reading.value for reading in readings_of_log(read_log_events(lines))}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "CPU KV cache size: 10,240 tokens, Maximum concurrency for 8,192 tokens per request: 1.25x",
            {"kv_capacity_tokens": 10_240, "max_concurrency": 1.25},
        ),
        ("GPU KV cache size: 1,291,237 tokens", {"kv_capacity_tokens": 1_291_237}),
        ("Maximum concurrency for 750,000 tokens per request: 1.72x", {"max_concurrency": 1.72}),
        ("Using max model len 8192", {"max_model_len": 8192}),
        ("Auto-fit max_model_len: reduced from 262144 to 131072 to fit", {"max_model_len": 131_072}),
        ("Using fp8_e4m3 data type to store kv cache. It reduces ...", {"kv_cache_dtype": "fp8_e4m3"}),
        (
            "Using FLASHINFER attention backend out of potential backends: ['FLASHINFER', 'TRITON_ATTN'].",
            {"attention_backend": "FLASHINFER"},
        ),
        ("Using FLASHINFER MLA prefill backend.", {}),
        ("Loading weights took 0.02 seconds", {}),
    ],
)
def test_a_line_tells_its_facts(line: str, expected: dict[str, object]) -> None:
    assert facts(INFO + line) == expected


@pytest.mark.parametrize(("dtype", "told"), [("auto", "auto (bfloat16)"), ("fp8_e4m3", "fp8_e4m3")])
def test_the_configuration_line_tells_what_defaults_became(dtype: str, told: str) -> None:
    assert facts(CONFIG.format(dtype=dtype)) == {
        "release": "0.32.0",
        "tensor_parallel_size": 4,
        "pipeline_parallel_size": 1,
        "data_parallel_size": 2,
        "kv_cache_dtype": told,
    }


def test_repeated_lines_are_one_reading_and_long_ones_are_cut() -> None:
    line = INFO + "Using max model len 8192" + " and so on" * 40
    (reading,) = readings_of_log(read_log_events([line, line]))
    assert len(reading.source) < 200
    assert reading.source.startswith("its log: Using max model len 8192")


def test_the_metrics_page_tells_capacity_to_the_token() -> None:
    page = (
        'vllm:cache_config_info{block_size="128",cache_dtype="fp8_e4m3",engine="0",kv_cache_max_concurrency="1.5929",'
        'kv_cache_size_tokens="1194731",num_gpu_blocks="771"} 1.0\n'
    )
    assert readings_of_cache_config(parse_metrics(page).cache) == (
        Reading("kv_capacity_tokens", 1_194_731, "cache_config_info: kv_cache_size_tokens=1194731"),
        Reading("max_concurrency", 1.5929, "cache_config_info: kv_cache_max_concurrency=1.5929"),
        Reading("num_blocks", 771, "cache_config_info: num_gpu_blocks=771"),
        Reading("block_size", 128, "cache_config_info: block_size=128"),
        Reading("kv_cache_dtype", "fp8_e4m3", "cache_config_info: cache_dtype=fp8_e4m3"),
    )


def test_an_old_page_without_the_labels_tells_less() -> None:
    page = 'vllm:cache_config_info{block_size="16",cache_dtype="auto",num_gpu_blocks="None"} 1.0\n'
    assert [reading.fact for reading in readings_of_cache_config(parse_metrics(page).cache)] == ["block_size"]
