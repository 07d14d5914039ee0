"""What an exact prompt costs: CPU seconds and counted characters, up to 750,000 tokens. Goal: under 10 CPU seconds.

    python benchmarks/prompt_building.py [TOKENIZER]

TOKENIZER is a folder or a tokenizer.json of a real model; without one a byte-level BPE of 32,000 tokens is trained first
on the standard library's source and on prose as the prompts hold it, and splits words as Qwen's does.
"""

import asyncio
import sys
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from longreach.measure.prompts import PromptWish, build_prompt, choose_needles
from longreach.measure.prose import write_paragraphs
from longreach.measure.tokenizer import LocalTokenizer, read_tokenizer

LENGTHS = (8_192, 32_768, 131_072, 750_000)
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass
class CountingTokenizer:
    """Counts what it is asked to count."""

    inner: LocalTokenizer
    source: str = "benchmark"
    num_chars: int = 0

    async def encode(self, text: str) -> list[int]:
        self.num_chars += len(text)
        return await self.inner.encode(text)

    async def count(self, text: str) -> int:
        self.num_chars += len(text)
        return await self.inner.count(text)


def train_tokenizer() -> LocalTokenizer:
    """32,000 tokens, real in size and in the way it splits."""
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(SPLIT), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=32_000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(training_texts(), trainer)
    return LocalTokenizer(tokenizer, "trained here")


def training_texts() -> Iterator[str]:
    library = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(library.glob("*.py")) + sorted(library.glob("*/*.py")):
        yield path.read_text(encoding="utf-8", errors="replace")
    yield from islice(write_paragraphs("training"), 2_000)


def main() -> None:
    tokenizer = CountingTokenizer(read_tokenizer(sys.argv[1]) if len(sys.argv) > 1 else train_tokenizer())
    print(f"{'tokens':>9} {'characters':>11} {'CPU s':>7} {'wall s':>7} {'counted/built':>14}")
    for num_tokens in LENGTHS:
        tokenizer.num_chars = 0
        cpu, wall = time.process_time(), time.perf_counter()
        wish = PromptWish(num_tokens, "0f3a", "benchmark", choose_needles("benchmark", (0.1, 0.5, 0.9)))
        prompt = asyncio.run(build_prompt(wish, tokenizer))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        ratio = tokenizer.num_chars / len(prompt.text)
        print(f"{num_tokens:>9,} {len(prompt.text):>11,} {cpu:>7.2f} {wall:>7.2f} {ratio:>14.2f}")


if __name__ == "__main__":
    main()
