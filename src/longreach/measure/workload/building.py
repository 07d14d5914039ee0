"""From a wish to a workload: every segment made once, every prompt exact."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from longreach.measure.filling import learn_pace
from longreach.measure.tokenizer import Tokenizer
from longreach.measure.workload.counting import Counting
from longreach.measure.workload.digest import digest_workload
from longreach.measure.workload.orders import LINE_AFTER, LINE_BEFORE, TextOrder, UniqueWords, Writer
from longreach.measure.workload.outlines import (
    Outline,
    RequestOutline,
    Room,
    count_reusable,
    outline_conversation,
    outline_synthetic,
)
from longreach.measure.workload.tails import TailWriter, measure_room
from longreach.measure.workload.texts import leave_out_longer, note_alike, outline_passages, read_texts, sample_text
from longreach.measure.workload.trace import outline_trace
from longreach.measure.workload.values import Workload, WorkloadRequest
from longreach.measure.workload.wishes import ConversationSource, SyntheticSource, TextSource, TraceSource, WorkloadWish
from longreach.units import format_count

OnProgress = Callable[[int, int], None]
"""Tokens written so far, tokens to write."""


def _ignore(_done: int, _total: int) -> None:
    """For callers that do not watch."""


async def build_workload(wish: WorkloadWish, counting: Counting, on_progress: OnProgress = _ignore) -> Workload:
    """The workload of `wish`, with every prompt exactly as long as said.

    UsageError for what cannot be made, InputFileError for a file that cannot be used.
    """
    if isinstance(wish.source, TextSource) and wish.source.input_tokens is None:
        return await _finish(wish, counting, *await _take_as_they_are(wish.source, counting))
    words = UniqueWords(f"{wish.seed} {wish.nonce}")
    room = await measure_room(counting.tokenizer, counting.template_tokens, words)
    outline = await _outline(wish, counting.tokenizer, room)
    total = outline.count_written(room.template_tokens)
    done = 0

    def report(tokens: int) -> None:
        nonlocal done
        done = min(done + tokens, total)
        on_progress(done, total)

    writer = Writer(counting.tokenizer, await learn_pace(counting.tokenizer), report)
    segments = await _write_segments(outline, wish.seed, words, writer)
    tails = await TailWriter(outline, segments, room, wish.seed, words, writer).write()
    on_progress(total, total)
    return await _finish(wish, counting, outline, segments, tails)


async def _outline(wish: WorkloadWish, tokenizer: Tokenizer, room: Room) -> Outline:
    match wish.source:
        case SyntheticSource():
            return outline_synthetic(wish.source, wish.seed, room)
        case ConversationSource():
            return outline_conversation(wish.source, room)
        case TraceSource():
            return await asyncio.to_thread(outline_trace, wish.source, wish.seed, room)
        case TextSource():
            texts = await asyncio.to_thread(read_texts, wish.source.path)
            sample = sample_text(texts)
            return outline_passages(wish.source, texts, len(sample) / await tokenizer.count(sample), room)


async def _take_as_they_are(source: TextSource, counting: Counting) -> tuple[Outline, Mapping[str, str], Sequence[str]]:
    """Every file a prompt, counted but not changed."""
    texts = await asyncio.to_thread(read_texts, source.path)
    files = texts.files[: source.num_requests]
    counts = await counting.tokenizer.count_many([file.text for file in files])
    requests = [RequestOutline((), tokens + counting.template_tokens, source.output_tokens) for tokens in counts]
    fitting, notes = leave_out_longer(source, requests)
    outline = Outline(
        f"{format_count(len(fitting), 'file')} of {source.path.name}",
        {},
        tuple(requests[place] for place in fitting),
        (*texts.notes, *notes, *note_alike(texts)),
    )
    return outline, {}, [files[place].text for place in fitting]


async def _finish(
    wish: WorkloadWish, counting: Counting, outline: Outline, segments: Mapping[str, str], tails: Sequence[str]
) -> Workload:
    workload = Workload(
        source=outline.source,
        seed=wish.seed,
        tokenizer=counting.tokenizer.source,
        template_tokens=counting.template_tokens,
        segments=segments,
        requests=_assemble(outline, tails),
        notes=wish.notes + outline.notes,
    )
    return replace(workload, digest=await asyncio.to_thread(digest_workload, workload))


async def _write_segments(outline: Outline, seed: str, words: UniqueWords, writer: Writer) -> Mapping[str, str]:
    """Whole lines, each text's tokens counted between two others. Those that begin prompts begin with words of their own."""
    firsts = {request.segments[0] for request in outline.requests if request.segments}
    num_tails = len(outline.requests)
    texts = await writer.write(
        TextOrder(
            num_tokens=tokens,
            seed=f"{name} {seed}",
            before=LINE_BEFORE,
            opening=words.give(num_tails + place) if name in firsts else "",
            closing="\n",
            after=LINE_AFTER,
        )
        for place, (name, tokens) in enumerate(outline.segments.items())
    )
    return dict(zip(outline.segments, texts, strict=True))


def _assemble(outline: Outline, tails: Sequence[str]) -> tuple[WorkloadRequest, ...]:
    return tuple(
        WorkloadRequest(
            index=index,
            segments=request.segments,
            tail=tail,
            prompt_tokens=request.prompt_tokens,
            output_tokens=request.output_tokens,
            session=request.session,
            arrival_s=request.arrival_s,
            reusable_tokens=reusable,
        )
        for index, (request, tail, reusable) in enumerate(
            zip(outline.requests, tails, count_reusable(outline), strict=True)
        )
    )
