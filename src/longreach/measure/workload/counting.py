"""How a server counts a prompt: with which tokenizer, and with how much of its own on top.

Learned leniently: a benchmark of a server that tells little is still a benchmark, with a note on what is not exact.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from longreach.errors import ServerError
from longreach.measure.sending import Sender
from longreach.measure.template import write_probes
from longreach.measure.tokenizer import LocalTokenizer, Tokenizer, choose_tokenizer
from longreach.wire.bodies import parse_token_ids

_PROBE_TOKENS = 2_000


@dataclass(frozen=True, slots=True)
class Counting:
    """What counts a text, and the tokens that a chat template or a BOS setting adds to every one."""

    tokenizer: Tokenizer
    template_tokens: int = 0


@dataclass(frozen=True, slots=True)
class LearnedCounting:
    """What was learned of a server, and what a reader of its figures must know of it."""

    counting: Counting
    notes: tuple[str, ...] = ()


async def learn_counting(sender: Sender, tokenizer_name: str | None, seed: str = "longreach") -> LearnedCounting:
    """The tokenizer to build with and the tokens that the server adds.

    vLLM's `/tokenize` counts a chat with its template without generating anything; a server without it gets two small requests
    for one token each. What cannot be learned is a note and counts as no template. ServerError when the server is not
    reachable, InputFileError when nothing at all can count.
    """
    tokenizer = await choose_tokenizer(tokenizer_name, sender.client, sender.model)
    try:
        count = await _choose_counter(sender)
        added = await _count_added(tokenizer, seed, count)
    except _RefusedError as refused:
        return LearnedCounting(Counting(tokenizer), (_note_unknown(f"it does not answer a probe: {refused.reason}"),))
    if len(added) == 1 and min(added) >= 0:
        return LearnedCounting(Counting(tokenizer, added.pop()))
    if isinstance(tokenizer, LocalTokenizer):
        return await _try_the_server(sender, tokenizer, seed, added)
    return LearnedCounting(Counting(tokenizer), (_note_unknown(f"two probes have {_words(added)} tokens added"),))


async def _try_the_server(sender: Sender, local: LocalTokenizer, seed: str, added: set[int]) -> LearnedCounting:
    """The named tokenizer does not count as the server does: its own is better, where it has one."""
    found = f"{local.source} is not the served one: two probes have {_words(added)} tokens added"
    if not await _has_tokenize(sender):
        return LearnedCounting(Counting(local), (_note_unknown(found),))
    learned = await learn_counting(sender, None, seed)
    return replace(learned, notes=(f"{found}; {learned.counting.tokenizer.source} counts instead", *learned.notes))


def _words(added: set[int]) -> str:
    return " and ".join(map(str, sorted(added)))


def _note_unknown(reason: str) -> str:
    return (
        f"what the server adds to a prompt is not known, so its own count may differ from the wished length: {reason}"
    )


class _RefusedError(Exception):
    """A reachable server that does not tell."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


_Counter = Callable[[str], Awaitable[int]]


async def _count_added(tokenizer: Tokenizer, seed: str, count: _Counter) -> set[int]:
    probes = write_probes(seed, _PROBE_TOKENS)
    known = await tokenizer.count_many(probes)
    return {await count(text) - own for text, own in zip(probes, known, strict=True)}


async def _choose_counter(sender: Sender) -> _Counter:
    async def ask_tokenize(text: str) -> int:
        try:
            return await _ask_tokenize(sender, text)
        except ServerError as error:
            if error.cause == "unreachable":
                raise
            raise _RefusedError(f"{error.what}: {error.why}") from error

    async def ask_for_one_token(text: str) -> int:
        result = await sender.client.stream(sender.path, sender.render(text, 1))
        if result.failure is not None:
            if result.failure.kind == "unreachable":
                raise ServerError(
                    f"the server at {sender.client.endpoint.root} is not reachable",
                    result.failure.error.message,
                    f"check that the server runs: curl -i {sender.client.endpoint.root}/v1/models",
                    cause="unreachable",
                )
            raise _RefusedError(f"{result.failure.kind}: {result.failure.error.message}")
        if result.usage is None:
            raise _RefusedError("its stream ends without a usage object")
        return result.usage.prompt_tokens

    return ask_tokenize if await _has_tokenize(sender) else ask_for_one_token


def _tokenize_body(sender: Sender, text: str) -> bytes:
    """As the requests themselves go: through the template, or with the special tokens of a plain prompt."""
    if sender.api == "completions":
        return json.dumps({"model": sender.model, "prompt": text, "add_special_tokens": True}).encode()
    fields = {name: sender.fields[name] for name in ("chat_template_kwargs",) if name in sender.fields}
    messages = [{"role": "user", "content": text}]
    return json.dumps({"model": sender.model, "messages": messages, "add_generation_prompt": True, **fields}).encode()


async def _has_tokenize(sender: Sender) -> bool:
    """Whether it can count a prompt as it is sent; ServerError when nobody is there."""
    try:
        await _ask_tokenize(sender, "one two three")
    except ServerError as error:
        if error.cause == "unreachable":
            raise
        return False
    return True


async def _ask_tokenize(sender: Sender, text: str) -> int:
    return len(parse_token_ids((await sender.client.fetch("/tokenize", _tokenize_body(sender, text))).require_ok()))
