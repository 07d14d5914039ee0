"""A tiny random Qwen3-shaped checkpoint with its own tokenizer: what the engine serves when there is no model to hand.

It is made without torch and without a download: the weights are drawn here and written in the safetensors layout
(https://github.com/huggingface/safetensors, "Format"), the tokenizer is a byte-level BPE trained on the text below.
The same shape and seed give the same bytes. The answers are nonsense; everything the engine counts is real.
"""

import json
import random
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from longreach.errors import InputFileError

_SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_SMALLEST_VOCABULARY = 256 + len(_SPECIAL_TOKENS)
_CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_TRAINING_TEXT = (
    "A long prompt is read in chunks, and every chunk leaves its keys and values behind in blocks of the cache. "
    "When the same words come back, the blocks are found again and nothing has to be computed twice. "
    "What does not fit must wait, or move to slower memory, or be thrown away and read once more. "
    "The clerk wrote down 1204 names, 37 towns and 986 prices, then turned the page and began with the next one. "
    "Rivers rise in spring; the bridges that were built for summer stand in the water until the snow is gone. "
    "def read(path, size): return open(path).read(size)  # a line of code between two lines of prose\n"
    "She asked whether the harbour was open. He said that it had been closed since the second week of May.\n"
)


@dataclass(frozen=True, slots=True)
class TinyShape:
    """The geometry of the checkpoint. The defaults prefill 32,768 tokens in seconds on two CPU cores."""

    num_layers: int = 1
    hidden_size: int = 64
    intermediate_size: int = 128
    num_heads: int = 2
    num_kv_heads: int = 2
    head_dim: int = 64
    vocab_size: int = 512
    max_position_embeddings: int = 131_072
    rope_theta: float = 1_000_000.0
    seed: int = 0

    def __post_init__(self) -> None:
        assert self.vocab_size >= _SMALLEST_VOCABULARY, "every byte and every special token needs an id"


DEFAULT_SHAPE = TinyShape()


def write_tiny_model(folder: Path, shape: TinyShape = DEFAULT_SHAPE) -> Path:
    """Write config, weights and tokenizer to `folder`, which appears complete or not at all, and return it.

    A folder that is already there is kept when it holds this very shape; InputFileError when it holds anything else,
    or when it cannot be written.
    """
    if folder.exists():
        _check_is_same(folder, _config(shape))
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as unfinished:
            _write_files(Path(unfinished) / folder.name, shape).rename(folder)
    except OSError as error:
        raise InputFileError(
            f"cannot write the tiny model to '{folder}'", str(error), "name a folder that can be written"
        ) from error
    return folder


def _write_files(folder: Path, shape: TinyShape) -> Path:
    folder.mkdir()
    whole_characters = _write_tokenizer(folder, shape)
    _write_weights(folder / "model.safetensors", shape, whole_characters)
    _write_json(folder / "generation_config.json", {"eos_token_id": 0, "pad_token_id": 0})
    _write_json(folder / "config.json", _config(shape))
    return folder


def _check_is_same(folder: Path, config: dict[str, object]) -> None:
    try:
        found = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if found != config:
        raise InputFileError(
            f"'{folder}' exists and is not the tiny model asked for",
            "its config.json is missing or describes another model; it is not overwritten",
            f"name another folder, or remove this one: rm -r {folder}",
        )


def _write_json(path: Path, content: dict[str, object]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _config(shape: TinyShape) -> dict[str, object]:
    """config.json, with the keys that published Qwen3 checkpoints have. `tiny_model_seed` is ours and read by nobody."""
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "eos_token_id": 0,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "hidden_size": shape.hidden_size,
        "initializer_range": 0.02,
        "intermediate_size": shape.intermediate_size,
        "max_position_embeddings": shape.max_position_embeddings,
        "model_type": "qwen3",
        "num_attention_heads": shape.num_heads,
        "num_hidden_layers": shape.num_layers,
        "num_key_value_heads": shape.num_kv_heads,
        "rms_norm_eps": 1e-06,
        "rope_scaling": None,
        "rope_theta": shape.rope_theta,
        "tie_word_embeddings": False,
        "tiny_model_seed": shape.seed,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "vocab_size": shape.vocab_size,
    }


def _write_tokenizer(folder: Path, shape: TinyShape) -> list[int]:
    """Train and write the tokenizer; returns the token ids that are whole, visible ASCII text."""
    # Imported here: `launch` is on the way to every command, and this library takes longer to load than they do.
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=shape.vocab_size,
        special_tokens=list(_SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([_TRAINING_TEXT], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    _write_json(
        folder / "tokenizer_config.json",
        {
            "bos_token": None,
            "chat_template": _CHAT_TEMPLATE,
            "clean_up_tokenization_spaces": False,
            "eos_token": _SPECIAL_TOKENS[0],
            "model_max_length": shape.max_position_embeddings,
            "pad_token": _SPECIAL_TOKENS[0],
            "tokenizer_class": "PreTrainedTokenizerFast",
        },
    )
    texts = (tokenizer.decode([token], skip_special_tokens=True) for token in range(tokenizer.get_vocab_size()))
    return [token for token, text in enumerate(texts) if text.isascii() and text.strip().isprintable() and text.strip()]


@dataclass(frozen=True, slots=True)
class _Tensor:
    name: str
    shape: tuple[int, ...]
    spread: float | None  # standard deviation; None for a norm's ones


def _tensors(shape: TinyShape) -> Iterator[_Tensor]:
    """The tensors of a Qwen3 checkpoint in file order, with variances that keep activations near one."""
    hidden, inner = shape.hidden_size, shape.intermediate_size
    query, key_value = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
    yield _Tensor("model.embed_tokens.weight", (shape.vocab_size, hidden), 1.0)
    for layer in range(shape.num_layers):
        prefix = f"model.layers.{layer}"
        for name, rows, columns in (
            ("self_attn.q_proj", query, hidden),
            ("self_attn.k_proj", key_value, hidden),
            ("self_attn.v_proj", key_value, hidden),
            ("self_attn.o_proj", hidden, query),
            ("mlp.gate_proj", inner, hidden),
            ("mlp.up_proj", inner, hidden),
            ("mlp.down_proj", hidden, inner),
        ):
            yield _Tensor(f"{prefix}.{name}.weight", (rows, columns), columns**-0.5)
        for name, size in (
            ("self_attn.q_norm", shape.head_dim),
            ("self_attn.k_norm", shape.head_dim),
            ("input_layernorm", hidden),
            ("post_attention_layernorm", hidden),
        ):
            yield _Tensor(f"{prefix}.{name}.weight", (size,), None)
    yield _Tensor("model.norm.weight", (hidden,), None)
    yield _Tensor("lm_head.weight", (shape.vocab_size, hidden), 1.0)


def _write_weights(path: Path, shape: TinyShape, whole_characters: list[int]) -> None:
    """One safetensors file: length of the header (u64), header (JSON), tensors in bfloat16."""
    rng = random.Random(shape.seed)  # noqa: S311 - weights, not secrets
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    body = bytearray()
    for tensor in _tensors(shape):
        start = len(body)
        if tensor.name == "lm_head.weight":
            body += _output_head(rng, tensor, whole_characters)
        else:
            body += _draw(rng, tensor)
        header[tensor.name] = {"dtype": "BF16", "shape": tensor.shape, "data_offsets": (start, len(body))}
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)
    path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + bytes(body))


def _draw(rng: random.Random, tensor: _Tensor) -> bytes:
    size = 1
    for length in tensor.shape:
        size *= length
    spread = tensor.spread
    return _bfloat16([1.0] * size if spread is None else [rng.gauss(0.0, spread) for _ in range(size)])


def _output_head(rng: random.Random, tensor: _Tensor, whole_characters: list[int]) -> bytes:
    """Rows only for tokens that are whole characters. All others keep a logit of zero, below the best of hundreds of
    random ones: no answer ends early, and none stalls a stream on half a character.
    """
    vocab_size, hidden = tensor.shape
    rows = bytearray(2 * vocab_size * hidden)
    wanted = set(whole_characters)
    for row, start in zip(range(vocab_size), count(0, 2 * hidden), strict=False):
        if row in wanted:
            rows[start : start + 2 * hidden] = _bfloat16([rng.gauss(0.0, tensor.spread or 1.0) for _ in range(hidden)])
    return bytes(rows)


def _bfloat16(values: list[float]) -> bytes:
    """The upper halves of float32, little-endian: truncation is good enough for noise."""
    single = struct.pack(f"<{len(values)}f", *values)
    halves = bytearray(2 * len(values))
    halves[0::2], halves[1::2] = single[2::4], single[3::4]
    return bytes(halves)
