import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Longreach = Callable[..., tuple[int, str, str]]
PlanJson = Callable[..., tuple[int, dict[str, Any]]]

BOX = ("--gpus", "4xRTX4090", "--tp", "4", "--kv-cache-dtype", "fp8_e4m3", "--kv-cache-memory-bytes", "10G",
       "--max-model-len", "750k", "--vllm", "0.32.0")  # fmt: skip


def test_a_dense_model_of_750k_tokens_does_not_fit_the_box(plan_json: PlanJson) -> None:
    code, document = plan_json("qwen3-32b", *BOX)
    cache = document["instances"][0]["kv_cache"]
    assert code == 1
    assert document["verdict"] == "does_not_fit"
    assert cache["kv_capacity_tokens"] == 327_680
    assert cache["largest_max_model_len"] == 327_664
    assert cache["certainty"] == "exact"
    causes = [finding["cause"] for finding in document["findings"] if finding["severity"] == "error"]
    assert "kv_too_small_for_max_len" in causes


def test_the_hybrid_of_750k_tokens_fits_the_box_with_mtp(plan_json: PlanJson) -> None:
    code, document = plan_json("qwen3.6-27b", *BOX, "--spec", "mtp:3", "--weights", "w4a16")
    cache = document["instances"][0]["kv_cache"]
    assert (code, document["verdict"]) == (0, "fits")
    assert (cache["block_size"], cache["num_blocks"], cache["kv_capacity_tokens"]) == (1600, 771, 1_194_731)
    assert cache["max_concurrency"] == pytest.approx(1.593, abs=0.001)


def test_the_cold_first_token_has_a_physical_bound(plan_json: PlanJson) -> None:
    _, document = plan_json("qwen3.6-27b", *BOX, "--weights", "w4a16", "--max-num-batched-tokens", "8192")
    speed = document["instances"][0]["speed"][0]
    assert speed["prompt_tokens"] == 750_000
    assert speed["num_prefill_chunks"] == 92
    cold = speed["ttft_cold_s"]
    assert 200 < cold["lower_bound"] < 225
    assert cold["lower_bound"] <= cold["low"] <= cold["high"]


def test_json_has_the_promised_keys(plan_json: PlanJson) -> None:
    _, document = plan_json("qwen3.6-27b", *BOX, "--cpu-tier", "200GiB", "--mean-input", "32k", "--weights", "w4a16")
    assert {"verdict", "model", "machine", "release", "instances", "findings"} <= document.keys()
    assert {"name", "num_layers", "kv_bytes_per_token"} <= document["model"].keys()
    instance = document["instances"][0]
    assert {
        "name",
        "argv",
        "env",
        "shell",
        "kv_cache",
        "tiers",
        "speed",
        "concurrency_at_mean_input",
    } <= instance.keys()
    assert {
        "certainty", "block_size", "bytes_per_block", "num_blocks", "kv_capacity_tokens", "max_concurrency",
        "needed_bytes_per_gpu", "available_bytes_per_gpu", "largest_max_model_len",
    } <= instance["kv_cache"].keys()  # fmt: skip
    assert [tier["name"] for tier in instance["tiers"]] == ["gpu", "cpu"]
    for tier in instance["tiers"]:
        assert {"name", "capacity_tokens", "capacity_bytes", "reload_tokens_per_s", "certainty"} <= tier.keys()
    assert [speed["prompt_tokens"] for speed in instance["speed"]] == [750_000, 32_000]
    assert {"prompt_tokens", "num_prefill_chunks", "ttft_cold_s", "ttft_warm_s", "decode_tokens_per_s"} <= instance[
        "speed"
    ][0].keys()
    assert {"gpu", "gpu_and_cpu"} <= instance["concurrency_at_mean_input"].keys()
    for finding in document["findings"]:
        assert {"code", "severity", "what", "why", "fix", "cause"} <= finding.keys()


def test_the_written_plan_is_the_printed_one(longreach: Longreach, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    _, out, _ = longreach("plan", "qwen3.6-27b", *BOX, "--weights", "w4a16", "-o", str(path), "--json")
    assert yaml.safe_load(path.read_text(encoding="utf-8")) == json.loads(out)
    assert list(tmp_path.iterdir()) == [path]


def test_only_the_document_is_on_stdout(longreach: Longreach, tmp_path: Path) -> None:
    _, out, err = longreach("plan", "qwen3-32b", *BOX, "--json", "-o", str(tmp_path / "plan.yaml"))
    json.loads(out)
    assert err == ""


def test_the_screen_says_the_verdict_first(longreach: Longreach) -> None:
    code, out, _ = longreach("plan", "qwen3-32b", *BOX)
    assert code == 1
    assert out.startswith("DOES NOT FIT")
    assert "327,664 tokens" in out
    assert "error[LR103]" in out


def test_what_was_not_given_is_chosen_with_its_reason(plan_json: PlanJson) -> None:
    code, document = plan_json("qwen3.6-27b", "--gpus", "4xRTX4090", "--max-model-len", "750k", "--weights", "w4a16")
    assert code == 0
    chosen = {choice["option"]: choice for choice in document["choices"]}
    assert chosen["--tp"]["value"] == "4"
    assert "--kv-cache-memory-bytes" in chosen
    assert all(choice["why"] for choice in document["choices"])


def test_fp8_kv_is_chosen_only_when_the_goal_needs_it(plan_json: PlanJson) -> None:
    place = ("--gpus", "4xRTX4090", "--tp", "4", "--kv-cache-memory-bytes", "10G", "--weights", "w4a16")
    _, short = plan_json("qwen3.6-27b", *place, "--max-model-len", "128k")
    _, long = plan_json("qwen3.6-27b", *place, "--max-model-len", "750k")
    assert "--kv-cache-dtype" not in short["instances"][0]["argv"]
    assert "fp8_e4m3" in long["instances"][0]["argv"]


def test_utilization_gives_an_estimate(plan_json: PlanJson) -> None:
    _, document = plan_json("qwen3-8b", "--gpus", "1xH100", "--gpu-memory-utilization", "0.9")
    instance = document["instances"][0]
    assert instance["kv_cache"]["certainty"] == "estimate"
    low, high = instance["memory"]["kv_bytes"]
    assert low < high
    assert "--kv-cache-memory-bytes" not in instance["argv"]


def test_instances_share_the_gpus_by_their_own_settings(plan_json: PlanJson) -> None:
    _, document = plan_json(
        "qwen3.6-27b", "--gpus", "4xRTX4090", "--weights", "w4a16", "--kv-cache-dtype", "fp8_e4m3",
        "--instance", "short:tp=2,max-model-len=128k", "--instance", "long:tp=2,max-model-len=400k",
    )  # fmt: skip
    short, long = document["instances"]
    assert (short["gpu_indices"], long["gpu_indices"]) == ([0, 1], [2, 3])
    assert (short["port"], long["port"]) == (8000, 8001)
    assert (short["env"]["CUDA_VISIBLE_DEVICES"], long["env"]["CUDA_VISIBLE_DEVICES"]) == ("0,1", "2,3")
    assert not any("rope" in word for word in short["argv"])
    assert any("yarn" in word for word in long["argv"])


def test_arguments_after_the_dashes_reach_vllm(plan_json: PlanJson) -> None:
    _, document = plan_json("qwen3-8b", "--gpus", "1xH100", "--", "--enable-log-requests")
    assert document["instances"][0]["argv"][-1] == "--enable-log-requests"


@pytest.mark.parametrize(
    ("argv", "code", "word"),
    [
        (["no-such-model", "--gpus", "1xH100"], 2, "no-such-model"),
        (["qwen3-8b", "--gpus", "4xRTX409"], 2, "RTX-4090"),
        (["qwen3-8b", "--gpus", "0xH100"], 2, "GPU"),
        (["qwen3-8b", "--gpus", "1xH100", "--vllm", "0.99"], 2, "0.99"),
        (["qwen3-8b", "--gpus", "1xH100", "--max-model-len", "750,000"], 2, "750,000"),
        (["qwen3-8b", "--gpus", "1xH100", "--max-model-len", "0"], 2, "max-model-len"),
        (["qwen3-8b", "--gpus", "1xH100", "--max-model-len", "999999999999999"], 2, "999999999999999"),
        (["qwen3-8b", "--gpus", "1xH100", "--tp", "0"], 2, "--tp"),
        (["qwen3-8b", "--gpus", "1xH100", "--tp", "2"], 2, "2 GPUs"),
        (["qwen3-8b", "--gpus", "1xH100", "--spec", "mtp"], 2, "mtp"),
        (["qwen3-8b", "--gpus", "1xH100", "--yarn", "banana"], 2, "banana"),
        (["qwen3-8b", "--gpus", "1xH100", "--yarn", "1e308"], 2, "1e308"),
        (["qwen3-8b", "--gpus", "1xH100", "--block-size", "17"], 2, "multiples of 16"),
        (["qwen3-8b", "--gpus", "1xH100", "--kv-cache-dtype", "fp9"], 2, "fp9"),
        (["qwen3-8b", "--gpus", "1xH100", "--link", "carrier-pigeon"], 2, "carrier-pigeon"),
        (["qwen3-8b", "--gpus", "1xH100", "--link", ""], 2, "link ''"),
        (["qwen3-8b", "--gpus", "1xH100", "--disk-tier", "/data"], 2, "--cpu-tier"),
        (["qwen3-8b", "--gpus", "1xH100", "--instance", "a:colour=red"], 2, "colour"),
        (["qwen3-8b", "--gpus", "1xH100", "--instance", "a:tp=x"], 2, "tp"),
        (["qwen3-8b", "--gpus", "2xH100", "--instance", "a:tp=1", "--instance", "a:tp=1"], 2, "repeat"),
        (["qwen3-8b", "--gpus", "1xH100", "--mm-processor-kwargs", "{"], 2, "JSON"),
        (["qwen3-8b", "--gpus", "1xH100", "--no-such-option"], 2, "--no-such-option"),
        (["qwen3-8b", "--gpus", "1xH100", "--mix", "90%:8k"], 2, "comes to 90"),
        (["qwen3-8b", "--gpus", "1xH100", "--variant", "two"], 2, "--variant needs --mix"),
        (
            ["qwen3-8b", "--gpus", "2xH100", "--mix", "1:8k,1:60k", "--instances", "2"],
            2,
            "does not go with --instances",
        ),
        (
            ["qwen3-8b", "--gpus", "2xH100", "--mix", "1:8k,1:60k", "--mean-input", "8k"],
            2,
            "both --mix and --mean-input",
        ),
        (["qwen3-8b", "--gpus", "2xH100", "--mix", "1:8k,1:60k", "--sweep", "tp"], 2, "does not go with --mix"),
        (["qwen3-8b", "--gpus", "1xH100", "--mix", "1:8k,1:60k", "--variant", "two"], 2, "no variant 'two'"),
        (["qwen3-8b", "--gpus", "3xH100", "--tp", "3"], 2, "32 attention heads"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_input_gets_advice(longreach: Longreach, argv: list[str], code: int, word: str) -> None:
    outcome, out, err = longreach("plan", *argv)
    assert outcome == code
    assert word in out + err
    assert "Traceback" not in err


def test_an_output_that_cannot_be_written_leaves_nothing(longreach: Longreach, tmp_path: Path) -> None:
    code, _, err = longreach("plan", "qwen3-8b", "--gpus", "1xH100", "-o", str(tmp_path / "no" / "plan.yaml"))
    assert code == 1
    assert "cannot write" in err
    assert not list(tmp_path.iterdir())


def test_a_mistyped_command_is_answered_with_the_nearest(longreach: Longreach) -> None:
    code, _, err = longreach("plna", "qwen3-8b")
    assert code == 2
    assert "did you mean 'plan'" in err


def test_the_story_fits_without_further_options(plan_json: PlanJson) -> None:
    code, document = plan_json("qwen3.6-27b", "--gpus", "4xRTX4090", "--max-model-len", "750k")
    assert (code, document["verdict"]) == (0, "fits")
    chosen = {choice["option"]: choice["why"] for choice in document["choices"]}
    assert "what one request needs" in chosen["--kv-cache-memory-bytes"]
    assert document["instances"][0]["memory"]["fits"] is not False


def test_a_model_nobody_knows_is_unknown_and_not_guessed(plan_json: PlanJson, tmp_path: Path) -> None:
    config = {
        "architectures": ["RetNetForCausalLM"], "model_type": "retnet", "num_hidden_layers": 2, "hidden_size": 64,
        "num_attention_heads": 4, "vocab_size": 1000, "max_position_embeddings": 4096, "layer_types": ["retention", "retention"],
    }  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    code, document = plan_json(str(path), "--gpus", "1xH100")
    assert (code, document["verdict"], document["instances"]) == (1, "unknown", [])
    assert [finding["cause"] for finding in document["findings"]] == ["model_not_understood"]


def test_a_model_folder_is_served_from_there(plan_json: PlanJson, tmp_path: Path) -> None:
    config = {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "num_hidden_layers": 2, "hidden_size": 64,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 1000, "intermediate_size": 128,
        "max_position_embeddings": 4096, "torch_dtype": "bfloat16", "tie_word_embeddings": True,
    }  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    for reference in (tmp_path, path):
        _, document = plan_json(str(reference), "--gpus", "1xH100")
        assert document["instances"][0]["argv"][:3] == ["vllm", "serve", str(tmp_path)]


def test_an_error_is_a_document_too(longreach: Longreach) -> None:
    code, out, err = longreach("plan", "no-such-model", "--gpus", "1xH100", "--json")
    assert code == 2
    assert set(json.loads(out)["error"]) == {"what", "why", "fix", "cause"}
    assert "no-such-model" in err


def test_unknown_kv_memory_is_an_unknown_verdict_with_its_reason(plan_json: PlanJson) -> None:
    code, document = plan_json("qwen3-8b", "--gpus", "1xThor")
    assert (code, document["verdict"]) == (1, "unknown")
    assert "kv_memory_unknown" in [finding["cause"] for finding in document["findings"]]


def test_a_mix_is_planned_both_ways_and_the_chosen_one_is_written(plan_json: PlanJson, tmp_path: Path) -> None:
    command = ("qwen3-32b", "--gpus", "8xRTX4090", "--weights", "w4a16", "--mix", "90%:8k,10%:100k")
    path = tmp_path / "plan.yaml"
    code, document = plan_json(*command, "-o", str(path))
    assert (code, document["verdict"]) == (0, "fits")
    assert [(item["name"], item["chosen"]) for item in document["variants"]] == [("one", False), ("two", True)]
    assert all(item["instances"] and item["classes"] for item in document["variants"])
    written = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert [item["name"] for item in written["instances"]] == ["short", "long"]
    _, other = plan_json(*command, "--variant", "one")
    assert [item["name"] for item in other["instances"]] == ["main"]
