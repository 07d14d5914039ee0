"""Requests as verification reports them, for checks that need no server."""

from longreach.measure.prompts import Needle, choose_needles
from longreach.measure.stream import StreamFailure
from longreach.measure.verify_report import Counters, PromptReport, SendReport
from longreach.wire.chunks import Usage

NEEDLES = choose_needles("s", (0.1, 0.9))
PROMPT = PromptReport(wanted_tokens=10_000, tokenizer="t", template_tokens=12, salt="a", seed="s", needles=NEEDLES)


def send(
    label: str = "cold",
    cached: int | None = 0,
    *,
    prompt_tokens: int = 10_000,
    ttft_s: float = 10.0,
    rate: float = 30.0,
    content: str = "same",
    finish_reason: str | None = "stop",
    failure: StreamFailure | None = None,
    counters: Counters | None = None,
    needles: tuple[Needle, ...] = NEEDLES,
) -> SendReport:
    """A request that went well, but for what is named."""
    return SendReport(
        label=label,
        failure=failure,
        usage=Usage(prompt_tokens, 8, cached),
        cached_tokens=cached,
        cached_tokens_source=None if cached is None else "usage",
        counters=counters,
        ttft_s=ttft_s,
        first_answer_s=ttft_s,
        itl_s=1 / rate,
        chunk_gap_p99_s=1 / rate,
        output_tokens_per_s=rate,
        e2e_latency_s=ttft_s + 8 / rate,
        event_loop_lag_p99_s=0.0,
        finish_reason=finish_reason,
        content=content,
        reasoning="",
        needles_found=needles,
    )
