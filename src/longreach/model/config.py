"""A Hugging Face config, as a `ModelSpec`. Pure: a mapping in, a value or a `LongreachError` out."""

import re
from collections.abc import Mapping, Sequence

from longreach.errors import UnknownModelError
from longreach.model.attention import read_attention_layers
from longreach.model.decoder import Decoder, read_decoder
from longreach.model.families import REFUSED, Family, find_family
from longreach.model.hybrids import COUNTED
from longreach.model.parameters import count_parameters
from longreach.model.quantization import read_forced_kv_cache_dtype, read_quantization
from longreach.model.repeats import share
from longreach.model.rope import read_max_position_embeddings, read_rope
from longreach.model.spec import KvLayer, ModelSpec, RopeSpec, WeightsSpec
from longreach.model.widths import read_widths

_TOWERS = ("vision_config", "audio_config", "vision_tower_config", "visual", "sound_config", "speech_config")
_DTYPES = {"bfloat16": "bfloat16", "float16": "float16", "half": "float16"}
_DECIDES_KV = re.compile(
    r"attn|attention|window|mamba|ssm|linear_|conv|lora_rank|index|compress|sparse|hybrid|layer_type|block_type|block_config"
    r"|recurrent|chunk|shared_layers|pattern|cross|latent|delta|lightning|kv_|retention|memory"
)
_HARMLESS = re.compile(
    r"(num_attention_heads|num_key_value_heads|num_kv_heads|attention_bias|attention_dropout|attention_probs_dropout_prob"
    r"|_?attn_implementation(_internal)?|attn_pdrop|attention_multiplier|attention_softmax_in_fp32|attention_out_bias"
    r"|attn_logit_softcapping|query_pre_attn_scalar|sliding_window|use_sliding_window|max_window_layers|layer_types"
    r"|sliding_window_pattern|router_.*|chunk_size_feed_forward|add_cross_attention|cross_attention_hidden_size"
    r"|tie_cross_.*|quantization_config|compression_config)"
)


def parse_model_config(config: Mapping[str, object], name: str) -> ModelSpec:
    """What the model called `name` is, from its config.json.

    Raises InputFileError naming every malformed field, and UnknownModelError where the layout of its KV cache is not
    understood.
    """
    decoder = read_decoder(config, name)
    _check_heads(decoder)
    family = _family(decoder)
    placed = _placed(family.read_layers(decoder))
    shared: dict[KvLayer, KvLayer] = {}  # equal layers are one object, which whoever counts them relies on for speed
    layers = share((layer for _, layer in placed), shared)
    draft_layers = share(family.read_draft_layers(decoder), shared)
    borrowing_layers = share(family.read_borrowing_layers(decoder), {})
    quantization, quant_method = read_quantization(decoder)
    spec = ModelSpec(
        name=name,
        architecture=decoder.architecture,
        model_type=decoder.model_type,
        layers=layers,
        draft_layers=draft_layers,
        num_layers=decoder.num_layers,
        hidden_size=decoder.hidden_size,
        num_attention_heads=decoder.num_heads,
        num_kv_heads=decoder.num_kv_heads,
        head_dim=decoder.head_dim,
        vocab_size=decoder.vocab_size,
        dtype=_dtype(decoder),
        max_position_embeddings=read_max_position_embeddings(decoder),
        rope=_rope(decoder, family),
        parameters=count_parameters(decoder, layers, borrowing_layers, draft_layers),
        weights=WeightsSpec(quantization, quant_method, total_bytes=None, source="not known from the config"),
        is_multimodal=decoder.is_nested or decoder.root.has(*_TOWERS) or decoder.root.has("max_source_positions"),
        is_moe=_is_moe(decoder),
        ssm_state_dtype=family.ssm_state_dtype or decoder.text.text("mamba_ssm_dtype", "mamba_ssm_cache_dtype"),
        kv_cache_dtype_forced=read_forced_kv_cache_dtype(decoder),
        index_topk=decoder.text.optional_positive("index_topk", "indexer_budget"),
        kv_estimate_reason=_estimate_reason(decoder, family),
        sources=(f"config of {name}",),
        borrowing_layers=borrowing_layers,
        mtp_supported=family.mtp_supported,
        layer_indices=None if _order_is_unknown(decoder) else tuple(index for index, _ in placed),
        widths=read_widths(decoder),
        compressed=family.read_compressed(decoder) if family.read_compressed is not None else None,
        mamba_chunk_size=decoder.text.optional_positive("mamba_chunk_size", "chunk_size"),
    )
    decoder.root.check()
    if not layers:
        raise UnknownModelError(
            f"no layer of '{name}' caches anything",
            f"{decoder.num_layers} layers of {decoder.architecture or decoder.model_type} were read",
            "none: longreach plans the KV cache of models that have one",
        )
    return spec


def _placed(layers: Sequence[KvLayer | tuple[KvLayer, ...]]) -> tuple[tuple[int, KvLayer], ...]:
    """Every cache with the number of its decoder layer."""
    per_layer = (found if isinstance(found, tuple) else (found,) for found in layers)
    return tuple((index, cache) for index, caches in enumerate(per_layer) for cache in caches)


def _order_is_unknown(decoder: Decoder) -> bool:
    return decoder.text.has(*COUNTED) and not decoder.text.has("layer_types", "linear_attn_config")


def _check_heads(decoder: Decoder) -> None:
    if decoder.num_heads % decoder.num_kv_heads:
        decoder.text.note("num_key_value_heads", decoder.num_kv_heads, f"a divisor of the {decoder.num_heads} heads")


def _family(decoder: Decoder) -> Family:
    reason = REFUSED.get(decoder.architecture)
    if reason is not None:
        raise UnknownModelError(f"'{decoder.root.name}' cannot be served", f"{decoder.architecture}: {reason}", "none")
    return find_family(decoder) or _plain_family(decoder)


def _plain_family(decoder: Decoder) -> Family:
    """An unlisted model is read as a plain decoder when none of its keys could change what is cached."""
    decoder.root.check()
    what = decoder.architecture or decoder.model_type
    for key, value in decoder.text.values.items():
        if value in (None, False, 0, []) or _HARMLESS.fullmatch(key):
            continue
        if _DECIDES_KV.search(key):
            raise UnknownModelError(
                f"the KV cache of '{decoder.root.name}' is not understood",
                f"{what} is not a model longreach knows, and its key '{key}' may change what is cached",
                "none: longreach does not guess; `longreach plan` takes the models of `docs/model.md`",
            )
    reason = f"{what} is not a model longreach knows; its config was read as that of a plain decoder"
    return Family((), read_attention_layers, estimate_reason=reason)


def _dtype(decoder: Decoder) -> str:
    """What `--dtype auto` runs: float32 and unstated become bfloat16 (vLLM's first choice on SM80 and later)."""
    found = decoder.root.text("dtype", "torch_dtype") or decoder.text.text("dtype", "torch_dtype") or ""
    return _DTYPES.get(found.removeprefix("torch."), "bfloat16")


def _rope(decoder: Decoder, family: Family) -> RopeSpec | None:
    if not family.has_rope or decoder.text.values.get("position_embedding_type") in ("nope", "none"):
        return None
    return read_rope(decoder)


def _is_moe(decoder: Decoder) -> bool:
    names = ("num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts")
    return any(_above_one(decoder.text.values.get(name)) for name in names)


def _above_one(value: object) -> bool:
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, int) and not isinstance(first, bool) and first > 1


def _estimate_reason(decoder: Decoder, family: Family) -> str | None:
    if family.estimate_reason:
        return family.estimate_reason
    if decoder.text.has("dual_chunk_attention_config"):
        return "dual-chunk attention: vLLM 0.32 has no such backend any more, the cache is counted as plain attention"
    if _order_is_unknown(decoder):
        return "the order of its layers is not published, only how many there are of each kind"
    return None
