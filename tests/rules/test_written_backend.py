"""Attention backends asked for by name, against model, card and release."""

import pytest
from tests.rules.cases_foreign import line

from longreach.rules.written_backend import named_backend_not_valid, no_backend_for_sparse_attention

A100, H100, B200, ADA, CONSUMER = "A100-PCIe-80GB", "H100", "B200", "RTX4090", "RTX5090"


@pytest.mark.parametrize(
    ("model", "backend", "gpus", "version", "reason"),
    [
        ("qwen3-8b", "CUTLASS_MLA", None, "0.32.0", "non-MLA not supported"),
        ("deepseek-v3", "FLASHINFER", None, "0.20.2", "MLA not supported"),
        ("deepseek-v3.2", "FLASHMLA", "8xH200", "0.32.0", "sparse not supported"),
        ("deepseek-v3", "FLASHMLA_SPARSE", "8xH200", "0.32.0", "non-sparse not supported"),
        ("deepseek-v2-lite", "FLASHMLA", A100, "0.32.0", "compute capability not supported"),
        ("deepseek-v2-lite", "FLASH_ATTN_MLA", B200, "0.32.0", "compute capability not supported"),
        ("gpt-oss-20b", "FLASHINFER", H100, "0.20.2", "attention sinks not supported"),
        ("gpt-oss-20b", "FLASH_ATTN", CONSUMER, "0.32.0", "attention sinks not supported"),
    ],
)
def test_backend_that_does_not_serve(model: str, backend: str, gpus: str | None, version: str, reason: str) -> None:
    (finding,) = named_backend_not_valid.check(line(model, f"--attention-backend {backend}", version, gpus))
    assert reason in finding.why


@pytest.mark.parametrize(
    ("model", "backend", "gpus", "version"),
    [
        ("deepseek-v2-lite", "FLASHMLA", H100, "0.32.0"),
        ("deepseek-v2-lite", "TRITON_MLA", A100, "0.32.0"),
        ("kimi-linear-48b-a3b", "TRITON_MLA", H100, "0.32.0"),
        ("gpt-oss-20b", "FLASHINFER", H100, "0.28.0"),
        ("gpt-oss-20b", "FLASHINFER", B200, "0.20.2"),
        ("gpt-oss-20b", "FLASH_ATTN", H100, "0.20.2"),
        ("gpt-oss-20b", "TRITON_ATTN", ADA, "0.20.2"),
        ("gpt-oss-20b", "FLASH_ATTN", None, "0.20.2"),
        ("deepseek-v4-flash", "FLASHMLA", H100, "0.32.0"),
        ("qwen3-8b", "CUSTOM", H100, "0.32.0"),
    ],
)
def test_backend_that_may_serve(model: str, backend: str, gpus: str | None, version: str) -> None:
    assert not list(named_backend_not_valid.check(line(model, f"--attention-backend {backend}", version, gpus)))


def test_chosen_version_of_flash_attention_is_not_judged() -> None:
    words = """--attention-backend FLASH_ATTN --attention-config '{"flash_attn_version": 3}'"""
    assert not list(named_backend_not_valid.check(line("gpt-oss-20b", words, "0.32.0", ADA)))


def test_sparse_attention_came_to_consumer_blackwell() -> None:
    before, after = (line("glm-5.3", "-tp 8", version, "8xRTX5090") for version in ("0.23.0", "0.24.0"))
    assert list(no_backend_for_sparse_attention.check(before))
    assert not list(no_backend_for_sparse_attention.check(after))
