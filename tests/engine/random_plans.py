"""Seeded random KV plans: layer mixtures and settings that vLLM may meet, and some that it refuses."""

from dataclasses import dataclass
from random import Random

from tests.sizing.models import spec

from longreach.engine.release import get_release
from longreach.model.spec import (
    AttentionLayer,
    CrossAttentionLayer,
    GatedDeltaNetLayer,
    IndexerLayer,
    KdaLayer,
    KvLayer,
    LinearAttentionLayer,
    Mamba1Layer,
    Mamba2Layer,
    MlaLayer,
    ModelSpec,
    ShortConvLayer,
)
from longreach.sizing.values import KvCacheRequest

_GQA_DTYPES = (
    "auto",
    "auto",
    "bfloat16",
    "fp8_e4m3",
    "fp8_e4m3",
    "fp8_e5m2",
    "int8_per_token_head",
    "int4_per_token_head",
    "nvfp4",
    "turboquant_k8v4",
    "turboquant_3bit_nc",
)
_MLA_DTYPES = ("auto", "auto", "fp8", "int8_per_token_head", "int4_per_token_head", "fp8_ds_mla", "nvfp4_ds_mla")
_MIXED_DTYPES = ("auto", "fp8", "int8_per_token_head", "int4_per_token_head")  # latent and plain layers side by side
_SKIPPED_LAYERS: tuple[tuple[str, ...], ...] = ((), (), (), (), ("sliding_window",), ("1", "3"))
_FAMILIES = (
    "dense",
    "dense",
    "mixed_heads",
    "mla",
    "mla_indexer",
    "sliding",
    "sliding",
    "two_windows",
    "chunked",
    "state",
    "state",
    "state",
    "mla_state",
    "sliding_state",
    "cross",
    "mla_sliding",
    "only_state",
)


@dataclass(frozen=True, slots=True)
class _Heads:
    num_heads: int
    num_kv_heads: int
    head_dim: int


class PlanSource:
    """Draws plans from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.release = get_release("0.32.0")

    def draw(self) -> KvCacheRequest:
        pick = self.random.choice
        family = pick(_FAMILIES)
        heads = _Heads(pick((16, 32, 48, 64)), pick((1, 2, 4, 8, 16)), pick((64, 128, 256)))
        model = self._model(family, heads)
        kv_cache_dtype = pick(_dtypes(model))
        kernel = 16 if kv_cache_dtype.startswith("turboquant") or family == "only_state" else pick((16, 16, 16, 32, 64))
        tp_size = pick((1, 1, 2, 4, 8))
        return KvCacheRequest(
            model=model,
            release=self.release,
            max_model_len=self._length(),
            available_bytes_per_gpu=self.random.randrange(1, pick((2**28, 2**32, 2**35, 2**37))),
            tp_size=tp_size,
            pp_size=pick((1, 1, 1, 2, 3, 4)),
            dcp_size=pick((1, 1, 1, tp_size)),
            kv_cache_dtype=kv_cache_dtype,
            max_num_batched_tokens=pick((512, 2048, 8192, 16384)),
            num_speculative_tokens=pick((0, 0, 1, 2, 3)),
            use_draft_layers=bool(model.draft_layers) and pick((False, True)),
            prefix_caching=pick((True, True, False)),
            async_scheduling=pick((True, False)),
            hybrid_kv_cache_manager=pick((True, True, True, False)),
            block_size=pick((None, None, None, 16, 32, 48, 64, 128)),
            default_block_size=max(16, kernel),
            min_kernel_block_size=kernel,
            mamba_cache_dtype=pick(("auto", "auto", "float32")),
            # of two kinds of attention the first layer's backend would decide, which is the platform's choice
            kv_cache_dtype_skip_layers=() if family == "mla_sliding" else pick(_SKIPPED_LAYERS),
            model_runner_v2=pick((True, False)),
        )

    def _length(self) -> int:
        longest = self.random.choice((2000, 40_000, 200_000, 1_100_000))
        return self.random.choice((self.random.randrange(1, longest), 1 << self.random.randrange(4, 20)))

    def _model(self, family: str, heads: _Heads) -> ModelSpec:
        count, period = self.random.randrange(4, 40), self.random.choice((2, 3, 4, 6))
        full = _attention(heads)
        layers: list[KvLayer] = [full] * count
        drafts: list[KvLayer] = [full] * self.random.randrange(0, 3)
        num_layers = count
        match family:
            case "mixed_heads":
                layers = [_attention(_Heads(heads.num_heads, self.random.choice((2, 4, 8)), 128)) for _ in range(count)]
            case "mla" | "mla_indexer":
                layers, drafts = [_mla(heads)] * count, [_mla(heads)]
                if family == "mla_indexer":
                    layers = [layer for _ in range(count) for layer in (_mla(heads), IndexerLayer(128))]
            case "sliding" | "two_windows":
                layers = self._patterned(count, period, full, self._windowed(heads))
                if family == "two_windows":
                    layers[: count // 2] = [_attention(heads, window=333)] * (count // 2)
            case "chunked":
                layers = self._patterned(count, period, full, _attention(heads, chunk=self.random.choice((1000, 8192))))
            case "state":
                layers = self._patterned(count, period, full, self._state())
            case "mla_state":
                layers, drafts = self._patterned(count, period, _mla(heads), self._state()), [_mla(heads)]
            case "sliding_state":
                layers = self._patterned(count, period, full, self._state())
                layers[1::5] = [_attention(heads, window=512)] * len(layers[1::5])
            case "cross":
                layers = [
                    layer
                    for _ in range(count)
                    for layer in (full, CrossAttentionLayer(heads.num_kv_heads, heads.head_dim, 1500))
                ]
                drafts = []
            case "mla_sliding":
                layers = self._patterned(count, period, _mla(heads), self._windowed(heads))
            case "only_state":
                layers, drafts = [self._state()] * count, []
            case _:
                pass
        return spec(
            family,
            layers,
            heads=heads.num_heads,
            kv_heads=heads.num_kv_heads,
            head_dim=heads.head_dim,
            num_layers=num_layers,
            drafts=drafts,
            ssm_state_dtype=self.random.choice((None, "float32")),
        )

    def _patterned(self, count: int, period: int, last: KvLayer, others: KvLayer) -> list[KvLayer]:
        return [last if (index + 1) % period == 0 else others for index in range(count)]

    def _windowed(self, heads: _Heads) -> AttentionLayer:
        own = _Heads(
            heads.num_heads, self.random.choice((heads.num_kv_heads, 8)), self.random.choice((heads.head_dim, 192))
        )
        return _attention(own, window=self.random.choice((128, 512, 1024, 4096)))

    def _state(self) -> KvLayer:
        return self.random.choice(
            (
                GatedDeltaNetLayer(16, self.random.choice((32, 48, 64)), 128, 128, 4),
                KdaLayer(32, 128, 4, checkpoints_prefill=self.random.choice((False, True))),
                Mamba2Layer(8192, self.random.choice((1, 8)), self.random.choice((128, 256)), 128, 64, 4),
                Mamba1Layer(8192, 16, 4),
                ShortConvLayer(2048, 3),
                LinearAttentionLayer(64, 96),
            )
        )


def _dtypes(model: ModelSpec) -> tuple[str, ...]:
    kinds = {type(layer) for layer in model.layers}
    if MlaLayer not in kinds:
        return _GQA_DTYPES
    return _MIXED_DTYPES if AttentionLayer in kinds else _MLA_DTYPES


def _attention(heads: _Heads, window: int | None = None, chunk: int | None = None) -> AttentionLayer:
    return AttentionLayer(heads.num_heads, heads.num_kv_heads, heads.head_dim, heads.head_dim, window, chunk)


def _mla(heads: _Heads) -> MlaLayer:
    return MlaLayer(heads.num_heads, 512, 64, 128, 128)
