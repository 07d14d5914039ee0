"""Options that contradict themselves are told with all their problems before a command is rendered."""

import math

import pytest

from longreach.engine.checks import check_options, raise_problems
from longreach.engine.command import render_command
from longreach.engine.options import EngineOptions, OffloadOptions, SpeculativeOptions, YarnOptions
from longreach.engine.release import Release, get_release
from longreach.errors import UsageError

V32 = get_release("0.32.0")

BAD: list[tuple[dict[str, object], str]] = [
    ({"model": ""}, "the model '' cannot be put on a command line"),
    ({"served_model_name": "-x"}, "--served-model-name '-x' cannot be put on a command line"),
    ({"tool_call_parser": "None"}, "--tool-call-parser 'None' cannot be put on a command line"),
    ({"quantization": "a\0b"}, "--quantization 'a\\x00b' cannot be put on a command line"),
    ({"env": (("A-B", "1"),)}, "environment variable 'A-B' cannot be set"),
    ({"tensor_parallel_size": 0}, "tensor_parallel_size is 0"),
    ({"pipeline_parallel_size": -1}, "pipeline_parallel_size is -1"),
    ({"max_model_len": 0}, "max_model_len is 0"),
    ({"kv_cache_memory_bytes": -5}, "kv_cache_memory_bytes is -5"),
    ({"speculative": SpeculativeOptions("mtp", 0)}, "speculative.num_speculative_tokens is 0"),
    ({"speculative": SpeculativeOptions("", 1)}, "speculative method is empty"),
    (
        {"speculative": SpeculativeOptions("mtp", 1, extra=(("method", "ngram"),))},
        "speculative.extra repeats 'method'",
    ),
    ({"compilation_extra": (("cudagraph_mode", "NONE"),)}, "compilation_extra repeats 'cudagraph_mode'"),
    ({"compilation_extra": (("level", 1), ("level", 2))}, "compilation_extra repeats 'level'"),
    ({"compilation_extra": (("level", math.nan),)}, "--compilation-config cannot be written as JSON"),
    ({"mm_processor_kwargs": (("x", object()),)}, "--mm-processor-kwargs cannot be written as JSON"),
    ({"port": 0}, "port 0 does not exist"),
    ({"port": 65_536}, "port 65536 does not exist"),
    ({"gpu_memory_utilization": 1.5}, "gpu_memory_utilization 1.5 is not in (0, 1]"),
    (
        {"gpu_memory_utilization": 0.9, "kv_cache_memory_bytes": 1},
        "kv_cache_memory_bytes and gpu_memory_utilization are both given",
    ),
    ({"mm_ipc_gpu_memory_gb": -1.0}, "mm_ipc_gpu_memory_gb -1.0 is not a size"),
    ({"max_model_len": 5, "max_model_len_auto": True}, "max_model_len is both given and 'auto'"),
    (
        {"max_num_batched_tokens": 8, "max_num_seqs": 16},
        "max_num_batched_tokens 8 is smaller than max_num_seqs 16",
    ),
    (
        {"max_num_batched_tokens": 8, "max_model_len": 16, "enable_chunked_prefill": False},
        "max_num_batched_tokens 8 is smaller than max_model_len 16 with chunked prefill off",
    ),
    ({"cudagraph_mode": "PIECEWIS"}, "unknown cudagraph_mode 'PIECEWIS'"),
    (
        {"tensor_parallel_size": 4, "decode_context_parallel_size": 3},
        "decode_context_parallel_size 3 does not divide tensor_parallel_size 4",
    ),
    ({"numa_bind_nodes": (0,)}, "numa_bind_nodes is given without numa_bind"),
    (
        {"numa_bind": True, "numa_bind_nodes": (0,), "tensor_parallel_size": 2},
        "numa_bind_nodes [0] does not name a node for every GPU",
    ),
    ({"offload": OffloadOptions(0)}, "offload.cpu_bytes is 0"),
    ({"offload": OffloadOptions(1, eviction_policy="lfu")}, "unknown eviction policy 'lfu'"),
    ({"offload": OffloadOptions(1, spec_module_path="m")}, "an out-of-tree offload spec is half named"),
    ({"offload": OffloadOptions(1, num_disk_read_threads=1)}, "disk threads are given without a disk tier"),
    ({"offload": OffloadOptions(1, disk_path="")}, "the disk tier's path is empty or holds a NUL"),
    (
        {"offload": OffloadOptions(1, extra=(("tier_poll_interval_s", 1),))},
        "offload key 'tier_poll_interval_s' does not exist in 0.32.0",
    ),
    (
        {"offload": OffloadOptions(1), "env": (("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),)},
        "offload with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    ),
    ({"yarn": YarnOptions(0.5, 10, (), ())}, "YaRN factor 0.5 does not lengthen"),
    ({"yarn": YarnOptions(2.0, 10, ("rope_parameters",), ())}, "the YaRN override path names rope_parameters itself"),
    ({"enable_auto_tool_choice": True}, "enable_auto_tool_choice without tool_call_parser"),
    ({"limit_mm_per_prompt": (("image", -1),)}, "limit_mm_per_prompt image is -1"),
    ({"kv_cache_dtype": "fp8_e4m"}, "unknown kv_cache_dtype 'fp8_e4m'"),
]


@pytest.mark.parametrize(("fields", "what"), BAD, ids=[what for _, what in BAD])
def test_a_contradiction_is_told(fields: dict[str, object], what: str) -> None:
    options = EngineOptions(**({"model": "m"} | fields))  # type: ignore[arg-type] # one or two fields each
    problems = check_options(options, V32)
    assert [problem.what for problem in problems] == [what]
    assert problems[0].why
    assert problems[0].fix
    with pytest.raises(UsageError):
        render_command(options, V32)


def test_good_options_have_no_problem() -> None:
    assert check_options(EngineOptions("m", max_model_len=100, numa_bind=True), V32) == ()


def test_a_kv_dtype_is_refused_before_its_first_release() -> None:
    options = EngineOptions("m", kv_cache_dtype="ultraquant_4bit")
    assert check_options(options, V32) == ()
    (problem,) = check_options(options, get_release("0.31.0"))
    assert problem.what == "kv_cache_dtype 'ultraquant_4bit' does not exist in vLLM 0.31.0"


def test_an_offload_key_is_refused_after_its_last_release() -> None:
    options = EngineOptions("m", offload=OffloadOptions(1, extra=(("num_cpu_blocks", 5),)))
    (problem,) = check_options(options, V32)
    assert "from 0.11.0 to 0.13.0" in problem.why
    assert check_options(options, Release("0.13.0")) == ()


def test_a_near_miss_is_answered_with_the_right_name() -> None:
    (problem,) = check_options(EngineOptions("m", cudagraph_mode="PIECEWIS"), V32)
    assert problem.fix.startswith("did you mean 'PIECEWISE'")


def test_several_problems_make_one_error_that_tells_them_all() -> None:
    problems = check_options(EngineOptions("m", port=0, max_num_seqs=0), V32)
    with pytest.raises(UsageError, match=r"max_num_seqs is 0 \(and 1 more\)") as caught:
        raise_problems(problems)
    assert "port 0 does not exist" in caught.value.why
    assert "--port 8000" in caught.value.fix


def test_no_problem_raises_nothing() -> None:
    raise_problems(())
