"""A model is known by the names under which people keep it."""

import re

import pytest

from longreach.model.catalogue import checkpoint_names, find_catalogue_model
from longreach.model.likeness import recognise_model

NAMES = (
    ("qwen3-32b", "qwen3-32b", None),
    ("/models/Qwen3-32B/", "qwen3-32b", None),
    ("PATH/LLM-Research/gemma-3-27b-it", "gemma-3-27b", None),
    ("PATH/deepseek-v4-flash-0731/model", "deepseek-v4-flash", None),
    ("Qwen/Qwen3.5-122B-A10B-GPTQ-Int4", "qwen3.5-122b-a10b", "w4a16"),
    ("Qwen3.8-27B-W4A16", "qwen3.8-27b", "w4a16"),
    ("nm-testing/Qwen3-30B-A3B-NVFP4", "qwen3-30b-a3b", "nvfp4"),
    ("Qwen3-Coder-480B-A35B-Instruct-FP8", "qwen3-coder-480b-a35b", "fp8"),
    ("GLM-5.3-MXFP4", "glm-5.3", "mxfp4"),
    ("/cache/huggingface/qwen3.6-27b-autoround-int4", "qwen3.6-27b", "w4a16"),
    ("unsloth/Qwen2.5-VL-72B-Instruct-unsloth-bnb-4bit", "qwen2.5-vl-72b", "w4a16"),
    ("PATH/Meta-Llama-3.1-70B-Instruct-quantized.w8a8/", "llama-3.1-70b", "w8a8-int8"),
    ("/home/u/.cache/huggingface/hub/models--Qwen--Qwen3-32B-AWQ/snapshots/0123abc", "qwen3-32b", "w4a16"),
    ("qwen3-30b-a3b-thinking-2507", "qwen3-30b-a3b-2507", None),
    ("TheBloke/Mixtral-8x7B-Instruct-v0.1-AWQ", "mixtral-8x7b", "w4a16"),
    ("TheBloke/Mistral-7B-Instruct-v0.2-GPTQ", "mistral-7b-v0.2", "w4a16"),
    ("unsloth/Qwen3-0.6B-GGUF:Q4_K_M", "qwen3-0.6b", "other"),
    ("unsloth/Qwen3-0.6B-GGUF:UD-Q4_K_XL", "qwen3-0.6b", "other"),
    ("/models/Meta-Llama-3-8B-Instruct.Q8_0.gguf", "llama-3-8b", "other"),
    ("Qwen3-30B-A3B-BF16.gguf", "qwen3-30b-a3b", None),
    ("internlm/internlm2_5-7b-chat", "internlm2.5-7b", None),
    ("OpenGVLab/InternVL3_5-8B", "internvl3.5-8b", None),
    ("PATH/Qwen2-VL-7B_instruct", "qwen2-vl-7b", None),
    ("llama3-8b", "llama-3-8b", None),
    ("Qwen-2.5-7B-Instruct", "qwen2.5-7b", None),
    ("lmsys/vicuna-7b-v1.5", "llama-2-7b", None),
    ("HuggingFaceH4/zephyr-7b-beta", "mistral-7b-v0.1", None),
    ("gpt2", "gpt2", None),
)


@pytest.mark.parametrize(("reference", "name", "quantization"), NAMES, ids=[row[0] for row in NAMES])
def test_name_or_path_means_its_catalogue_model(reference: str, name: str, quantization: str | None) -> None:
    match = recognise_model(reference)
    assert match is not None
    assert match.name == name
    assert quantization in (None, match.quantization)


@pytest.mark.parametrize(
    "reference",
    ["", "/", ":", "my-model", "gpt3", "/models/", "qwen", "llama-3", "x-q4", "Qwen3-VL-MODEL", "$MODEL", "x" * 5000],
)
def test_names_of_nothing_known_stay_unknown(reference: str) -> None:
    assert recognise_model(reference) is None


SIZE = re.compile(r"(\d+(?:\.\d+)?[bt])(?![a-z])")


def test_published_checkpoints_are_as_large_as_their_models() -> None:
    wrong = []
    for repository in checkpoint_names():
        match = find_catalogue_model(repository)
        assert match is not None
        named, own = SIZE.findall(repository.rpartition("/")[2]), SIZE.findall(match.name)
        if named and own and named[0] != own[0]:
            wrong.append((repository, match.name))
    assert wrong == []
