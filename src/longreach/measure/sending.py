"""One request of a verification: made, timed, and set beside what the server counted meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from longreach.errors import ServerError
from longreach.measure.client import Client
from longreach.measure.loop_lag import compute_p99
from longreach.measure.metrics import count_request, fetch_metrics, fetch_settled_metrics
from longreach.measure.prompts import Needle, find_needles
from longreach.measure.stream import StreamResult
from longreach.measure.target import Api
from longreach.measure.verify_report import Counters, SendReport
from longreach.wire.bodies import ExtraFields, render_chat_body, render_completion_body


@dataclass(frozen=True, slots=True)
class Sender:
    """How requests to one model are made."""

    client: Client
    model: str
    api: Api
    fields: ExtraFields

    @property
    def path(self) -> str:
        """Where they go."""
        return "/v1/chat/completions" if self.api == "chat" else "/v1/completions"

    def render(self, prompt: str | Sequence[int], max_tokens: int) -> bytes:
        """The body; token ids only go to `/v1/completions`."""
        if self.api == "chat":
            assert isinstance(prompt, str)
            return render_chat_body(self.model, prompt, max_tokens, self.fields)
        return render_completion_body(self.model, prompt, max_tokens, self.fields)

    async def count_at_server(self, text: str) -> int:
        """The prompt tokens that the server counts for a small text, template included. ServerError when it refuses."""
        result = await self.client.stream(self.path, self.render(text, 1))
        if result.failure is not None:
            raise ServerError(
                f"the server does not answer a small request to {self.path}",
                f"{result.failure.kind}: {result.failure.error.message}",
                "--api completions, when the model has no chat template"
                if result.failure.kind == "refused"
                else "look into the server's log: it took the request up and did not answer it to its end",
            )
        if result.usage is None:
            raise ServerError(
                "the server does not say how long a prompt is",
                "its stream ended without a usage object, although stream_options asked for one",
                "--prompt-file with a text of your own, which needs no exact length",
            )
        return result.usage.prompt_tokens

    async def send(self, label: str, body: bytes, needles: Sequence[Needle]) -> SendReport:
        """Make one request and report it; a failure is part of the report."""
        before = await fetch_metrics(self.client)
        result = await self.client.stream(self.path, body)
        counters = None
        if before is not None and result.failure is None:
            after = await fetch_settled_metrics(self.client, before)
            counters = None if after is None else count_request(before, after)
        return report_send(label, result, counters, needles)


def report_send(
    label: str, result: StreamResult, counters: Counters | None, needles: Sequence[Needle] = ()
) -> SendReport:
    """A request's result beside the server's counters."""
    cached_tokens, source = find_cached_tokens(result, counters)
    timing = result.timing
    return SendReport(
        label=label,
        failure=result.failure,
        usage=result.usage,
        cached_tokens=cached_tokens,
        cached_tokens_source=source,
        counters=counters,
        ttft_s=timing.ttft_s,
        first_answer_s=timing.first_answer_s,
        itl_s=result.itl_s,
        chunk_gap_p99_s=compute_p99(list(timing.chunk_gaps_s)),
        output_tokens_per_s=result.output_tokens_per_s,
        e2e_latency_s=timing.e2e_latency_s,
        event_loop_lag_p99_s=result.event_loop_lag_p99_s,
        finish_reason=result.finish_reason,
        content=result.content,
        reasoning=result.reasoning,
        needles_found=find_needles(result.content + result.reasoning, needles),
    )


def find_cached_tokens(
    result: StreamResult, counters: Counters | None
) -> tuple[int | None, Literal["usage", "metrics"] | None]:
    """The request's own count first; the metrics' only when nothing else ran; else unknown."""
    if result.usage is not None and result.usage.cached_tokens is not None:
        return result.usage.cached_tokens, "usage"
    if counters is not None and counters.attributed and counters.prefix_hit_tokens is not None:
        return counters.prefix_hit_tokens + (counters.external_hit_tokens or 0), "metrics"
    return None, None
