"""Which attention backend a card takes, as far as it is known."""

import pytest

from longreach.engine.attention import expected_attention_backends


@pytest.mark.parametrize(
    ("capability", "dtype", "is_mla", "expected"),
    [
        ("8.9", "auto", False, ("FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION")),
        ("8.9", "fp8_e4m3", False, ("FLASHINFER", "TRITON_ATTN")),
        ("12.0", "fp8", False, ("FLASHINFER", "TRITON_ATTN")),
        ("9.0", "fp8", False, ("FLASH_ATTN", "FLASHINFER", "TRITON_ATTN")),
        ("10.0", "fp8", False, ("FLASHINFER", "FLASH_ATTN", "TRITON_ATTN")),
        ("8.6", "int8_per_token_head", False, ("TRITON_ATTN",)),
        ("8.9", "turboquant_k8v4", False, ("TURBOQUANT",)),
        ("8.9", "nvfp4_4over6", False, None),
        ("7.5", "auto", False, ("TRITON_ATTN", "FLEX_ATTENTION")),
        ("9.0", "fp8", True, ("FLASHMLA", "TRITON_MLA")),
        ("8.9", "auto", True, ("TRITON_MLA",)),
        ("9.0", "fp8_ds_mla", True, None),
        ("gfx942", "auto", False, None),
        ("3.5", "auto", False, None),
    ],
)
def test_backends_in_vllm_s_order(capability: str, dtype: str, is_mla: bool, expected: tuple[str, ...] | None) -> None:
    assert expected_attention_backends(capability, dtype, is_mla=is_mla) == expected
