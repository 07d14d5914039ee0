"""What a foreign command amounts to, and what is left unsaid about it."""

import pytest
from tests.rules.cases_foreign import deployed, line

from longreach.engine.options import ServeCommand
from longreach.engine.release import get_release
from longreach.hardware.catalogue import parse_gpus
from longreach.hardware.machine import machine_from
from longreach.lint.check import Surroundings, read_written
from longreach.lint.deployment import deployment_of
from longreach.model.source import load_model
from longreach.rules.registry import check_deployment
from longreach.units import GIB

YARN = '{"text_config":{"rope_parameters":{"rope_type":"yarn","factor":3.0,"original_max_position_embeddings":262144}}}'


def errors(model: str, words: str = "", version: str = "0.32.0", gpus: str | None = None) -> list[str]:
    found = check_deployment(deployed(model, words, version, gpus))
    return [finding.code for finding in found if finding.severity == "error"]


@pytest.mark.parametrize(
    "words",
    ["-tp $TP", "--pipeline-parallel-size ${PP}", "--data-parallel-size $DP", "--decode-context-parallel-size $X"],
)
def test_sizes_in_shell_variables_are_not_judged(words: str) -> None:
    assert deployment_of(line("qwen3-32b", words)) is None


@pytest.mark.parametrize("words", ["--max-model-len $LEN", "--kv-cache-dtype $KV", "--gpu-memory-utilization $U"])
def test_cache_that_hangs_on_a_shell_variable_is_not_counted(words: str) -> None:
    found = deployed("qwen3-32b", words, gpus="4xH100")
    assert (found.capacity, errors("qwen3-32b", words, gpus="4xH100")) == (None, [])


@pytest.mark.parametrize("words", ["--mamba-block-size 100", "--hf-overrides '{\"num_hidden_layers\": 4}'"])
def test_cache_of_another_layout_is_not_counted(words: str) -> None:
    assert deployed("qwen3-32b", f"--kv-cache-memory-bytes 10G {words}").capacity is None


def test_explicit_bytes_are_counted_exactly_without_a_card() -> None:
    found = deployed("qwen3-32b", "-tp 4 --kv-cache-dtype fp8 --kv-cache-memory-bytes 10G --max-model-len 32768")
    assert found.capacity is not None
    assert (found.capacity.certainty, found.capacity.kv_capacity_tokens) == ("exact", 327_680)
    assert found.memory is None


def test_length_that_explicit_bytes_cannot_hold_is_an_error() -> None:
    words = "-tp 4 --kv-cache-dtype fp8 --kv-cache-memory-bytes 10G --max-model-len 40960"
    assert errors("qwen3-32b", words) == []
    assert "LR103" in errors("qwen3-32b", words.replace("10G", "1G"))


def test_refusal_under_a_share_is_said_only_where_nothing_could_make_it_fit() -> None:
    assert "LR103" in errors("qwen3-coder-480b-a35b", "-dp 8 --enable-expert-parallel --quantization fp8", gpus="8xH20")
    close = deployed("qwen3-32b", "--quantization fp8 --max-model-len 24576", gpus="L40S")
    assert close.capacity is not None
    assert (close.capacity.certainty, errors("qwen3-32b", "--quantization fp8 --max-model-len 24576", gpus="L40S")) == (
        "estimate",
        [],
    )


def test_weights_that_a_flag_keeps_elsewhere_are_not_weighed() -> None:
    assert "LR101" in errors("qwen3-32b", gpus="RTX4090")
    assert errors("qwen3-32b", "--cpu-offload-gb 60", gpus="RTX4090") == []


@pytest.mark.parametrize(
    ("words", "version", "length"),
    [
        ("", "0.32.0", 262_144),
        ("--max-model-len 32k", "0.32.0", 32_000),
        (f"--hf-overrides '{YARN}'", "0.29.0", 786_432),
        (f"--hf-overrides '{YARN}'", "0.30.0", 262_144),
    ],
)
def test_length_in_force_is_the_flag_or_what_the_release_derives(words: str, version: str, length: int) -> None:
    assert deployed("qwen3.6-27b", words, version).max_model_len == length


def test_automatic_length_is_the_one_that_fits() -> None:
    found = deployed("qwen3-32b", "-tp 4 --kv-cache-memory-bytes 1G --max-model-len auto")
    assert found.capacity is not None
    assert found.capacity.starts
    assert 16_000 < found.max_model_len < 17_000


@pytest.mark.parametrize(
    ("words", "gpus", "version", "limits"),
    [
        ("", None, "0.32.0", (2048, 256)),
        ("", "H100", "0.32.0", (8192, 1024)),
        ("", "B200", "0.32.0", (16384, 1024)),
        ("", "B200", "0.25.1", (8192, 1024)),
        ("--max-num-batched-tokens 512", None, "0.32.0", (512, 256)),
        ("--max-num-batched-tokens 128", None, "0.32.0", (128, 128)),
        ("--max-num-seqs 4096", None, "0.32.0", (4096, 4096)),
        ("--no-enable-chunked-prefill", None, "0.32.0", (40_960, 256)),
    ],
)
def test_batch_limits_are_what_vllm_resolves(
    words: str, gpus: str | None, version: str, limits: tuple[int, int]
) -> None:
    found = deployed("qwen3-8b", words, version, gpus)
    assert (found.max_num_batched_tokens, found.max_num_seqs) == limits


@pytest.mark.parametrize(
    ("words", "version", "cached"),
    [
        ("", "0.32.0", True),
        ("", "0.25.1", False),
        ("--enable-prefix-caching", "0.25.1", True),
        ("--enable-prefix-caching", "0.11.0", False),
        ("--no-enable-prefix-caching", "0.32.0", False),
    ],
)
def test_prefix_cache_of_a_hybrid_follows_the_release(words: str, version: str, *, cached: bool) -> None:
    assert deployed("qwen3-next-80b-a3b", words, version).prefix_caching is cached


def test_offloading_size_is_the_connector_by_another_name() -> None:
    found = deployed("qwen3-32b", "-tp 4 --kv-offloading-size 80 --kv-cache-memory-bytes 10G --max-model-len 32768")
    assert found.options.offload is not None
    assert found.options.offload.cpu_bytes == 80 * GIB
    assert found.tier("cpu") is not None


def test_unknown_machine_has_as_many_cards_as_the_command_takes_and_is_not_complained_about() -> None:
    found = deployed("qwen3-32b", "-tp 2 -dp 4")
    assert (found.machine.num_gpus, found.machine.gpu) == (8, None)
    codes = {finding.code for finding in check_deployment(found)}
    assert codes.isdisjoint({"LR520", "LR120", "LR114", "LR102", "LR507"})


@pytest.mark.parametrize(
    "words", ["-dp 16 --data-parallel-size-local 8", "-tp 16 --nnodes 2", "-tp 16 --distributed-executor-backend ray"]
)
def test_command_of_several_nodes_may_take_more_than_this_machine(words: str) -> None:
    assert "LR507" not in errors("qwen3-0.6b", words, gpus="8xH100")


def test_length_beyond_the_model_s_is_mended_by_the_publisher_s_yarn_or_cut() -> None:
    stretched = deployed("qwen2.5-72b", "-tp 4 --max-model-len 131072")
    assert stretched.rope is not None
    assert stretched.rope.factor == 4
    plain = deployed("llama-3.1-8b", "--max-model-len 200000")
    assert plain.rope is None
    assert "LR201" in errors("llama-3.1-8b", "--max-model-len 200000")


def test_pool_of_a_given_number_of_blocks_needs_no_card() -> None:
    words = "-tp 8 --kv-cache-dtype fp8 --num-gpu-blocks-override"
    small, large = (deployed("glm-5.3", f"{words} {blocks}") for blocks in (8192, 65_537))
    assert small.capacity is not None
    assert large.capacity is not None
    assert (small.capacity.starts, small.capacity.num_blocks) == (False, 8192)
    assert large.capacity.starts
    assert "LR103" in errors("glm-5.3", f"{words}=8192")
    assert "LR103" not in errors("glm-5.3", f"{words} 8192", "0.19.1")
    assert deployed("glm-5.3", f"{words} $BLOCKS").capacity is None


def test_weights_that_surely_fill_the_share_are_said_once() -> None:
    assert errors("deepseek-r1", "-tp 8", gpus="8xH100") == ["LR101"]
    assert errors("deepseek-r1", "-tp 8", gpus="8xH200") == []


def test_very_large_step_is_said_whatever_the_card() -> None:
    found = {
        finding.code for finding in check_deployment(deployed("llama-4-scout", "--max-num-batched-tokens 1000000"))
    }
    assert "LR406" in found
    usual = {finding.code for finding in check_deployment(deployed("llama-4-scout", "--max-num-batched-tokens 65536"))}
    assert "LR406" not in usual


def test_offload_that_a_hybrid_cannot_use_leaves_the_tier_uncounted() -> None:
    words = "-tp 8 --max-model-len 32768 --kv-offloading-backend native --kv-offloading-size 80"
    counted = deployment_of(line("qwen3.5-122b-a10b", words, "0.22.1", gpus="8xH200"))
    assert counted is not None
    assert (counted.tiers, counted.capacity is not None) == ((), True)


def test_arguments_that_name_no_model_are_not_counted() -> None:
    command = ServeCommand(("vllm", "serve", "--trust-remote-code", "--kv-cache-memory-bytes", "4294967296"), ())
    around = Surroundings(load_model("qwen3.6-27b"), machine_from(parse_gpus("1xRTX4090").gpu, 1))
    counted = deployment_of(read_written(command, get_release("0.26.0"), around))
    assert counted is not None
    assert (counted.capacity, counted.memory) == (None, None)


def test_state_blocks_of_a_share_are_refused_only_with_a_margin() -> None:
    words, tight = "--max-model-len 131072", "--max-model-len 131072 --max-num-seqs 1400"
    assert errors("nemotron-3-nano-30b-a3b", words, gpus="H100") == []
    assert errors("nemotron-3-nano-30b-a3b", tight, gpus="H100") == ["LR107"]


def test_default_batch_is_not_guessed_for_a_card_of_unknown_memory() -> None:
    words = "-dp 8 --enable-expert-parallel --enable-prefix-caching"
    assert errors("qwen3.5-397b-a17b", words, "0.17.1", gpus="8xMI325X") == []
