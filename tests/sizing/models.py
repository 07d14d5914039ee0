"""Model shapes for sizing tests, written by hand from published configs: layers, heads, dims; towers and MLPs left out."""

from collections.abc import Sequence

from longreach.model.spec import (
    AttentionLayer,
    CrossAttentionLayer,
    GatedDeltaNetLayer,
    IndexerLayer,
    KdaLayer,
    KvLayer,
    Mamba2Layer,
    MlaLayer,
    ModelSpec,
    ParameterCount,
    WeightsSpec,
)


def attention(
    kv_heads: int, dim: int, *, heads: int = 64, window: int | None = None, chunk: int | None = None
) -> AttentionLayer:
    return AttentionLayer(heads, kv_heads, dim, dim, window_tokens=window, chunk_tokens=chunk)


def spec(
    name: str,
    layers: Sequence[KvLayer],
    *,
    heads: int = 64,
    kv_heads: int = 8,
    head_dim: int = 128,
    num_layers: int | None = None,
    drafts: Sequence[KvLayer] = (),
    **more: object,
) -> ModelSpec:
    return ModelSpec(
        name=name,
        architecture="",
        model_type="",
        layers=tuple(layers),
        draft_layers=tuple(drafts),
        num_layers=num_layers or len(layers),
        hidden_size=heads * head_dim,
        num_attention_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        vocab_size=128000,
        dtype="bfloat16",
        max_position_embeddings=131072,
        rope=None,
        parameters=ParameterCount(None, 0, None, "estimate"),
        weights=WeightsSpec("none", None, None, ""),
        **more,  # type: ignore[arg-type]
    )


def dense(name: str, num_layers: int, kv_heads: int = 8, head_dim: int = 128, heads: int = 64) -> ModelSpec:
    return spec(
        name,
        [attention(kv_heads, head_dim, heads=heads)] * num_layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
    )


def every(period: int, num_layers: int, last: KvLayer, others: KvLayer) -> list[KvLayer]:
    """`others`, with `last` closing every period."""
    return [last if (index + 1) % period == 0 else others for index in range(num_layers)]


QWEN3_8B = dense("qwen3-8b", 36, heads=32)
QWEN3_32B = dense("qwen3-32b", 64)
LLAMA_70B = dense("llama-3.1-70b", 80)
LLAMA_8B_WITH_EAGLE = spec(
    "8b-with-eagle", [attention(8, 128, heads=32)] * 32, heads=32, drafts=[attention(4, 128, heads=32)]
)

_DEEPSEEK_MLA = MlaLayer(128, 512, 64, 128, 128)
DEEPSEEK_V3 = spec("deepseek-v3", [_DEEPSEEK_MLA] * 61, heads=128, kv_heads=128, drafts=[_DEEPSEEK_MLA])
DEEPSEEK_V32 = spec("deepseek-v3.2", [_DEEPSEEK_MLA, IndexerLayer(128)] * 61, heads=128, kv_heads=128, num_layers=61)

GEMMA_3_27B = spec(
    "gemma-3-27b",
    every(6, 62, attention(16, 128, heads=32), attention(16, 128, heads=32, window=1024)),
    heads=32,
    kv_heads=16,
)
_GPT_OSS_LAYERS = every(2, 24, attention(8, 64), attention(8, 64, window=128))
GPT_OSS_20B = spec("gpt-oss-20b", _GPT_OSS_LAYERS, head_dim=64, drafts=[attention(8, 64)])
LLAMA_4_SCOUT = spec(
    "llama-4-scout", every(4, 48, attention(8, 128, heads=40), attention(8, 128, heads=40, chunk=8192)), heads=40
)
GEMMA_3N = spec(
    "gemma-3n",
    every(5, 20, attention(2, 256, heads=8), attention(2, 256, heads=8, window=512)),
    heads=8,
    kv_heads=2,
    head_dim=256,
)
_WHISPER_SELF, _WHISPER_CROSS = attention(20, 64, heads=20), CrossAttentionLayer(20, 64, 1500)
WHISPER = spec("whisper", [_WHISPER_SELF, _WHISPER_CROSS] * 32, heads=20, kv_heads=20, head_dim=64, num_layers=32)

QWEN3_NEXT_80B = spec(
    "qwen3-next-80b",
    every(4, 48, attention(2, 256, heads=16), GatedDeltaNetLayer(16, 32, 128, 128, 4)),
    heads=16,
    kv_heads=2,
    head_dim=256,
    drafts=[attention(2, 256, heads=16)],
)
QWEN35_27B = spec(
    "qwen3.5-27b",
    every(4, 64, attention(4, 256, heads=24), GatedDeltaNetLayer(16, 48, 128, 128, 4)),
    heads=24,
    kv_heads=4,
    head_dim=256,
    drafts=[attention(4, 256, heads=24)],
    ssm_state_dtype="float32",
)
QWEN35_35B_A3B = spec(
    "qwen3.5-35b-a3b",
    every(4, 40, attention(2, 256, heads=16), GatedDeltaNetLayer(16, 32, 128, 128, 4)),
    heads=16,
    kv_heads=2,
    head_dim=256,
    drafts=[attention(2, 256, heads=16)],
    ssm_state_dtype="float32",
)
_KIMI_MLA, _KIMI_KDA = MlaLayer(32, 512, 64, 128, 128), KdaLayer(32, 128, 4)
KIMI_LINEAR_48B = spec(
    "kimi-linear-48b",
    [_KIMI_MLA if index in (3, 7, 11, 15, 19, 23, 26) else _KIMI_KDA for index in range(27)],
    heads=32,
    kv_heads=32,
)
_NEMOTRON_MAMBA = Mamba2Layer(8192, 8, 128, 128, 64, 4)
NEMOTRON_H_8B = spec(
    "nemotron-h-8b",
    [attention(8, 128, heads=32) if index % 7 == 6 else _NEMOTRON_MAMBA for index in range(28)],
    heads=32,
    num_layers=52,
    ssm_state_dtype="float32",
)
