"""Small tokenizers, trained on the spot, that split and join as the large ones do."""

import json
from collections.abc import Callable, Mapping, Sequence

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

# One digit at a time, at most one character before a word, line ends joined to the signs before them.
_QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _train_byte_level(texts: Sequence[str], pre_tokenizer: pre_tokenizers.PreTokenizer) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=2_000, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(["\n".join(texts)], trainer)
    return tokenizer


def _qwen_like(texts: Sequence[str]) -> Tokenizer:
    split = pre_tokenizers.Split(Regex(_QWEN_SPLIT), "isolated")
    bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return _train_byte_level(texts, pre_tokenizers.Sequence([split, bytes_only]))


def _with_prefix_space(texts: Sequence[str]) -> Tokenizer:
    return _train_byte_level(texts, pre_tokenizers.ByteLevel(add_prefix_space=True))


def _sentencepiece_bpe(texts: Sequence[str]) -> Tokenizer:
    """As Llama 2: one word as long as the text, a space before its beginning, bytes for what is unknown."""
    letters = sorted(set("".join(texts)) - {" "} | {"▁"})
    base = {piece: number for number, piece in enumerate([*(f"<0x{byte:02X}>" for byte in range(256)), *letters])}
    spaced = Tokenizer(models.BPE())
    spaced.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    trainer = trainers.BpeTrainer(vocab_size=1_500, show_progress=False)
    spaced.train_from_iterator(texts, trainer)
    return _as_one_word(spaced, base)


def _as_one_word(spaced: Tokenizer, base: Mapping[str, int]) -> Tokenizer:
    """The trained merges without any splitting before them."""
    model = json.loads(spaced.to_str())["model"]
    vocabulary = dict(base)
    for piece in sorted(model["vocab"], key=model["vocab"].__getitem__):
        vocabulary.setdefault(piece, len(vocabulary))
    merges = [(left, right) for left, right in model["merges"]]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return tokenizer


def _unigram(texts: Sequence[str]) -> Tokenizer:
    """As T5: line ends become spaces, and none is left at the ends of a text."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip(left=True, right=True)]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    trainer = trainers.UnigramTrainer(vocab_size=800, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


KINDS: Mapping[str, Callable[[Sequence[str]], Tokenizer]] = {
    "qwen_like": _qwen_like,
    "prefix_space": _with_prefix_space,
    "sentencepiece_bpe": _sentencepiece_bpe,
    "unigram": _unigram,
}
"""Kinds of tokenizers by name."""
