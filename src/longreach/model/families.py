"""The model families longreach understands: a row each, found by the language model's `model_type` or the architecture.

To add a family, add a row (or a reader in the file of its idea, then a row). Sources: the model classes of vLLM 0.32.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from longreach.model.attention import full_layers, plain_layer, read_attention_layers, read_encoder_decoder_layers
from longreach.model.decoder import Decoder
from longreach.model.hybrids import (
    read_bailing_linear_layers,
    read_bailing_v3_layers,
    read_falcon_h1_layers,
    read_gated_delta_layers,
    read_glm5_next_layers,
    read_granite_hybrid_layers,
    read_jamba_layers,
    read_kimi_k3_layers,
    read_kimi_layers,
    read_minimax_linear_layers,
    read_nemotron_h_layers,
    read_removed_attention_layers,
    read_short_conv_layers,
)
from longreach.model.latent import (
    mla_layer,
    read_compressed_cache,
    read_compressed_layers,
    read_double_mla_layers,
    read_mla_layers,
    read_sparse_mla_layers,
    sparse_mla_layers,
)
from longreach.model.sliding import (
    mimo_v2_sliding_layer,
    read_alternating_2,
    read_alternating_4,
    read_gemma3_layers,
    read_gemma3n_borrowers,
    read_gemma3n_layers,
    read_gemma4_borrowers,
    read_gemma4_layers,
    read_llama4_layers,
    read_mimo_v2_layers,
    read_step_layers,
    step_layers,
)
from longreach.model.spec import AttentionLayer, CompressedCache, KvLayer

LayerReader = Callable[[Decoder], Sequence[KvLayer | tuple[KvLayer, ...]]]
"""Gives each decoder layer's cache, or its caches: none, one or several."""


@dataclass(frozen=True, slots=True)
class Family:
    """How one family caches. `names` are model types or architectures; the architecture decides where both are known."""

    names: tuple[str, ...]
    read_layers: LayerReader
    read_draft_layers: Callable[[Decoder], tuple[KvLayer, ...]] = lambda _decoder: ()
    read_borrowing_layers: Callable[[Decoder], tuple[AttentionLayer, ...]] = lambda _decoder: ()
    has_rope: bool = True
    ssm_state_dtype: str | None = None  # the state dtype the engine forces for this family
    estimate_reason: str | None = None
    mtp_supported: bool = True
    read_compressed: Callable[[Decoder], CompressedCache] | None = None


def _mtp_count(decoder: Decoder) -> int:
    """MTP layers as each publisher spells them; MiniMax counts modules of `mtp_transformer_layers` each."""
    text = decoder.text
    modules = text.count("num_mtp_modules", most=64) * (text.optional_positive("mtp_transformer_layers", most=64) or 1)
    return text.count("mtp_num_hidden_layers", "num_nextn_predict_layers", most=64) or modules


def attention_draft(decoder: Decoder) -> tuple[KvLayer, ...]:
    """One full-attention layer of the model-wide shape for each MTP layer."""
    return (plain_layer(decoder, "full"),) * _mtp_count(decoder)


def mla_draft(decoder: Decoder) -> tuple[KvLayer, ...]:
    """One latent layer for each MTP layer."""
    count = _mtp_count(decoder)
    return (mla_layer(decoder),) * count if count else ()


def bailing_linear_draft(decoder: Decoder) -> tuple[KvLayer, ...]:
    """As `mla_draft`, with the head widths of Ling 2.6."""
    return (mla_layer(decoder, 128),) * _mtp_count(decoder)


def sparse_mla_draft(decoder: Decoder) -> tuple[KvLayer, ...]:
    """MTP layers continue the numbering of the target's layers."""
    first = decoder.num_layers
    layers = sparse_mla_layers(decoder, range(first, first + _mtp_count(decoder)))
    return tuple(cache for caches in layers for cache in caches)


def longcat_draft(decoder: Decoder) -> tuple[KvLayer, ...]:
    """One latent layer, also where the config does not count its MTP layers (vLLM's default)."""
    named = decoder.text.has("num_nextn_predict_layers")
    return mla_draft(decoder) if named else (mla_layer(decoder),)


def next_draft(decoder: Decoder) -> tuple[KvLayer, ...]:
    """Qwen3-Next publishes one MTP layer without a field for it; vLLM assumes one."""
    named = decoder.text.has("mtp_num_hidden_layers", "num_nextn_predict_layers")
    return attention_draft(decoder) if named else (plain_layer(decoder, "full"),)


def mimo_v2_draft(decoder: Decoder) -> tuple[KvLayer, ...]:
    """A sliding layer; vLLM runs the first of MiMo-V2's MTP layers only."""
    return (mimo_v2_sliding_layer(decoder),)


def step_draft(decoder: Decoder) -> tuple[KvLayer, ...]:
    """Step-3.5 lists the kinds of its MTP layers after those of the target."""
    return step_layers(decoder, decoder.num_layers, decoder.num_layers + _mtp_count(decoder))


# fmt: off
_DENSE = (
    "llama", "InternLM3ForCausalLM", "IQuestCoderForCausalLM", "TeleChat3ForCausalLM", "mistral", "ministral3",
    "ministral", "mixtral", "qwen2", "qwen2_moe", "qwen2_5_vl_text", "qwen2_vl_text", "qwen2_5_vl", "qwen2_vl", "qwen3",
    "qwen3_moe", "qwen3_vl_text", "qwen3_vl_moe_text", "qwen3_vl", "phi3", "phi4mm", "phimoe", "granite",
    "granitemoe", "granitemoeshared", "seed_oss", "smollm3", "apertus", "olmoe", "stablelm", "nemotron", "solar",
    "internlm2", "internlm3", "exaone", "gemma", "cohere", "falcon", "olmo2", "phi3_v",
    "qwen2_5_omni_text", "qwen3_omni_moe_text", "starcoder2", "minicpmv", "phi",
)
_DENSE_WITH_MTP = ("glm4_moe", "ernie4_5_moe", "mimo", "hy_v3")
_MTP_NOT_RUN = (  # their MTP layers have no class in vLLM
    "minimax_m2", "bailing_moe", "bailing_moe_v2", "glm4v_moe_text", "glm4v_moe", "ernie4_5", "ernie4_5_moe_vl",
)
_ALWAYS_FULL = (  # no window in their vLLM classes
    "glm", "glm4", "glm4v_text", "glm4v", "hunyuan_v1_dense", "hunyuan_v1_moe", "step3_text",
)
# fmt: on

_COMPRESSED = (
    "compressed attention: counted for FlashMLA's packed rows of 584 bytes (Hopper); other kernels keep other rows"
)
_STATE_UNMEASURED = "the state of its linear attention is taken from vLLM's model class and was not measured"
_POOLED = "vLLM keeps the open pool of each request's index keys in blocks of their own, which are not counted"
_INDEX_KEYS_ON_TOP = "index keys of its sparse attention come on top of the layers counted here"

FAMILIES: tuple[Family, ...] = (
    Family(_DENSE, read_attention_layers),
    Family(_DENSE_WITH_MTP, read_attention_layers, attention_draft),
    Family(_MTP_NOT_RUN, read_attention_layers, attention_draft, mtp_supported=False),
    Family(_ALWAYS_FULL, full_layers),
    Family(("gpt2", "opt"), full_layers, has_rope=False),
    Family(("whisper",), read_encoder_decoder_layers, has_rope=False),
    Family(("gemma2", "gpt_oss"), read_alternating_2),
    Family(("gemma3_text", "gemma3"), read_gemma3_layers),
    Family(("gemma3n_text", "gemma3n"), read_gemma3n_layers, read_borrowing_layers=read_gemma3n_borrowers),
    Family(
        ("gemma4_text", "gemma4", "gemma4_unified_text", "gemma4_unified"),
        read_gemma4_layers,
        read_borrowing_layers=read_gemma4_borrowers,
    ),
    Family(("cohere2", "olmo3", "exaone4"), read_alternating_4),
    Family(("exaone_moe",), read_alternating_4, attention_draft),
    Family(("mimo_v2", "mimo_v2_flash"), read_mimo_v2_layers, mimo_v2_draft),
    Family(("step3p5",), read_step_layers, step_draft),
    Family(("llama4_text", "llama4"), read_llama4_layers),
    Family(
        ("deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe_lite", "mistral4"),
        read_mla_layers,
        mla_draft,
    ),
    Family(("deepseek_v32", "glm_moe_dsa"), read_sparse_mla_layers, sparse_mla_draft),
    Family(
        ("deepseek_v4",), read_compressed_layers, estimate_reason=_COMPRESSED, read_compressed=read_compressed_cache
    ),
    Family(("longcat_flash",), read_double_mla_layers, longcat_draft),
    Family(
        ("glm5_next_text", "glm5_next"),
        read_glm5_next_layers,
        mla_draft,
        ssm_state_dtype="float32",
        estimate_reason=_POOLED,
    ),
    Family(("nemotron-nas",), read_removed_attention_layers),
    Family(("qwen3_next",), read_gated_delta_layers, next_draft),
    Family(
        ("qwen3_5_text", "qwen3_5_moe_text", "qwen3_5", "qwen3_5_moe"),
        read_gated_delta_layers,
        attention_draft,
    ),
    Family(
        ("qwen4_exp_text", "qwen4_exp"),
        read_gated_delta_layers,
        attention_draft,
        estimate_reason=_INDEX_KEYS_ON_TOP,
    ),
    Family(("minimax_m3_vl_text", "minimax_m3"), full_layers, attention_draft, estimate_reason=_INDEX_KEYS_ON_TOP),
    Family(("kimi_linear",), read_kimi_layers, has_rope=False, ssm_state_dtype="float32"),
    Family(
        ("KimiK3ForConditionalGeneration",), read_kimi_k3_layers, mla_draft, has_rope=False, ssm_state_dtype="float32"
    ),
    Family(("BailingMoeV3ForCausalLM",), read_bailing_v3_layers, mla_draft, ssm_state_dtype="float32"),
    Family(
        ("BailingMoeV2_5ForCausalLM",),
        read_bailing_linear_layers,
        bailing_linear_draft,
        estimate_reason=_STATE_UNMEASURED,
    ),
    Family(("granitemoehybrid",), read_granite_hybrid_layers),
    Family(("falcon_h1",), read_falcon_h1_layers),
    Family(("nemotron_h",), read_nemotron_h_layers, attention_draft, has_rope=False, ssm_state_dtype="float32"),
    Family(("jamba",), read_jamba_layers, has_rope=False),
    Family(("lfm2", "lfm2_moe"), read_short_conv_layers),
    Family(("minimax_text_01", "minimax_m1"), read_minimax_linear_layers),
)

REFUSED: dict[str, str] = {
    "BailingMoeLinearV2ForCausalLM": "no vLLM release up to 0.33 registers this architecture",
}
"""Architectures that are known, and known not to be servable."""

_BY_NAME = {name: family for family in FAMILIES for name in family.names}


def find_family(decoder: Decoder) -> Family | None:
    """The row of this model: by architecture first, then by the model type of its language model."""
    for name in (decoder.architecture, decoder.model_type, decoder.root.text("model_type") or ""):
        if name in _BY_NAME:
            return _BY_NAME[name]
    return None
