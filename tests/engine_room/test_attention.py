"""Which attention backend a card takes, as far as it is known."""

import pytest

from longreach.engine.attention import expected_attention_backends, latent_block_size


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


@pytest.mark.parametrize(
    ("capability", "dtype", "kind", "release", "expected"),
    [
        ("12.0", "nvfp4", "dense", (0, 27, 1), None),
        ("12.0", "nvfp4", "dense", (0, 32, 0), ("FLASHINFER",)),
        ("10.0", "nvfp4", "dense", (0, 22, 1), ("FLASHINFER",)),
        ("12.0", "fp8", "mla", (0, 16, 0), None),
        ("12.0", "fp8", "mla", (0, 18, 1), ("TRITON_MLA",)),
        ("9.0", "fp8_e4m3", "sparse", (0, 17, 1), ("FLASHMLA_SPARSE",)),
        ("9.0", "fp8_e4m3", "sparse", (0, 23, 0), None),
        ("9.0", "fp8", "sparse", (0, 23, 0), ("FLASHMLA_SPARSE",)),
        ("10.0", "fp8_e4m3", "sparse", (0, 23, 0), ("FLASHINFER_MLA_SPARSE",)),
        ("8.0", "auto", "sparse", (0, 32, 0), None),
        ("9.0", "auto", "dense", (0, 10, 2), None),
    ],
)
def test_backends_and_dtypes_come_with_a_release(
    capability: str, dtype: str, kind: str, release: tuple[int, ...], expected: tuple[str, ...] | None
) -> None:
    found = expected_attention_backends(
        capability, dtype, is_mla=kind == "mla", is_sparse=kind == "sparse", release=release
    )
    assert found == expected


@pytest.mark.parametrize(
    ("capability", "kv_cache_dtype", "has_indexer", "block_size"),
    [
        ("9.0", "auto", False, 16),
        ("9.0", "fp8_e4m3", False, 64),
        ("10.0", "auto", False, 32),
        ("8.9", "fp8_e4m3", False, 16),
        ("9.0", "auto", True, 64),
        ("gfx942", "auto", False, None),
    ],
    ids=["hopper", "hopper fp8", "blackwell", "ada", "sparse", "amd"],
)
def test_the_latent_block_follows_the_backend(
    capability: str, kv_cache_dtype: str, has_indexer: bool, block_size: int | None
) -> None:
    assert latent_block_size(capability, kv_cache_dtype, has_indexer=has_indexer) == block_size
