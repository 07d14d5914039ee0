"""Is the server as fast as the plan says, and no faster than it can be? Values in, checklist items out."""

from collections.abc import Callable, Sequence

from longreach.forecast.values import Span
from longreach.measure.target import ExpectedServer
from longreach.measure.verify_report import ChecklistItem, SendReport, Verdict
from longreach.units import format_duration, format_tokens


def check_speculation(expected: ExpectedServer, sends: Sequence[SendReport]) -> ChecklistItem | None:
    """On when planned and off when not; the acceptance is told, not judged."""
    title = "speculation as planned"
    counters = [send.counters for send in sends if send.counters is not None]
    drafts = sum(counter.num_draft_tokens or 0 for counter in counters)
    if expected.speculation is None and not drafts:
        return None
    if not counters:
        return ChecklistItem("speculation", title, "cannot_tell", "the server's metrics are not to be had")
    if not drafts:
        return ChecklistItem("speculation", title, "fail" if expected.speculation else "pass", "no draft tokens")
    accepted = sum(counter.num_accepted_tokens or 0 for counter in counters)
    steps = sum(counter.num_drafts or 0 for counter in counters)
    evidence = f"{accepted} of {drafts} draft tokens accepted ({accepted / drafts:.0%})"
    if steps:
        evidence += f", {1 + accepted / steps:.2f} tokens a step"
    if not all(counter.attributed for counter in counters):
        evidence += ", other requests included"
    return ChecklistItem("speculation", title, "fail" if expected.speculation is False else "pass", evidence)


def check_forecast(
    expected: ExpectedServer, cold: SendReport | None, warm: Sequence[SendReport]
) -> list[ChecklistItem]:
    """A measurement beyond what the plan calls impossible disproves the plan; outside its range it is only told."""
    speed = expected.speed
    if speed is None or cold is None or cold.usage is None:
        return []
    if cold.usage.prompt_tokens != speed.prompt_tokens:
        seen, planned = format_tokens(cold.usage.prompt_tokens), format_tokens(speed.prompt_tokens)
        evidence = f"the forecast is for {planned} tokens, the prompt had {seen}"
        return [ChecklistItem("speed_as_forecast", "speed within the forecast", "cannot_tell", evidence)]
    repeat_ttft_s = warm[-1].ttft_s if warm else None
    rate = cold.output_tokens_per_s
    rows = (
        ("ttft_cold_as_forecast", "cold TTFT", cold.ttft_s, speed.ttft_cold_s, format_duration),
        ("ttft_warm_as_forecast", "warm TTFT", repeat_ttft_s, speed.ttft_warm_s, format_duration),
        ("decode_as_forecast", "decode rate", rate, speed.decode_tokens_per_s, _format_rate),
    )
    return [
        ChecklistItem(name, f"{what} within the forecast", *_judge(measured, span, show))
        for name, what, measured, span, show in rows
        if measured is not None
    ]


def _judge(measured: float, span: Span, show: Callable[[float], str]) -> tuple[Verdict, str]:
    if span.lower_bound is not None and measured < span.lower_bound:
        return "fail", f"{show(measured)} beats the bound of {show(span.lower_bound)}: the forecast is wrong"
    if span.upper_bound is not None and measured > span.upper_bound:
        return "fail", f"{show(measured)} beats the bound of {show(span.upper_bound)}: the forecast is wrong"
    if span.low is None or span.high is None:
        return "cannot_tell", f"{show(measured)} measured; no range is forecast: {span.reason or 'not known'}"
    place = "inside" if span.low <= measured <= span.high else "outside"
    return "pass", f"{show(measured)}, {place} the expected {show(span.low)} to {show(span.high)}"


def _format_rate(tokens_per_s: float) -> str:
    return f"{tokens_per_s:,.1f} tokens/s"
