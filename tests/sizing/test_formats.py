"""Bytes of one token in one layer, by KV cache format."""

import pytest

from longreach.errors import UnknownModelError, UsageError
from longreach.model.spec import AttentionLayer, CrossAttentionLayer, IndexerLayer, KvLayer, MlaLayer
from longreach.sizing.formats import FORMATS, get_kv_format, token_bytes_per_gpu

GQA = AttentionLayer(64, 8, 128, 128)
MLA = MlaLayer(128, 512, 64, 128, 128)


@pytest.mark.parametrize(
    ("kv_cache_dtype", "layer", "expected"),
    [
        ("auto", GQA, 8 * 256 * 2),
        ("float32", GQA, 8 * 256 * 4),
        ("fp8_e4m3", GQA, 8 * 256),
        ("fp8_inc", GQA, 8 * 256),
        ("int8_per_token_head", GQA, 8 * 264),
        ("int4_per_token_head", GQA, 8 * 136),
        ("nvfp4", GQA, 8 * 144),
        ("turboquant_k8v4", GQA, 8 * 196),
        ("turboquant_4bit_nc", GQA, 8 * 134),
        ("turboquant_k3v4_nc", GQA, 8 * 118),
        ("turboquant_3bit_nc", GQA, 8 * 102),
        ("ultraquant_4bit", GQA, 8 * 136),
        ("ultraquant_4bit", AttentionLayer(64, 8, 256, 256), 8 * 272),
        ("fp8", AttentionLayer(64, 8, 192, 128), 8 * 320),
        ("auto", MLA, 1152),
        ("fp8", MLA, 576),
        ("fp8_per_token_head", MLA, 584),
        ("int4_per_token_head", MLA, 296),
        ("fp8_ds_mla", MLA, 656),
        ("nvfp4_ds_mla", MLA, 352),
        ("fp8_ds_mla", IndexerLayer(128), 132),
        ("auto", CrossAttentionLayer(20, 64, 1500), 20 * 128 * 2),
    ],
)
def test_each_format_has_its_bytes(kv_cache_dtype: str, layer: KvLayer, expected: int) -> None:
    assert isinstance(layer, AttentionLayer | MlaLayer | IndexerLayer | CrossAttentionLayer)
    assert token_bytes_per_gpu(layer, get_kv_format(kv_cache_dtype, "bfloat16"), tp_size=1) == expected


def test_kv_heads_replicate_when_tp_exceeds_them() -> None:
    plain = get_kv_format("fp8", "bfloat16")
    assert [token_bytes_per_gpu(GQA, plain, tp_size) for tp_size in (1, 2, 8, 16)] == [2048, 1024, 256, 256]


def test_every_gpu_holds_the_whole_latent() -> None:
    assert token_bytes_per_gpu(MLA, get_kv_format("auto", "bfloat16"), tp_size=8) == 1152


def test_packed_slots_are_even() -> None:
    odd = AttentionLayer(8, 1, 100, 100)
    for name in (name for name in FORMATS if name.startswith("turboquant")):
        assert token_bytes_per_gpu(odd, get_kv_format(name, "bfloat16"), 1) % 2 == 0


def test_octave_formats_are_not_guessed() -> None:
    with pytest.raises(UnknownModelError, match="octave_8") as raised:
        get_kv_format("octave_8", "bfloat16")
    assert "fp8_e4m3" in raised.value.fix


def test_an_unknown_format_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError) as raised:
        get_kv_format("fp8_e4m4", "bfloat16")
    assert "fp8_e4m3" in raised.value.fix


@pytest.mark.parametrize(
    ("kv_cache_dtype", "layer"),
    [("nvfp4", MLA), ("turboquant_k8v4", MLA), ("fp8_ds_mla", GQA), ("nvfp4", AttentionLayer(64, 8, 192, 128))],
)
def test_a_format_that_cannot_hold_the_layer_is_refused(kv_cache_dtype: str, layer: AttentionLayer | MlaLayer) -> None:
    with pytest.raises(UsageError, match=kv_cache_dtype):
        token_bytes_per_gpu(layer, get_kv_format(kv_cache_dtype, "bfloat16"), 1)
