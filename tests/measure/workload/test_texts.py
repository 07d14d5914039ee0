"""The user's own text: cut to exact lengths at different places, or each file as it is."""

from collections.abc import Callable
from itertools import islice, pairwise
from pathlib import Path

import pytest

from longreach.errors import InputFileError, LongreachError, UsageError
from longreach.measure.prose import write_paragraphs
from longreach.measure.tokenizer import LocalTokenizer
from longreach.measure.workload import texts
from longreach.measure.workload.building import build_workload
from longreach.measure.workload.counting import Counting
from longreach.measure.workload.values import Workload
from longreach.measure.workload.wishes import TextSource, WorkloadWish


async def build(source: TextSource, tokenizer: LocalTokenizer) -> Workload:
    return await build_workload(WorkloadWish(source), Counting(tokenizer, 7))


def prose(seed: str, num_paragraphs: int) -> str:
    return "\n".join(islice(write_paragraphs(seed), num_paragraphs)) + "\n"


# Letters of several alphabets, code, long lines, no line end at all: what people have.
TEXTS: dict[str, Callable[[], str]] = {
    "prose": lambda: prose("text", 120),
    "one_line": lambda: prose("line", 120).replace("\n", " "),
    "code": lambda: "".join(
        f"    if x[{n}] != '{n:x}':\n\n        return {{'k{n}': [{n}, 0x{n:x}]}}\n" for n in range(900)
    ),
    "mixed": lambda: "".join(f"Größe {n}: 漢字かな交じり文 {n * 7}; Привет, мир!\r\n" for n in range(900)),
}


@pytest.mark.parametrize("name", TEXTS)
async def test_prompts_cut_from_a_text_are_exact(tmp_path: Path, tokenizer: LocalTokenizer, name: str) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(TEXTS[name]().encode())
    workload = await build(TextSource(path, 8, input_tokens=1_500, num_requests=4), tokenizer)
    rendered = [workload.render_text(request) for request in workload.requests]
    assert [count + 7 for count in await tokenizer.count_many(rendered)] == [1_500] * 4
    assert len({text.split("\n", 1)[1][:200] for text in rendered}) == 4
    whole = path.read_bytes().decode().replace("\r\n", "\n")
    assert all(text.split("\n", 1)[1][:400] in whole for text in rendered)


async def test_a_folder_gives_as_many_prompts_as_it_holds_without_overlap(
    tmp_path: Path, tokenizer: LocalTokenizer
) -> None:
    (tmp_path / "a.txt").write_text(prose("a", 60))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.txt").write_text(prose("b", 60))
    (tmp_path / "c.bin").write_bytes(b"\0\1")
    (tmp_path / ".hidden").write_text(prose("hidden", 60))
    workload = await build(TextSource(tmp_path, 8, input_tokens=1_000), tokenizer)
    passages = [request.tail.split("\n", 1)[1][:1_500] for request in workload.requests]
    assert len(passages) >= 5
    whole = prose("a", 60) + prose("b", 60)
    places = [whole.index(passage) for passage in passages]
    assert places == sorted(places)
    assert min(b - a for a, b in pairwise(places)) > 3_000
    assert workload.notes == ("passed over: 1 file, first c.bin: it is binary",)


async def test_without_a_length_every_file_is_a_prompt_as_it_is(tmp_path: Path, tokenizer: LocalTokenizer) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(prose(name, 5))
    (tmp_path / "c.txt").write_text(prose("a", 5))
    workload = await build(TextSource(tmp_path, 8), tokenizer)
    assert [workload.render_text(request) for request in workload.requests] == [prose(n, 5) for n in ("a", "b", "a")]
    assert workload.requests[0].prompt_tokens == 7 + await tokenizer.count(prose("a", 5))
    assert workload.notes == ("1 file begins as another does: a prefix cache hits what is sent later",)


async def test_overlapping_prompts_are_noted(tmp_path: Path, tokenizer: LocalTokenizer) -> None:
    (tmp_path / "a.txt").write_text(prose("a", 30))
    workload = await build(TextSource(tmp_path / "a.txt", 8, input_tokens=1_500, num_requests=6), tokenizer)
    assert "they overlap, but begin at different places" in workload.notes[0]


@pytest.mark.parametrize(
    ("content", "input_tokens", "error", "words"),
    [
        (None, None, InputFileError, "No such file"),
        (b"a\0b", None, InputFileError, "it is binary"),
        (b"\xff\xfe\xff", None, InputFileError, "not UTF-8: byte 0 is 0xff"),
        (b" \n", None, InputFileError, "it is empty"),
        (prose("a", 5).encode(), 4_000, UsageError, "text is never repeated"),
        (prose("a", 5).encode(), 20, UsageError, "its last line take"),
    ],
    ids=["missing", "binary", "encoding", "empty", "text_too_short", "prompt_too_short"],
)
async def test_text_that_cannot_be_used_is_named(
    tmp_path: Path,
    tokenizer: LocalTokenizer,
    content: bytes | None,
    input_tokens: int | None,
    error: type[LongreachError],
    words: str,
) -> None:
    path = tmp_path / "text.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error) as caught:
        await build(TextSource(path, 8, input_tokens=input_tokens), tokenizer)
    assert words in caught.value.why
    assert caught.value.fix


async def test_folder_without_text_is_named(tmp_path: Path, tokenizer: LocalTokenizer) -> None:
    with pytest.raises(InputFileError) as caught:
        await build(TextSource(tmp_path, 8), tokenizer)
    assert caught.value.why == "it holds no file"


async def test_text_of_uneven_density_is_cut_as_it_counts(tmp_path: Path, tokenizer: LocalTokenizer) -> None:
    """Words first, then digits, which are tokens of their own: the average is right nowhere."""
    path = tmp_path / "text.txt"
    path.write_text(prose("a", 60) + "".join(f"{number:09}\n" for number in range(2_000)))
    workload = await build(TextSource(path, 8, input_tokens=4_000, num_requests=3), tokenizer)
    rendered = [workload.render_text(request) for request in workload.requests]
    assert [count + 7 for count in await tokenizer.count_many(rendered)] == [4_000] * 3


async def test_end_of_the_text_with_fewer_tokens_than_elsewhere_is_named(
    tmp_path: Path, tokenizer: LocalTokenizer
) -> None:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{number:09}\n" for number in range(2_000)) + prose("a", 60))
    with pytest.raises(UsageError, match="too short for") as caught:
        await build(TextSource(path, 8, input_tokens=4_000, num_requests=3), tokenizer)
    assert "the passage that was cut for it holds" in caught.value.why


async def test_a_text_shorter_than_any_prompt_is_not_said_to_do_with_less(
    tmp_path: Path, tokenizer: LocalTokenizer
) -> None:
    (tmp_path / "text.txt").write_text("hello world\n")
    with pytest.raises(UsageError, match="too short for a prompt of 2,000 tokens") as caught:
        await build(TextSource(tmp_path / "text.txt", 8, input_tokens=2_000), tokenizer)
    assert caught.value.fix == "leave --input-tokens out, or more text"


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no endless file on this system")
async def test_a_text_without_end_is_not_read(tokenizer: LocalTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_MAX_BYTES", 2**20)
    with pytest.raises(InputFileError, match="cannot be used as text") as caught:
        await build(TextSource(Path("/dev/zero"), 8), tokenizer)
    assert caught.value.why == "it is larger than 1 MiB"
