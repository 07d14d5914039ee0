"""Rendering and parsing of commands are inverse, for every release; what cannot be said is refused."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine_room.option_strategies import engine_options

from longreach.engine.command import parse_command, render_command
from longreach.engine.flags import FLAGS
from longreach.engine.options import EngineOptions, OffloadOptions, SpeculativeOptions, YarnOptions
from longreach.engine.reading import read_command
from longreach.engine.registry import get_registry, releases_with_offload_key
from longreach.engine.release import RELEASES, Release, get_release
from longreach.errors import UsageError

V32 = get_release("0.32.0")


def fitted(options: EngineOptions, release: Release) -> EngineOptions:
    """The options without what the release's parser lacks or refuses."""
    registry = get_registry(release.version)
    absent: dict[str, Any] = {}
    for flag in (flag for flag in FLAGS if flag.key is None):
        entry, value = registry.find(flag.name), getattr(options, flag.field)
        is_refused = entry is not None and entry.choices and value not in entry.choices
        if entry is None or is_refused or (value is False and entry.kind == "switch"):
            absent[flag.field] = flag.absent
    if options.numa_bind_nodes is None or "numa_bind" in absent:
        absent["numa_bind_nodes"] = None
    if registry.flags["--max-model-len"].kind != "length":
        absent["max_model_len_auto"] = False
    if absent.get("tool_call_parser", "") is None:
        absent["enable_auto_tool_choice"] = None
    if "cudagraph_mode" not in registry.settings["CompilationConfig"]:
        absent["cudagraph_mode"] = None
    if options.offload is not None and "OffloadingConnector" not in registry.names("connector"):
        absent["offload"] = None
    elif options.offload is not None:
        keys = [
            key
            for key, _ in options.offload.extra
            if release.version in (releases_with_offload_key(key) or (release.version,))
        ]
        kept = tuple(pair for pair in options.offload.extra if pair[0] in keys)
        absent["offload"] = replace(options.offload, extra=kept)
    if any(registry.find(word) is None for word in options.extra_args if word.startswith("-")):
        absent["extra_args"] = ()
    return replace(options, **absent)


@settings(max_examples=40, deadline=None)
@given(engine_options(), st.sampled_from(RELEASES))
def test_a_command_reads_back_as_the_options_it_was_made_from(options: EngineOptions, release: Release) -> None:
    options = fitted(options, release)
    command = render_command(options, release)
    assert parse_command(command.argv, command.env, release) == options
    assert render_command(parse_command(command.argv, command.env, release), release) == command


HOW_TO = EngineOptions(
    "Qwen/Qwen3.6-27B",
    tensor_parallel_size=4,
    max_model_len=750_000,
    kv_cache_dtype="fp8_e4m3",
    kv_cache_memory_bytes=10 * 2**30,
    enable_prefix_caching=True,
    enable_chunked_prefill=True,
    max_num_batched_tokens=8192,
    max_num_seqs=16,
    scheduler_reserve_full_isl=False,
    speculative=SpeculativeOptions("mtp", 3, use_local_argmax_reduction=True),
    offload=OffloadOptions(
        200 * 2**30,
        disk_path="/data/kv cache",
        eviction_policy="arc",
        num_disk_read_threads=16,
        num_disk_write_threads=8,
        offload_prompt_only=False,
        blocks_per_chunk=4,
    ),
    yarn=YarnOptions(3.0, 262_144, ("text_config",), (("rope_theta", 1e7), ("mrope_section", [11, 11, 10]))),
    limit_mm_per_prompt=(("image", 4), ("video", 1)),
    mm_processor_kwargs=(("max_pixels", 1_003_520),),
    mm_ipc_gpu_memory_gb=0.5,
    language_model_only=False,
    cudagraph_mode="PIECEWISE",
    disable_custom_all_reduce=True,
    numa_bind=True,
    numa_bind_nodes=(0, 0, 1, 1),
    reasoning_parser="qwen3",
    tool_call_parser="qwen3_coder",
    enable_auto_tool_choice=True,
    enable_prompt_tokens_details=True,
)


def json_of(options: EngineOptions, flag: str) -> object:
    argv = render_command(options, V32).argv
    return json.loads(argv[argv.index(flag) + 1])


def test_every_setting_of_the_how_to_is_rendered() -> None:
    argv = " ".join(render_command(HOW_TO, V32).argv)
    for words in (
        "vllm serve Qwen/Qwen3.6-27B --host 127.0.0.1 --port 8000 --tensor-parallel-size 4 --max-model-len 750000",
        "--kv-cache-dtype fp8_e4m3 --kv-cache-memory-bytes 10737418240 --enable-prefix-caching --enable-chunked-prefill",
        "--max-num-batched-tokens 8192 --max-num-seqs 16 --no-scheduler-reserve-full-isl",
        "--mm-ipc-gpu-memory-gb 0.5 --no-language-model-only",
        "--disable-custom-all-reduce --numa-bind --numa-bind-nodes 0 0 1 1",
        "--reasoning-parser qwen3 --tool-call-parser qwen3_coder --enable-auto-tool-choice --enable-prompt-tokens-details",
    ):
        assert words in argv


def test_offload_with_a_disk_tier_names_the_tiering_spec_and_puts_threads_into_the_tier() -> None:
    assert json_of(HOW_TO, "--kv-transfer-config") == {
        "kv_connector": "OffloadingConnector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {
            "cpu_bytes_to_use": 214_748_364_800,
            "eviction_policy": "arc",
            "blocks_per_chunk": 4,
            "offload_prompt_only": False,
            "spec_name": "TieringOffloadingSpec",
            "secondary_tiers": [
                {"type": "fs", "root_dir": "/data/kv cache", "n_read_threads": 16, "n_write_threads": 8},
            ],
        },
    }


def test_offload_to_the_cpu_alone_names_no_spec() -> None:
    written = json_of(EngineOptions("m", offload=OffloadOptions(10)), "--kv-transfer-config")
    assert isinstance(written, dict)
    assert written["kv_connector_extra_config"] == {"cpu_bytes_to_use": 10, "eviction_policy": "lru"}


def test_an_out_of_tree_spec_keeps_its_name_beside_a_disk_tier() -> None:
    offload = OffloadOptions(10, disk_path="/d", spec_module_path="pkg.mod", spec_name="CpuSpec")
    written = json_of(EngineOptions("m", offload=offload), "--kv-transfer-config")
    assert isinstance(written, dict)
    extra = written["kv_connector_extra_config"]
    assert (extra["spec_name"], extra["spec_module_path"]) == ("CpuSpec", "pkg.mod")
    assert extra["secondary_tiers"] == [{"type": "fs", "root_dir": "/d"}]


@pytest.mark.parametrize("path", [(), ("text_config",)], ids=["text-only", "nested"])
def test_yarn_repeats_the_rope_keys_and_raises_max_position_embeddings(path: tuple[str, ...]) -> None:
    original = (("rope_type", "default"), ("rope_theta", 1e7), ("mrope_section", [11, 11, 10]))
    options = EngineOptions("m", yarn=YarnOptions(3.0, 262_144, path, original))
    written = json_of(options, "--hf-overrides")
    for key in path:
        assert isinstance(written, dict)
        written = written[key]
    assert written == {
        "rope_parameters": {
            "rope_type": "yarn",
            "factor": 3.0,
            "original_max_position_embeddings": 262_144,
            "rope_theta": 1e7,
            "mrope_section": [11, 11, 10],
        },
        "max_position_embeddings": 786_432,
    }


def test_environment_travels_beside_argv() -> None:
    command = render_command(replace(HOW_TO, env=(("VLLM_LOGGING_LEVEL", "INFO"),)), V32)
    assert command.env == (("VLLM_LOGGING_LEVEL", "INFO"),)
    assert not any("VLLM_LOGGING_LEVEL" in word for word in command.argv)


@pytest.mark.parametrize(
    ("version", "option", "flag"),
    [
        ("0.18.1", {"scheduler_reserve_full_isl": False}, "--scheduler-reserve-full-isl"),
        ("0.24.0", {"mm_ipc_gpu_memory_gb": 1.0}, "--mm-ipc-gpu-memory-gb"),
        ("0.10.0", {"kv_cache_memory_bytes": 5}, "--kv-cache-memory-bytes"),
        ("0.19.1", {"numa_bind": True}, "--numa-bind"),
    ],
)
def test_an_option_that_the_release_lacks_is_refused_not_dropped(
    version: str, option: dict[str, object], flag: str
) -> None:
    with pytest.raises(UsageError, match=f"{flag} does not exist in vLLM {version}") as caught:
        render_command(EngineOptions("m", **option), Release(version))  # type: ignore[arg-type] # one field each
    assert flag in caught.value.why
    assert "plan for vLLM" in caught.value.fix


def test_extra_arguments_that_set_a_field_are_refused() -> None:
    options = EngineOptions("m", max_model_len=10, extra_args=("--max-model-len", "20"))
    with pytest.raises(UsageError, match="set --max-model-len to something else") as caught:
        render_command(options, V32)
    assert "max_model_len reads back as 20" in caught.value.why


def parse(*words: str) -> EngineOptions:
    return parse_command(("vllm", "serve", "M", *words), (), V32)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--max_model_len", "750k"], {"max_model_len": 750_000}),
        (["--max-model-len=0.75m"], {"max_model_len": 750_000}),
        (["--max-model-len", "1M"], {"max_model_len": 1_048_576}),
        (["--max-model-len", "auto"], {"max_model_len_auto": True}),
        (["--max-model-len", "-1"], {"max_model_len_auto": True}),
        (["--max-model-len", "auto", "--max-model-len", "5"], {"max_model_len": 5}),
        (["--kv-cache-memory", "10G"], {"kv_cache_memory_bytes": 10 * 2**30}),
        (["--kv-cache-memory-bytes", "10g"], {"kv_cache_memory_bytes": 10**10}),
        (["--gpu-memory-util", ".9"], {"gpu_memory_utilization": 0.9}),
        (["--device-memory-utilization", "0.5"], {"gpu_memory_utilization": 0.5}),
        (["-tp", "4", "-pp=2", "-dp", "2", "-dcp", "2"], {"tensor_parallel_size": 4, "pipeline_parallel_size": 2,
                                                          "data_parallel_size": 2, "decode_context_parallel_size": 2}),
        (["--no-enable-prefix-caching"], {"enable_prefix_caching": False}),
        (["--no_scheduler_reserve_full"], {"scheduler_reserve_full_isl": False}),
        (["--enforce-eager", "--no-enforce-eager"], {"enforce_eager": False}),
        (["--numa-bind-nodes", "0", "1"], {"numa_bind_nodes": (0, 1)}),
        (["--kv-cache-dtype-skip-layers", "0", "sliding_window"], {"kv_cache_dtype_skip_layers": ("0", "sliding_window")}),
        (["--host", "h", "--quantization", "None", "--host", ""], {}),
        (["-q", "fp8", "--tool-call", "hermes"], {"quantization": "fp8", "tool_call_parser": "hermes"}),
        (["--speculative-config.method", "mtp", "--speculative_config.num_speculative_tokens=3"],
         {"speculative": SpeculativeOptions("mtp", 3)}),
        (["--spec-method", "ngram", "--spec-tokens", "5"], {"speculative": SpeculativeOptions("ngram", 5)}),
        (["--speculative-config", '{"method":"qwen3_5_mtp","num_speculative_tokens":2}'],
         {"speculative": SpeculativeOptions("mtp", 2)}),
        (["-sc", '{"method":"eagle3","num_speculative_tokens":2,"model":"d"}'],
         {"speculative": SpeculativeOptions("eagle3", 2, extra=(("model", "d"),))}),
        (["-cc.cudagraph_mode=piecewise"], {"cudagraph_mode": "PIECEWISE"}),
        (["--compilation-config", '{"cudagraph_mode":"NONE","mode":3}'],
         {"cudagraph_mode": "NONE", "compilation_extra": (("mode", 3),)}),
        (["--limit-mm-per-prompt.image", "4"], {"limit_mm_per_prompt": (("image", 4),)}),
        (["-cc", '{"cudagraph_num_of_warmups": 2k}'], {"compilation_extra": (("cudagraph_num_of_warmups", 2000),)}),
        (["--mm-processor-kwargs.size.height", "2k", "--mm-processor-kwargs.size.width=3"],
         {"mm_processor_kwargs": (("size", {"height": 2000, "width": 3}),)}),
        (["--mm-processor-kwargs.sizes+", "a,b", "--mm-processor-kwargs.sizes+=c"],
         {"mm_processor_kwargs": (("sizes", ["a", "b", "c"]),)}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_spellings_that_vllm_accepts_are_understood(words: list[str], expected: dict[str, object]) -> None:
    options = parse(*words)
    assert options == replace(EngineOptions("M", host="0.0.0.0"), **expected)  # type: ignore[arg-type] # one field each


@pytest.mark.parametrize(
    "extra",
    [
        ("--kv-transfer-config", '{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}'),
        ("--hf-overrides", '{"architectures":["X"]}'),
        (
            "--hf-overrides",
            '{"rope_parameters":{"rope_type":"yarn","factor":3.0,"original_max_position_embeddings":9}}',
        ),
        ("--hf-overrides", "my_package.override"),
        ("--speculative-config", '{"model":"draft"}'),
        ("--speculative-config", '{"method":"ngram","num_speculative_tokens":2,"prompt_lookup_max":"4"}'),
        ("--compilation-config", '{"cudagraph_mode":2}'),
        (
            "--kv-transfer-config",
            '{"kv_connector":"OffloadingConnector","kv_role":"kv_both","kv_connector_extra_config":{}}',
        ),
        ("--hf-overrides", '{"rope_parameters":{"rope_type":"linear","factor":3.0}}'),
        (
            "--hf-overrides",
            '{"rope_parameters":{"rope_type":"yarn","factor":"3","original_max_position_embeddings":9}}',
        ),
        ("--speculative-config", "None"),
        ("--limit-mm-per-prompt", '{"video":{"count":1}}'),
        ("--served-model-name", "a", "b"),
        ("--enable-lora", "--lora-modules", "a=b", "c=d"),
        ("-O3", "--attention-config.backend", "FLASHINFER"),
        ("--seed", "-1", "--no-enable-log-requests"),
    ],
    ids=" ".join,
)
def test_what_the_options_cannot_express_stays_untouched(extra: tuple[str, ...]) -> None:
    options = parse(*extra[:1], *extra[1:], "--port", "9")
    assert options == EngineOptions("M", host="0.0.0.0", port=9, extra_args=extra)
    assert render_command(options, V32).argv[-len(extra) :] == extra


@pytest.mark.parametrize(
    "tiers",
    [
        [{"type": "fs", "root_dir": "/a"}, {"type": "fs", "root_dir": "/b"}],
        [{"type": "obj", "root_dir": "/a"}],
        [{"type": "fs", "root_dir": "/a", "n_read_threads": "4"}],
        "fs",
    ],
    ids=["two", "another kind", "threads as text", "no list"],
)
def test_tiers_that_are_not_one_folder_stay_as_written(tiers: object) -> None:
    extra = {"cpu_bytes_to_use": 1, "spec_name": "TieringOffloadingSpec", "secondary_tiers": tiers}
    words = {"kv_connector": "OffloadingConnector", "kv_role": "kv_both", "kv_connector_extra_config": extra}
    offload = parse("--kv-transfer-config", json.dumps(words)).offload
    assert offload is not None
    assert offload.disk_path is None
    assert dict(offload.extra) == {"spec_name": "TieringOffloadingSpec", "secondary_tiers": tiers}


def test_a_disk_tier_without_its_spec_is_not_read_as_a_disk_tier() -> None:
    config = {"cpu_bytes_to_use": 1, "secondary_tiers": [{"type": "fs", "root_dir": "/d"}], "n_read_threads": 4}
    words = {"kv_connector": "OffloadingConnector", "kv_role": "kv_both", "kv_connector_extra_config": config}
    offload = parse("--kv-transfer-config", json.dumps(words)).offload
    assert offload is not None
    assert offload.disk_path is None
    assert dict(offload.extra) == {"secondary_tiers": config["secondary_tiers"], "n_read_threads": 4}


@pytest.mark.parametrize(
    "argv",
    [
        ("vllm", "serve", "--tensor-parallel-size", "2", "M"),
        ("/opt/venv/bin/vllm", "serve", "--model", "M", "-tp", "2"),
        ("python", "-m", "vllm.entrypoints.openai.api_server", "--model=M", "-tp=2"),
        ("python", "-m", "vllm.entrypoints.cli.main", "serve", "M", "-tp", "2"),
    ],
    ids=" ".join,
)
def test_the_model_is_found_wherever_it_stands(argv: tuple[str, ...]) -> None:
    assert parse_command(argv, (), V32) == EngineOptions("M", host="0.0.0.0", tensor_parallel_size=2)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--max-model-len", "750,000"], "--max-model-len '750,000' is not a number that vLLM reads"),
        (["--kv-cache-memory-bytes", "10GiB"], "--kv-cache-memory-bytes '10GiB' is not a number that vLLM reads"),
        (["--kv-cache-memory-bytes", "10.5G"], "--kv-cache-memory-bytes '10.5G' is not a number that vLLM reads"),
        (["--numa-bind-nodes", "a"], "--numa-bind-nodes 'a' is not a number that vLLM reads"),
        (["--limit-mm-per-prompt", "image=4"], "--limit-mm-per-prompt 'image=4' is not JSON"),
        (["--speculative-config", "{method: mtp}"], "--speculative-config '{method: mtp}' is not JSON"),
        (
            ["--mm-processor-kwargs", '{"max_pixels": 1.5G}'],
            "--mm-processor-kwargs '{\"max_pixels\": 1.5G}' is not JSON",
        ),
        (["--enforce-eager=true"], "--enforce-eager=true is not understood"),
        (["--max-model-len"], "--max-model-len has no value"),
        (["--enforce-eager", "True"], "--enforce-eager True is not understood"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_values_that_vllm_refuses_are_told_and_leave_their_field_unset(words: list[str], what: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(*words)
    assert caught.value.what == what
    reading = read_command(("vllm", "serve", "M", *words, "--dtype", "half"), (), V32)
    assert (reading.options.dtype, reading.options.max_model_len, reading.options.port) == ("half", None, 8000)
    assert [problem.what for problem in reading.problems] == [what]


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(UsageError, match=r"'x' is not a number that vLLM reads \(and 1 more\)") as caught:
        parse("--port", "x", "--max-num-seqs", "y")
    assert "--max-num-seqs 'y'" in caught.value.why


def test_a_command_without_a_model_is_told() -> None:
    with pytest.raises(UsageError, match="the command names no model"):
        parse_command(("vllm", "serve", "--port", "1"), (), V32)


def test_another_program_is_refused() -> None:
    with pytest.raises(UsageError, match="does not start a vLLM server"):
        parse_command(("ollama", "serve", "M"), (), V32)


def test_flags_younger_than_the_release_are_told() -> None:
    words = ("vllm", "serve", "M", "--device-memory-utilization", "0.5")
    with pytest.raises(UsageError, match=r"vLLM 0\.28\.0 has no --device-memory-utilization"):
        parse_command(words, (), get_release("0.28.0"))
    assert read_command(words, (), get_release("0.28.0")).options.extra_args == words[3:]


def test_an_open_variable_leaves_its_field_unset() -> None:
    options = parse("--port", "$PORT", "--tensor-parallel-size", "${TP}", "--served-model-name", "$NAME")
    assert options == EngineOptions("M", host="0.0.0.0", served_model_name="$NAME")
