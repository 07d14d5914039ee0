"""The values that describe a checkpoint. Head counts are whole-model; the TP split is `sizing`'s business."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class AttentionLayer:
    """One layer that caches keys and values; `window_tokens` (sliding) and `chunk_tokens` (chunked local) bound it."""

    num_heads: int
    num_kv_heads: int
    head_dim: int
    v_head_dim: int
    window_tokens: int | None = None
    chunk_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class MlaLayer:
    """Multi-head latent attention: one latent of kv_lora_rank + rope_head_dim per token, held by every TP rank."""

    num_heads: int
    kv_lora_rank: int
    rope_head_dim: int
    nope_head_dim: int
    v_head_dim: int
    tokens_per_state: int = 1  # one cached vector stands for this many tokens (DeepSeek-V4 compresses 4 or 128)


@dataclass(frozen=True, slots=True)
class IndexerLayer:
    """Key cache of a DSA indexer (DeepSeek-V3.2, GLM-5): an extra uint8 layer beside its MLA layer."""

    head_dim: int
    num_heads: int | None = None  # query heads that score every key; they cost arithmetic, not cache
    tokens_per_state: int = 1  # one cached key stands for this many tokens (DeepSeek-V4, GLM-5.3-Flash)


@dataclass(frozen=True, slots=True)
class CompressedCache:
    """DeepSeek-V4: each layer keeps a window of whole vectors, and beside it one vector for `ratio` tokens, with the float32
    states of the compressors that make them. Ratios 0 and 1 keep the window alone; ratio 4 also keeps compressed index keys.
    """

    ratios: tuple[int, ...]  # of each decoder layer
    draft_ratios: tuple[int, ...]  # of its MTP layers
    head_dim: int
    index_head_dim: int
    window_tokens: int


@dataclass(frozen=True, slots=True)
class CrossAttentionLayer:
    """Decoder-to-encoder attention (Whisper): caches the encoder's tokens, not the prompt's."""

    num_kv_heads: int
    head_dim: int
    max_encoder_tokens: int


@dataclass(frozen=True, slots=True)
class GatedDeltaNetLayer:
    """Gated-delta linear attention (Qwen3-Next, Qwen3.5): constant state per sequence."""

    num_k_heads: int
    num_v_heads: int
    k_head_dim: int
    v_head_dim: int
    conv_kernel: int


@dataclass(frozen=True, slots=True)
class KdaLayer:
    """Kimi delta attention (Kimi-Linear, Kimi-K3)."""

    num_heads: int
    head_dim: int
    conv_kernel: int
    checkpoints_prefill: bool = (
        False  # its prefill kernel keeps one more state block (Kimi-K3, GLM-5-next; not Kimi-Linear)
    )


@dataclass(frozen=True, slots=True)
class Mamba2Layer:
    """Mamba2 mixer; intermediate_size = num_heads x head_dim."""

    intermediate_size: int
    num_groups: int
    state_size: int
    num_heads: int
    head_dim: int
    conv_kernel: int


@dataclass(frozen=True, slots=True)
class Mamba1Layer:
    """Mamba1 mixer (Jamba)."""

    intermediate_size: int
    state_size: int
    conv_kernel: int


@dataclass(frozen=True, slots=True)
class ShortConvLayer:
    """Gated short convolution (LFM2)."""

    dim: int
    conv_kernel: int


@dataclass(frozen=True, slots=True)
class LinearAttentionLayer:
    """Plain linear attention (MiniMax-Text-01)."""

    num_heads: int
    head_dim: int


RecurrentLayer = GatedDeltaNetLayer | KdaLayer | Mamba2Layer | Mamba1Layer | ShortConvLayer | LinearAttentionLayer
KvLayer = AttentionLayer | MlaLayer | IndexerLayer | CrossAttentionLayer | RecurrentLayer


@dataclass(frozen=True, slots=True)
class RopeSpec:
    """Rotary embedding as the text model's config gives it. `override_path` is where `--hf-overrides` must put its keys:
    `()` for a text-only config, `("text_config",)` for a nested one (a top-level override does nothing there).
    """

    rope_type: str  # "default", "yarn", "llama3", "longrope", ...
    theta: float | None
    rotary_dim: int | None
    parameters: tuple[tuple[str, object], ...]  # the config's rope dict as found (rope_theta folded in), sorted by key
    override_path: tuple[str, ...]
    factor: float | None = None
    original_max_position_embeddings: int | None = None
    mrope_section: tuple[int, ...] | None = None
    layer_dependent: bool = (
        False  # separate parameters for sliding and full layers (Gemma): one YaRN override does not fit
    )


@dataclass(frozen=True, slots=True)
class YarnRecommendation:
    """What the publisher of the model says about YaRN."""

    factor: float
    original_max_position_embeddings: int
    target_tokens: int | None
    source: str


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """Parameters of the language model and what is read per token. None where the config does not tell."""

    total: int | None  # everything in the checkpoint, towers and MTP included
    embedding: int  # input embedding plus an untied output head
    active: int | None  # multiplied per token without the embeddings (MoE: routed top-k + shared + attention)
    certainty: Literal["exact", "estimate"]


@dataclass(frozen=True, slots=True)
class TowerWidths:
    """A vision encoder: its hidden size, its MLP, and how patches become tokens of the language model."""

    hidden: int
    inner: int
    patches_per_token: int
    largest_image_tokens: int  # 0: not known
    outputs_per_token: int = 1  # embeddings handed on for one token (deep-stacked layers add theirs)
    parameters: int = 0  # with the projector; 0: not counted


@dataclass(frozen=True, slots=True)
class PassWidths:
    """Columns of the widest activations, whole model: what profiling a forward pass sees. 0: there is none."""

    dense: int  # of a dense MLP
    expert: int  # of one routed expert
    shared: int  # of the shared experts, where stated
    num_experts: int
    experts_per_token: int
    tower: TowerWidths | None = None


QuantizationName = Literal[
    "none", "fp8", "fp8-weight-only", "w4a16", "w4a8-int8", "w8a8-int8", "nvfp4", "mxfp4", "other"
]


@dataclass(frozen=True, slots=True)
class WeightsSpec:
    """What is known of the checkpoint's bytes."""

    quantization: QuantizationName
    quant_method: str | None  # quantization_config.quant_method as written
    total_bytes: int | None  # safetensors bytes on disk
    source: str  # where total_bytes comes from, in words
    checkpoint: str | None = None  # the published repository that holds these weights, where one is known
    differs: bool = False  # another form than the repository of the model's name holds was asked for


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One checkpoint, valid from construction on."""

    name: str
    architecture: str
    model_type: str
    layers: tuple[KvLayer, ...]  # target layers that own a cache, in order (KV-sharing layers are absent)
    draft_layers: tuple[KvLayer, ...]  # MTP layers, appended to the same pool when speculation is on
    num_layers: int  # decoder layers of the target
    hidden_size: int
    num_attention_heads: int
    num_kv_heads: int  # of the model-wide attention config
    head_dim: int
    vocab_size: int
    dtype: str  # "bfloat16", "float16", "float32"
    max_position_embeddings: int
    rope: RopeSpec | None
    parameters: ParameterCount
    weights: WeightsSpec
    is_multimodal: bool = False
    is_moe: bool = False
    ssm_state_dtype: str | None = None  # state dtype the model forces when --mamba-ssm-cache-dtype is auto
    kv_cache_dtype_forced: str | None = None  # a checkpoint that brings its own KV scheme
    index_topk: int | None = None  # sparse attention: tokens attended per query
    native_context_tokens: int | None = None  # what the publisher states, where it differs from max_position_embeddings
    yarn: YarnRecommendation | None = None
    hf_id: str | None = None
    architecture_releases: tuple[str, str] | None = None  # first and last vLLM release that registers the class
    tool_call_parsers: tuple[str, ...] = ()
    reasoning_parsers: tuple[str, ...] = ()
    spec_methods: tuple[str, ...] = ()
    kv_estimate_reason: str | None = None  # set when the KV rules are known only approximately
    sources: tuple[str, ...] = ()  # where the fields come from, with their confidence
    borrowing_layers: tuple[AttentionLayer, ...] = ()  # attend to an earlier layer's cache: arithmetic, but no cache
    mtp_supported: bool = True  # False: the checkpoint has MTP layers, but vLLM (up to 0.33) has no class for them
    layer_indices: tuple[int, ...] | None = None  # decoder layer of each entry of `layers`; None: not recorded
    widths: PassWidths | None = None  # None: a model written by hand, without them
    compressed: CompressedCache | None = None  # `layers` then holds what grows with the prompt only
    mamba_chunk_size: int | None = None  # tokens that Mamba2 kernels take at once

    @property
    def is_hybrid(self) -> bool:
        """Attention and recurrent layers in one model: vLLM gives them one common page."""
        recurrent = any(isinstance(layer, RecurrentLayer) for layer in self.layers)
        return recurrent and any(not isinstance(layer, RecurrentLayer) for layer in self.layers)
