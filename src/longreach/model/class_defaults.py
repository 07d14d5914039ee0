"""Fields that published configs leave out because they equal the default of their transformers class (5.19).

Only families whose published files are known to do so, and never the number of layers: elsewhere a missing field is
reported, not filled in.
"""

from collections.abc import Mapping

_TIED: Mapping[str, object] = {"tie_word_embeddings": True}
_GEMMA: Mapping[str, object] = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, **_TIED}
_QUARTER_ROPE: Mapping[str, object] = {"partial_rotary_factor": 0.25}

CLASS_DEFAULTS: Mapping[str, Mapping[str, object]] = {
    "gemma": _TIED,
    "gemma2": {**_GEMMA, "sliding_window": 4096, "vocab_size": 256000, "max_position_embeddings": 8192},
    "gemma3_text": {**_GEMMA, "sliding_window": 4096, "vocab_size": 262208, "max_position_embeddings": 131072},
    "gemma3n_text": {
        **_GEMMA,
        "num_key_value_heads": 2,
        "sliding_window": 512,
        "vocab_size": 262400,
        "max_position_embeddings": 32768,
    },
    "gemma4_text": {
        **_GEMMA,
        "hidden_size": 2304,
        "global_head_dim": 512,
        "sliding_window": 512,
        "vocab_size": 262144,
        "max_position_embeddings": 131072,
    },
    "gemma4_unified_text": {
        **_GEMMA,
        "global_head_dim": 512,
        "sliding_window": 1024,
        "vocab_size": 262144,
        "max_position_embeddings": 262144,
    },
    "cohere": _TIED,
    "cohere2": _TIED,
    "lfm2": _TIED,
    "lfm2_moe": _TIED,
    "gpt2": _TIED,
    "opt": _TIED,
    "whisper": _TIED,
    "qwen3_next": _QUARTER_ROPE,
    "qwen3_5_text": _QUARTER_ROPE,
    "qwen3_5_moe_text": _QUARTER_ROPE,
    "qwen4_exp_text": _QUARTER_ROPE,
}
