"""Prompts that are exactly as long as asked, whatever the tokenizer."""

from collections.abc import Sequence

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from longreach.errors import UsageError
from longreach.measure.prompts import Needle, PromptWish, build_prompt, choose_needles, find_needles
from longreach.measure.prose import write_paragraphs
from longreach.measure.tokenizer import LocalTokenizer

NEEDLES = choose_needles("s", (0.1, 0.5, 0.9))
# One digit at a time and at most one character before a word, as Qwen's tokenizers split.
QWEN_SPLIT = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"


def train(vocab_size: int, pre_tokenizer: pre_tokenizers.PreTokenizer, decoder: decoders.Decoder) -> LocalTokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoder
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    paragraphs = write_paragraphs("training")
    tokenizer.train_from_iterator([next(paragraphs) for _ in range(100)], trainer)
    return LocalTokenizer(tokenizer, "a test")


@pytest.fixture(scope="module", params=["tiny_byte_level", "qwen_split", "words_and_spaces_merge"])
def tokenizer(request: pytest.FixtureRequest) -> LocalTokenizer:
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if request.param == "tiny_byte_level":
        return train(300, byte_level, decoders.ByteLevel())
    if request.param == "qwen_split":
        split = pre_tokenizers.Split(Regex(QWEN_SPLIT), "isolated")
        whole = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        return train(2000, pre_tokenizers.Sequence([split, whole]), decoders.ByteLevel())
    return train(1000, pre_tokenizers.Metaspace(prepend_scheme="always", split=False), decoders.Metaspace())


@pytest.mark.parametrize("num_tokens", [400, 1000, 1001, 1002, 1003, 20_001])
async def test_prompt_is_exact(tokenizer: LocalTokenizer, num_tokens: int) -> None:
    prompt = await build_prompt(PromptWish(num_tokens, "5a17", "s", NEEDLES), tokenizer)
    assert await tokenizer.count(prompt.text) == prompt.num_tokens == num_tokens


async def test_salt_comes_first_and_question_last(tokenizer: LocalTokenizer) -> None:
    text = (await build_prompt(PromptWish(3000, "5a17", "s", NEEDLES), tokenizer)).text
    assert text.startswith("5a17 ")
    assert text.splitlines()[-1].endswith("Answer with the codes only.")


async def test_salt_alone_changes_between_runs_of_one_seed(tokenizer: LocalTokenizer) -> None:
    first = (await build_prompt(PromptWish(3000, "aaaa", "s"), tokenizer)).text
    second = (await build_prompt(PromptWish(3000, "bbbb", "s"), tokenizer)).text
    assert first.splitlines()[1:-3] == second.splitlines()[1:-3]


@pytest.mark.parametrize("depths", [(0.0,), (0.1, 0.5, 0.9), (1.0,)], ids=str)
async def test_needles_lie_at_their_depths(tokenizer: LocalTokenizer, depths: tuple[float, ...]) -> None:
    needles = choose_needles("s", depths)
    text = (await build_prompt(PromptWish(15_000, "5a17", "s", needles), tokenizer)).text
    for needle in needles:
        assert text.count(needle.sentence) == 1
        assert text.index(needle.sentence) / len(text) == pytest.approx(needle.depth, abs=0.04)


async def test_too_short_a_prompt_names_what_it_needs(tokenizer: LocalTokenizer) -> None:
    with pytest.raises(UsageError, match="a prompt of 20 tokens is too short") as caught:
        await build_prompt(PromptWish(20, "5a17", "s", NEEDLES), tokenizer)
    assert "3 needles" in caught.value.why


def test_needles_are_found_by_code() -> None:
    assert find_needles(f"They are {NEEDLES[0].code}, {NEEDLES[2].code}.", NEEDLES) == (NEEDLES[0], NEEDLES[2])
    assert choose_needles("s", (0.5, 0.1))[0].depth == 0.1
    assert len({needle.code for needle in choose_needles("x", [0.5] * 8)}) == 8
    assert Needle("Heron", "48213", 0.5).sentence == "The access code of station Heron is 48213."


class _Unsteady:
    """Counts one token more each time it is asked about a whole text: no length is ever right."""

    source = "a test"
    asked = 0

    async def encode(self, text: str) -> list[int]:
        return [0] * await self.count(text)

    async def count(self, text: str) -> int:
        self.asked += len(text) > 4000
        return len(text.split()) + self.asked

    async def count_many(self, texts: Sequence[str]) -> list[int]:
        return [await self.count(text) for text in texts]


async def test_a_tokenizer_that_cannot_be_pleased_is_reported() -> None:
    with pytest.raises(UsageError, match="no prompt of exactly 2000 tokens"):
        await build_prompt(PromptWish(2000, "5a17", "s"), _Unsteady())
