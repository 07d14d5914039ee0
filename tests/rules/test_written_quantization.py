"""What `--quantization` may say of a checkpoint that names its own form."""

import pytest
from tests.rules.commands import written

from longreach.rules.written_quantization import quantization_contradicts_name, quantization_mismatch


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("nvidia/Llama-3.3-70B-Instruct-NVFP4 --quantization fp8", "NVFP4"),
        ("/models/qwen3-8b-awq --quantization gptq", "AWQ"),
        ("org/Model-7B-GPTQ-4bit --quantization awq", "GPTQ"),
        ("org/Model-7B-FP8 --quantization bitsandbytes", "FP8"),
    ],
)
def test_method_of_another_form_contradicts_the_name(line: str, form: str) -> None:
    (finding,) = quantization_contradicts_name.check(written(line))
    assert f"the name says {form}" in finding.why


@pytest.mark.parametrize(
    "line",
    [
        "org/Model-7B-AWQ --quantization awq_marlin",
        "org/Model-NVFP4-FP8 --quantization awq",
        "org/Model-AWQ-GGUF.gguf --quantization gguf",
        "org/Model-FP8 --quantization modelopt",
        "org/Model-7B-AWQ --quantization auto_round",
        "org/Model-7B --quantization fp8",
    ],
)
def test_what_may_be_right_is_not_said(line: str) -> None:
    said = [finding.why for finding in quantization_contradicts_name.check(written(line))]
    assert not [why for why in said if "the name says" in why]


@pytest.mark.parametrize(
    ("line", "own"),
    [
        ("Qwen/Qwen3-32B-FP8 --quantization awq", "fp8"),
        ("Qwen/Qwen2.5-72B-Instruct-AWQ --quantization fp8", "awq"),
        ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4 --quantization awq", "gptq"),
    ],
)
def test_publisher_s_naming_tells_the_method(line: str, own: str) -> None:
    (finding,) = quantization_mismatch.check(written(line))
    assert finding.what.endswith(f"checkpoint's own {own}")
    assert not list(quantization_contradicts_name.check(written(line)))
