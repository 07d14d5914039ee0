"""From a wish to a workload that this server counts exactly, or to its outline when there is no server."""

import asyncio
import secrets
from dataclasses import replace

from longreach.errors import ServerError
from longreach.measure.bench.events import BenchEvent, OnBenchEvent
from longreach.measure.bench.fitting import fit_wish
from longreach.measure.bench.flood import choose_flood_tokens
from longreach.measure.bench.journal import read_log
from longreach.measure.bench.reach import reach
from longreach.measure.bench.settings import BenchSettings, BenchTarget
from longreach.measure.client import open_client
from longreach.measure.endpoint import read_endpoint
from longreach.measure.sending import Sender
from longreach.measure.tokenizer import read_tokenizer
from longreach.measure.workload.building import build_workload
from longreach.measure.workload.counting import Counting, LearnedCounting, learn_counting
from longreach.measure.workload.outlines import Outline, Room, outline_conversation, outline_synthetic
from longreach.measure.workload.trace import outline_trace
from longreach.measure.workload.values import Workload, WorkloadRequest
from longreach.measure.workload.wishes import ConversationSource, SyntheticSource, TextSource, TraceSource, WorkloadWish

_NO_ROOM = Room(0, 0, 0)  # nobody has told what a template and a last line take


def choose_salt(settings: BenchSettings) -> BenchSettings:
    """The settings with a salt: the given one, that of the run to be resumed, or a fresh one."""
    if settings.cache_salt is not None:
        return settings
    if settings.resume and settings.journal is not None and settings.journal.exists():
        return replace(settings, cache_salt=read_log(settings.journal).header.cache_salt)
    return replace(settings, cache_salt=secrets.token_hex(8))


async def prepare_workload(
    target: BenchTarget, settings: BenchSettings, wish: WorkloadWish, on_event: OnBenchEvent
) -> Workload:
    """The workload, exact by the server's own count as far as that can be learned.

    Only vLLM takes a salt beside the text; for others it becomes a part of every prompt's first word. When nothing answers,
    the prompts have lengths and no text: none of them will be sent.
    """
    async with open_client(read_endpoint(target.base_url, target.api_key_env), settings.timeouts) as client:
        on_event(BenchEvent("reach"))
        reached = await reach(client, target)
        wish = fit_wish(wish, target.expected.max_model_len, reached.state.max_model_len)
        if reached.error is not None:
            return await _outline(wish, target.tokenizer, reached.error)
        if "evicted" in settings.states:  # refuses, before anything long begins, what cannot be flooded
            capacities = (reached.state.kv_capacity_tokens, target.expected.kv_capacity_tokens)
            choose_flood_tokens(settings.flood_tokens, *capacities)
        sender = Sender(client, reached.model, settings.api, settings.body_fields)
        on_event(BenchEvent("prompts"))
        try:
            learned = await learn_counting(sender, target.tokenizer)
        except ServerError as error:
            if error.cause != "unreachable":
                raise
            return await _outline(wish, target.tokenizer, error.why)
        nonce = "" if reached.is_vllm else settings.cache_salt or ""
        return await _build(replace(wish, nonce=nonce), learned, on_event)  # inside: it may be the server that counts


async def _build(wish: WorkloadWish, learned: LearnedCounting, on_event: OnBenchEvent) -> Workload:
    def tell(done: int, wanted: int) -> None:
        on_event(BenchEvent("prompts", tokens_done=done, tokens_wanted=wanted))

    workload = await build_workload(wish, learned.counting, tell)
    return replace(workload, notes=(*workload.notes, *learned.notes))


async def _outline(wish: WorkloadWish, tokenizer_name: str | None, reason: str) -> Workload:
    outline = outline_wish(wish)
    if outline is None and tokenizer_name is None:
        why = f"{reason}; without a tokenizer nothing is known of what would be sent"
        raise ServerError("the server does not answer", why, "check its address and that it runs", "unreachable")
    if outline is None:
        counting = Counting(await asyncio.to_thread(read_tokenizer, tokenizer_name or ""))
        return replace(await build_workload(wish, counting), nobody=reason, digest="")
    requests = tuple(
        WorkloadRequest(index, (), "", item.prompt_tokens, item.output_tokens, item.session, item.arrival_s)
        for index, item in enumerate(outline.requests)
    )
    tokenizer = "none: there was nobody to send to"
    notes = wish.notes + outline.notes
    return Workload(outline.source, wish.seed, tokenizer, 0, {}, requests, notes=notes, nobody=reason)


def outline_wish(wish: WorkloadWish) -> Outline | None:
    """The lengths, as far as they are known without a tokenizer: of a text they are not."""
    match wish.source:
        case SyntheticSource():
            return outline_synthetic(wish.source, wish.seed, _NO_ROOM)
        case ConversationSource():
            return outline_conversation(wish.source, _NO_ROOM)
        case TraceSource():
            return outline_trace(wish.source, wish.seed, _NO_ROOM)
        case TextSource():
            return None
