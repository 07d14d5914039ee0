"""What exact prompts and workloads cost: CPU seconds, alone and as multiples of encoding their text once.

    python benchmarks/prompt_building.py [--tokenizer TOKENIZER] [--trace TRACE.jsonl]

Goal: a prompt of 750,000 tokens in under 10 CPU seconds. TOKENIZER is a folder or a tokenizer.json of a real model; without
one a byte-level BPE of 32,000 tokens is trained first on the standard library's source and on prose as the prompts hold it,
and splits words as Qwen's does. TRACE is a request trace in the Mooncake format, of which a tenth of the sessions is built.
"""

import argparse
import asyncio
import sysconfig
import time
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from longreach.measure.prompts import PromptWish, build_prompt, choose_needles
from longreach.measure.prose import write_paragraphs
from longreach.measure.tokenizer import LocalTokenizer, read_tokenizer
from longreach.measure.workload.building import build_workload
from longreach.measure.workload.counting import Counting
from longreach.measure.workload.wishes import SyntheticSource, TraceSource, WorkloadWish

LENGTHS = (8_192, 32_768, 131_072, 750_000)
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


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


def encode_once(tokenizer: LocalTokenizer, text: str) -> float:
    """CPU seconds, in pieces of a few thousand characters: what any way of counting takes at least."""
    began = time.process_time()
    asyncio.run(tokenizer.count_many([text[start : start + 4_000] for start in range(0, len(text), 4_000)]))
    return time.process_time() - began


def report(name: str, num_tokens: int, text: str, cpu_s: float, tokenizer: LocalTokenizer) -> None:
    ratio = cpu_s / encode_once(tokenizer, text)
    print(f"{name:<44} {num_tokens:>11,} {cpu_s:>7.2f} {ratio:>10.1f}")


def build_single(tokenizer: LocalTokenizer, num_tokens: int) -> None:
    wish = PromptWish(num_tokens, "0f3a", "benchmark", choose_needles("benchmark", (0.1, 0.5, 0.9)))
    began = time.process_time()
    prompt = asyncio.run(build_prompt(wish, tokenizer))
    report("verify, one prompt", num_tokens, prompt.text, time.process_time() - began, tokenizer)


def build_many(tokenizer: LocalTokenizer, name: str, source: SyntheticSource | TraceSource) -> None:
    began = time.process_time()
    workload = asyncio.run(build_workload(WorkloadWish(source, "benchmark"), Counting(tokenizer)))
    cpu_s = time.process_time() - began
    text = "".join([*workload.segments.values(), *(request.tail for request in workload.requests)])
    report(f"{name}, {len(workload.requests):,} requests", workload.total_prompt_tokens, text, cpu_s, tokenizer)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokenizer")
    parser.add_argument("--trace", type=Path)
    asked = parser.parse_args()
    tokenizer = read_tokenizer(asked.tokenizer) if asked.tokenizer else train_tokenizer()
    print(f"{'':<44} {'tokens':>11} {'CPU s':>7} {'x encoding':>10}")
    for num_tokens in LENGTHS:
        build_single(tokenizer, num_tokens)
    build_many(tokenizer, "workload", SyntheticSource(1, 750_000, 64))
    build_many(tokenizer, "workload", SyntheticSource(100, 8_000, 64))
    build_many(tokenizer, "workload", SyntheticSource(1_000, 4_000, 64))
    if asked.trace:
        build_many(tokenizer, "a tenth of a trace", TraceSource(asked.trace, sessions=Fraction(1, 10)))


if __name__ == "__main__":
    main()
