"""Were the requests what they were meant to be, and do they keep the plan's promises? Values in, checklist items out."""

from collections.abc import Sequence

from longreach.measure.answer_checks import check_needles, check_same_answer
from longreach.measure.speed_checks import check_forecast, check_speculation
from longreach.measure.target import ExpectedServer, VerifySettings
from longreach.measure.verify_report import ChecklistItem, PromptReport, SendReport, ServerState, Verdict
from longreach.units import format_duration, format_tokens

_ENDS = frozenset({"stop", "length", "tool_calls"})


def check_sends(
    expected: ExpectedServer,
    settings: VerifySettings,
    state: ServerState,
    prompt: PromptReport,
    sends: Sequence[SendReport],
    cut_off: str | None = None,
) -> list[ChecklistItem]:
    """The checklist of the requests. A promise that needs a request which failed cannot be told. `cut_off` tells of one
    that was under way when the user stopped.
    """
    complete = [send for send in sends if send.failure is None]
    cold = next((send for send in complete if not send.is_warm), None)
    warm = [send for send in complete if send.is_warm]
    block_size = state.block_size or expected.block_size
    items = [
        _check_complete(sends, cut_off),
        _check_length(prompt, complete),
        _check_cold(cold, prompt),
        _check_warm(warm, block_size) if expected.prefix_caching else None,
        _check_faster(cold, warm) if expected.prefix_caching else None,
        check_same_answer(cold, warm, settings, expected),
        check_needles(prompt, complete),
        check_speculation(expected, complete),
        _check_preemptions(complete),
        *check_forecast(expected, cold, warm),
    ]
    return [item for item in items if item is not None]


def _check_complete(sends: Sequence[SendReport], cut_off: str | None) -> ChecklistItem:
    title = "every request answered to its end"
    for send in sends:
        if send.failure is not None:
            status = f"HTTP {send.failure.status}, " if send.failure.status else ""
            words = send.failure.error.message or "the server gave no reason"
            return ChecklistItem(
                "requests_complete", title, "fail", f"{send.label}: {send.failure.kind} ({status}{words})"
            )
        if send.finish_reason not in _ENDS:
            return ChecklistItem(
                "requests_complete", title, "fail", f"{send.label}: finish reason {send.finish_reason!r}"
            )
    if cut_off is not None:
        return ChecklistItem("requests_complete", title, "cannot_tell", cut_off)
    if not sends:
        return ChecklistItem("requests_complete", title, "cannot_tell", "no request was made")
    ends = ", ".join(f"{send.label}: {send.finish_reason}" for send in sends)
    return ChecklistItem("requests_complete", title, "pass", f"finish reasons {ends}")


def _check_length(prompt: PromptReport, sends: Sequence[SendReport]) -> ChecklistItem | None:
    if prompt.wanted_tokens is None:
        return None
    title = "prompt exactly as long as wanted, by the server's count"
    counts = {send.usage.prompt_tokens for send in sends if send.usage}
    if not counts:
        return ChecklistItem("prompt_exact", title, "cannot_tell", "no answer with a usage count")
    seen = " and ".join(format_tokens(count) for count in sorted(counts))
    verdict: Verdict = "pass" if counts == {prompt.wanted_tokens} else "fail"
    evidence = f"{seen} counted, {format_tokens(prompt.wanted_tokens)} wanted, built with {prompt.tokenizer}"
    return ChecklistItem("prompt_exact", title, verdict, evidence)


_UNCOUNTED = (
    "the server reports no cached tokens (it does with --enable-prompt-tokens-details) and its metrics are absent "
    "or hold other requests too: unattributed"
)


def _check_cold(cold: SendReport | None, prompt: PromptReport) -> ChecklistItem:
    """Zero cached tokens, or no more than the template puts before the salt."""
    title = "first request cold"
    if cold is None:
        return ChecklistItem("cold_is_cold", title, "cannot_tell", "the first request did not complete")
    if cold.cached_tokens is None:
        return ChecklistItem("cold_is_cold", title, "cannot_tell", _UNCOUNTED)
    evidence = f"{format_tokens(cold.cached_tokens)} cached tokens by {cold.cached_tokens_source}"
    before_salt = prompt.template_tokens or 0
    if 0 < cold.cached_tokens <= before_salt:
        evidence += f": part of the {before_salt} tokens that the chat template adds to every prompt"
    return ChecklistItem("cold_is_cold", title, "pass" if cold.cached_tokens <= before_salt else "fail", evidence)


def is_proven_warm(send: SendReport, block_size: int | None) -> bool:
    """The cache had all of the prompt that it can have."""
    if send.cached_tokens is None or send.usage is None:
        return False
    return covers_prompt(send.cached_tokens, send.usage.prompt_tokens, block_size)


def covers_prompt(cached_tokens: int, prompt_tokens: int, block_size: int | None) -> bool:
    """All of the prompt came from the cache but its last blocks: one that is not full is never cached, speculation gives
    one more up, and hybrids keep states at block ends only. Without a block size a tenth may be missing.
    """
    slack = 3 * block_size if block_size else prompt_tokens // 10
    return cached_tokens > 0 and cached_tokens >= prompt_tokens - slack - 1


def _check_warm(warm: Sequence[SendReport], block_size: int | None) -> ChecklistItem:
    """The last repeat decides: with recurrent layers the first one may miss altogether."""
    title = "repeat warm: the prefix comes from the cache"
    if not warm:
        return ChecklistItem("warm_is_warm", title, "cannot_tell", "no repeat completed")
    last = warm[-1]
    if last.cached_tokens is None or last.usage is None:
        return ChecklistItem("warm_is_warm", title, "cannot_tell", _UNCOUNTED)
    evidence = "; ".join(_describe_hits(send) for send in warm)
    if last.cached_tokens == 0:
        evidence += ": prefix caching is off or does not work"
    return ChecklistItem("warm_is_warm", title, "pass" if is_proven_warm(last, block_size) else "fail", evidence)


def _describe_hits(send: SendReport) -> str:
    prompt_tokens = send.usage.prompt_tokens if send.usage else 0
    sources = send.counters.hits_by_source if send.counters and send.counters.attributed else ()
    places = f" ({', '.join(f'{source} {format_tokens(tokens)}' for source, tokens in sources)})" if sources else ""
    cached = "unknown" if send.cached_tokens is None else format_tokens(send.cached_tokens)
    return f"{send.label}: {cached} of {format_tokens(prompt_tokens)} cached{places}"


def _check_faster(cold: SendReport | None, warm: Sequence[SendReport]) -> ChecklistItem | None:
    if cold is None or not warm or cold.ttft_s is None or warm[-1].ttft_s is None:
        return None
    first, repeat = cold.ttft_s, warm[-1].ttft_s
    evidence = (
        f"TTFT {format_duration(first)} cold, {format_duration(repeat)} warm ({first / repeat:.1f} times as fast)"
    )
    verdict: Verdict = "pass" if repeat < first else "cannot_tell"  # a short prompt costs nearly nothing either way
    return ChecklistItem("warm_is_faster", "repeat faster than first", verdict, evidence)


def _check_preemptions(sends: Sequence[SendReport]) -> ChecklistItem:
    title = "no request lost its KV blocks"
    counts = [send.counters.preemptions for send in sends if send.counters and send.counters.preemptions is not None]
    if not counts:
        return ChecklistItem("no_preemptions", title, "cannot_tell", "the server's metrics do not say")
    return ChecklistItem("no_preemptions", title, "fail" if sum(counts) else "pass", f"{sum(counts)} preemptions")
