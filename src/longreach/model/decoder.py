"""The language model's part of a config: where it is nested, and the sizes that every family spells alike."""

from collections.abc import Mapping
from dataclasses import dataclass

from longreach.errors import InputFileError, UnknownModelError
from longreach.model.class_defaults import CLASS_DEFAULTS
from longreach.model.fields import MAX_LAYERS, Fields, text_keyed

TEXT_PATHS: tuple[tuple[str, ...], ...] = (
    ("thinker_config", "text_config"),
    ("text_config",),
    ("llm_config",),
    ("language_config",),
)
"""Where multimodal configs keep their language model, most specific first. The same path takes `--hf-overrides`."""

_NUM_LAYERS = ("decoder_layers", "num_hidden_layers", "num_layers", "n_layers", "n_layer")
_NUM_KV_HEADS = (
    "n_head_kv",
    "num_kv_heads",
    "num_key_value_heads",
    "multi_query_group_num",
    "num_attention_groups",
)  # the names vLLM tries, in its order
_HEAD_DIM = ("head_dim", "attention_head_dim", "hidden_size_per_head")


@dataclass(frozen=True, slots=True)
class Decoder:
    """Standard sizes of the language model. `root` is the whole config, `text` its language model (may be the same)."""

    architecture: str
    model_type: str  # of the language model
    root: Fields
    text: Fields
    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int

    @property
    def is_nested(self) -> bool:
        """The language model sits inside a multimodal config."""
        return bool(self.text.path)


def read_decoder(config: object, name: str) -> Decoder:
    """Find the language model and read its standard sizes; wrong fields are noted, not raised."""
    root = _root_fields(config, name)
    text = _text_fields(root)
    model_type = text.text("model_type") or root.text("model_type") or ""
    text = text.filled(CLASS_DEFAULTS.get(model_type, {}))
    num_heads = text.positive("decoder_attention_heads", "num_attention_heads", "n_head", "n_heads", most=2**16)
    num_kv_heads = _num_kv_heads(text, num_heads)
    hidden_size = text.positive("hidden_size", "n_embd", "d_model")
    return Decoder(
        architecture=_architecture(root, text),
        model_type=model_type,
        root=root,
        text=text,
        num_layers=_num_layers(text),
        hidden_size=hidden_size,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=_head_dim(text, hidden_size, num_heads),
        vocab_size=text.optional_positive("vocab_size") or root.positive("vocab_size"),
    )


def _root_fields(config: object, name: str) -> Fields:
    if not isinstance(config, Mapping):
        raise InputFileError(
            f"the model config of '{name}' is not a JSON object",
            f"found {type(config).__name__}",
            "give the config.json of a Hugging Face model",
        )
    return Fields(name, text_keyed(config))


def _text_fields(root: Fields) -> Fields:
    for path in TEXT_PATHS:
        found: Fields | None = root
        for key in path:
            found = found.nested(key) if found is not None else None
        if found is not None:
            return found
    return root


def _architecture(root: Fields, text: Fields) -> str:
    names = root.texts("architectures") or text.texts("architectures")
    if names:
        return names[0]
    root.check()
    if not (root.has("model_type") or text.has("model_type")):
        raise UnknownModelError(
            f"the config of '{root.name}' names no model",
            "it has neither 'architectures' nor 'model_type'",
            "give the config.json of a Hugging Face causal language model",
        )
    return ""


def _num_layers(text: Fields) -> int:
    listed = text.texts("layers_block_type") or tuple(text.text("hybrid_override_pattern") or "")
    if not text.has(*_NUM_LAYERS) and listed:
        return min(len(listed), MAX_LAYERS)
    return text.positive(*_NUM_LAYERS, most=MAX_LAYERS)


def _num_kv_heads(text: Fields, num_heads: int) -> int:
    if text.flag("multi_query") and not text.flag("new_decoder_architecture"):  # Falcon
        return 1
    for block in text.mappings("block_configs") or ():  # Nemotron-NAS: the first block that kept its attention
        attention = block.nested("attention")
        group = attention.optional_positive("n_heads_in_group", most=2**16) if attention is not None else None
        if group is not None:
            return max(1, num_heads // group)
    return text.optional_positive(*_NUM_KV_HEADS, most=2**16) or num_heads


def _head_dim(text: Fields, hidden_size: int, num_heads: int) -> int:
    """As vLLM: the named field, where null and 0 mean absent, else hidden_size // num_heads."""
    named = next((name for name in _HEAD_DIM if text.values.get(name) not in (None, 0)), None)
    if named is not None:
        return text.positive(named, most=2**16)
    if hidden_size < num_heads:
        text.note("hidden_size", hidden_size, f"at least num_attention_heads ({num_heads}) when head_dim is absent")
    return max(1, hidden_size // num_heads)
