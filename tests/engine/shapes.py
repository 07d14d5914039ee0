"""Published models, shrunk to what a laptop can hold without touching one thing that the KV cache is made of.

Layers, their kinds, key-value heads, head sizes, windows, latents and states are the published ones. Hidden size,
vocabulary and feed-forward are tiny, and mixtures of experts are dense: the cache never sees them.
"""

import json
from dataclasses import dataclass
from pathlib import Path

Config = dict[str, object]

_TINY: Config = {
    "hidden_size": 64,
    "intermediate_size": 64,
    "vocab_size": 256,
    "tie_word_embeddings": True,
    "rms_norm_eps": 1e-06,
    "hidden_act": "silu",
    "torch_dtype": "bfloat16",
    "bos_token_id": 0,
    "eos_token_id": 1,
}

_QWEN3_8B: Config = _TINY | {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 40_960,
    "rope_theta": 1_000_000,
    "attention_bias": False,
}

_GEMMA_3_27B: Config = _TINY | {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "num_hidden_layers": 62,
    "num_attention_heads": 32,
    "num_key_value_heads": 16,
    "head_dim": 128,
    "max_position_embeddings": 131_072,
    "sliding_window": 1024,
    "layer_types": ["full_attention" if layer % 6 == 5 else "sliding_attention" for layer in range(62)],
    "rope_theta": 1_000_000.0,
    "rope_local_base_freq": 10_000.0,
    "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
    "query_pre_attn_scalar": 168,
    "hidden_activation": "gelu_pytorch_tanh",
    "attention_bias": False,
}

_DEEPSEEK_V3: Config = _TINY | {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "num_hidden_layers": 61,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "kv_lora_rank": 512,
    "q_lora_rank": 64,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "first_k_dense_replace": 61,
    "n_routed_experts": 8,
    "num_experts_per_tok": 1,
    "n_group": 1,
    "topk_group": 1,
    "n_shared_experts": 1,
    "moe_intermediate_size": 64,
    "max_position_embeddings": 163_840,
    "rope_theta": 10_000,
    "rope_scaling": {
        "beta_fast": 32,
        "beta_slow": 1,
        "factor": 40,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
        "original_max_position_embeddings": 4096,
        "type": "yarn",
    },
    "attention_bias": False,
}

_QWEN3_5_27B: Config = _TINY | {
    "architectures": ["Qwen3_5ForCausalLM"],
    "model_type": "qwen3_5_text",
    "num_hidden_layers": 64,
    "num_attention_heads": 24,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "full_attention_interval": 4,
    "layer_types": ["full_attention" if layer % 4 == 3 else "linear_attention" for layer in range(64)],
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 48,
    "linear_value_head_dim": 128,
    "mamba_ssm_dtype": "float32",
    "attn_output_gate": True,
    "max_position_embeddings": 262_144,
    "rope_parameters": {
        "mrope_interleaved": True,
        "mrope_section": [11, 11, 10],
        "rope_type": "default",
        "rope_theta": 10_000_000,
        "partial_rotary_factor": 0.25,
    },
    "attention_bias": False,
}


@dataclass(frozen=True, slots=True)
class Shape:
    """A shrunk model, and how the engine is asked to hold it: bytes of KV cache, length, tokens a step."""

    name: str  # the published model, as the catalogue calls it
    config: Config
    kv_cache_memory_bytes: int
    max_model_len: int
    max_num_batched_tokens: int = 2048

    @property
    def label(self) -> str:
        return f"{self.name}-{self.max_model_len}"


SHAPES = (
    Shape("qwen3-8b", _QWEN3_8B, 3_000_000_000, 20_000),
    Shape("gemma-3-27b", _GEMMA_3_27B, 3_000_000_000, 3_000),
    Shape("deepseek-v3", _DEEPSEEK_V3, 3_000_000_000, 16_384),
    Shape("qwen3.5-27b", _QWEN3_5_27B, 2_500_000_000, 20_000),
)
TOO_SMALL = Shape("qwen3-8b", _QWEN3_8B, 1_073_741_824, 40_960)


def write_config(shape: Shape, folder: Path) -> Path:
    """`folder` with a config.json and no weights: the engine draws them itself (`--load-format dummy`)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(shape.config, indent=2), encoding="utf-8")
    return folder
