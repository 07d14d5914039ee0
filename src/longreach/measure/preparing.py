"""From a wish for so many tokens at the server to a request body that has them."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

from longreach.errors import InputFileError, UsageError
from longreach.measure.prompts import PromptWish, build_prompt, choose_needles
from longreach.measure.sending import Sender
from longreach.measure.target import VerifySettings
from longreach.measure.template import write_probes
from longreach.measure.tokenizer import LocalTokenizer, Tokenizer, choose_tokenizer
from longreach.measure.verify_report import PromptReport


@dataclass(frozen=True, slots=True)
class Prepared:
    """A body ready to be sent, and what it is."""

    body: bytes
    report: PromptReport


async def prepare_generated(
    sender: Sender, settings: VerifySettings, tokenizer_name: str | None, num_tokens: int, salt: str
) -> Prepared:
    """A generated prompt that the server counts as exactly `num_tokens`.

    A chat template adds tokens of its own; two small requests tell how many, and whether the tokenizer is the served
    one at all. Completions take token ids and are exact by construction.
    """
    began = time.monotonic()
    tokenizer = await choose_tokenizer(tokenizer_name, sender.client, sender.model)
    template_tokens = 0
    if sender.api == "chat":
        tokenizer, template_tokens = await _learn_template(sender, tokenizer, num_tokens, salt)
    needles = () if settings.needles_off_reason else choose_needles(settings.seed, settings.needle_depths)
    wish = PromptWish(num_tokens - template_tokens, salt, settings.seed, needles, template_tokens)
    prompt = await build_prompt(wish, tokenizer)
    content = prompt.text if sender.api == "chat" else await tokenizer.encode(prompt.text)
    report = PromptReport(
        wanted_tokens=num_tokens,
        tokenizer=tokenizer.source,
        template_tokens=template_tokens,
        salt=salt,
        seed=settings.seed,
        needles=needles,
        needles_off_reason=settings.needles_off_reason,
        build_s=time.monotonic() - began,
    )
    return Prepared(sender.render(content, settings.output_tokens), report)


async def _learn_template(sender: Sender, tokenizer: Tokenizer, num_tokens: int, salt: str) -> tuple[Tokenizer, int]:
    """The tokenizer to use and the tokens that the chat template adds.

    A template adds the same number to every text. When two texts disagree, the tokenizer is not the served one, and
    the server's own takes its place; InputFileError when that does not agree with itself either.
    """
    added = {await _count_added(sender, tokenizer, text) for text in write_probes(salt, num_tokens)}
    if len(added) == 1 and min(added) >= 0:
        return tokenizer, added.pop()
    if isinstance(tokenizer, LocalTokenizer):
        reason = f"{tokenizer.source} is not the served one"
        server = await choose_tokenizer(None, sender.client, sender.model, reason)
        return await _learn_template(sender, server, num_tokens, salt)
    raise InputFileError(
        "the prompt's length cannot be made exact",
        f"a chat template adds the same tokens to every text, but {tokenizer.source} finds {sorted(added)} added",
        "--api completions, or --prompt-file with a text of your own",
    )


async def _count_added(sender: Sender, tokenizer: Tokenizer, text: str) -> int:
    return await sender.count_at_server(text) - await tokenizer.count(text)


def prepare_file(sender: Sender, settings: VerifySettings, path: Path, salt: str, *, is_vllm: bool) -> Prepared:
    """The user's own text as it is. vLLM's `cache_salt` keeps it cold without touching the text."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputFileError(f"prompt file '{path}' cannot be read", str(error), "--prompt-file TEXT.txt") from error
    if not text.strip():
        raise UsageError(f"prompt file '{path}' is empty", "there is nothing to send", "--prompt-file TEXT.txt")
    salted = replace(sender, fields={**sender.fields, "cache_salt": salt}) if is_vllm else sender
    report = PromptReport(
        wanted_tokens=None,
        tokenizer=None,
        template_tokens=None,
        salt=salt,
        seed=None,
        needles_off_reason="the prompt is the user's own text",
        source=str(path),
    )
    return Prepared(salted.render(text, settings.output_tokens), report)
